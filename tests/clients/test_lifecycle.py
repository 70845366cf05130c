"""Tiers, immutability policies, legal holds and expiry, through the official SDK."""

import datetime
import time
import uuid

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import ImmutabilityPolicy, StandardBlobTier

from conftest import ACCOUNT, Server


@pytest.fixture(scope="module")
def protecting(tmp_path_factory):
    """A container in which blobs can be protected; it keeps versions."""
    folder = tmp_path_factory.mktemp("protecting")
    config = folder / "lazuli.toml"
    config.write_text(f"[accounts.{ACCOUNT}]\nversioning = true\nimmutability = true\n")
    server = Server(folder / "data", "--config", config).start()
    with server.client() as service:
        yield service.create_container(f"c{uuid.uuid4().hex}")
    assert server.stop() == 0


def refused(code, call, *arguments, **options):
    with pytest.raises(HttpResponseError) as error:
        call(*arguments, **options)
    assert error.value.error_code == code


def later(days):
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + datetime.timedelta(days=days)


def wait_until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_blob_goes_through_its_tiers(container):
    blob = container.get_blob_client("a")
    blob.upload_blob(b"one", standard_blob_tier=StandardBlobTier.COOL)
    assert blob.get_blob_properties().blob_tier == "Cool"
    blob.set_standard_blob_tier("Archive")
    refused("BlobArchived", blob.download_blob)
    blob.set_standard_blob_tier("Hot", rehydrate_priority="Standard")
    way = blob.get_blob_properties()
    assert (way.blob_tier, way.archive_status, way.rehydrate_priority) == (
        "Archive",
        "rehydrate-pending-to-hot",
        "Standard",
    )
    refused("BlobBeingRehydrated", blob.set_standard_blob_tier, "Cool")
    blob.set_standard_blob_tier("Hot", rehydrate_priority="High")
    wait_until(lambda: blob.get_blob_properties().archive_status is None)
    assert blob.download_blob().readall() == b"one"
    listed = next(iter(container.list_blobs()))
    assert (listed.blob_tier, listed.blob_tier_inferred) == ("Hot", None)


def test_many_tiers_are_set_by_one_batch(container):
    for name in ["a", "b", "c"]:
        container.upload_blob(name, name.encode())
    answers = list(container.set_standard_blob_tier_blobs("Cool", "a", "b", "none", raise_on_any_failure=False))
    assert [answer.status_code for answer in answers] == [200, 200, 404]
    assert [blob.blob_tier for blob in container.list_blobs()] == ["Cool", "Cool", "Hot"]


def test_a_policy_protects_until_it_is_deleted(protecting):
    blob = protecting.get_blob_client("policy")
    until = later(1)
    policy = ImmutabilityPolicy(expiry_time=until, policy_mode="Unlocked")
    version = blob.upload_blob(b"one", immutability_policy=policy)["version_id"]
    shown = blob.get_blob_properties().immutability_policy
    assert (shown.expiry_time, shown.policy_mode.lower()) == (until, "unlocked")
    blob.upload_blob(b"two", overwrite=True)
    refused("BlobImmutableDueToPolicy", blob.delete_blob, version_id=version)
    refused("ContainerImmutableStorageWithVersioningEnabled", protecting.delete_container)
    blob.delete_immutability_policy(version_id=version)
    blob.delete_blob(version_id=version)
    blob.set_immutability_policy(ImmutabilityPolicy(expiry_time=later(2), policy_mode="Unlocked"))
    listed = next(item for item in protecting.list_blobs(include=["immutabilitypolicy"]) if item.name == "policy")
    assert listed.immutability_policy.expiry_time > until


def test_a_legal_hold_protects_until_it_is_taken_back(protecting):
    blob = protecting.get_blob_client("hold")
    blob.upload_blob(b"one", legal_hold=True)
    assert blob.get_blob_properties().has_legal_hold
    refused("BlobImmutableDueToLegalHold", blob.set_http_headers)
    assert not blob.set_legal_hold(False)["legal_hold"]
    blob.set_http_headers()
    assert protecting.get_container_properties().immutable_storage_with_versioning_enabled


def test_protection_is_for_accounts_that_have_it(container):
    refused("InvalidOperation", container.upload_blob, "a", b"one", legal_hold=True)


def test_a_blob_expires(container):
    blob = container.get_blob_client("a")
    blob.upload_blob(b"one")
    # The public method is that of the Data Lake SDK, whose accounts have a hierarchical namespace.
    blob._client.blob.set_expiry(expiry_options="RelativeToNow", expires_on="1000")
    wait_until(lambda: not blob.exists())
    with pytest.raises(ResourceNotFoundError):
        blob.download_blob()
    blob.upload_blob(b"two")
    with pytest.raises(ResourceExistsError):
        blob.upload_blob(b"three")
