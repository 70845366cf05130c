"""Conditions, leases, restarts: what the project exists for, through the official SDK."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError
from azure.storage.blob import BlobClient, BlobLeaseClient, ContainerClient


def refused(status, code, call, *arguments, **options):
    with pytest.raises(HttpResponseError) as error:
        call(*arguments, **options)
    assert (error.value.status_code, error.value.error_code) == (status, code)


def when(condition, seconds):
    """Waits until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        time.sleep(0.2)


def test_optimistic_concurrency_as_documented(container):
    """Two clients read version one; the second to write gets 412."""
    blob = container.get_blob_client("shared")
    blob.upload_blob(b"original")
    etag = blob.get_blob_properties().etag
    blob.upload_blob(b"by another client", overwrite=True)
    refused(
        412, "ConditionNotMet", blob.upload_blob, b"stale", overwrite=True,
        etag=etag, match_condition=MatchConditions.IfNotModified,
    )
    assert blob.download_blob().readall() == b"by another client"
    etag = blob.get_blob_properties().etag
    blob.upload_blob(b"fresh", overwrite=True, etag=etag, match_condition=MatchConditions.IfNotModified)
    assert blob.download_blob().readall() == b"fresh"


def test_pessimistic_concurrency_as_documented(container):
    """A leased blob is written only with the lease id; a second acquire is a conflict."""
    blob = container.get_blob_client("leased")
    blob.upload_blob(b"1")
    lease = blob.acquire_lease(15)
    refused(412, "LeaseIdMissing", blob.upload_blob, b"2", overwrite=True)
    refused(409, "LeaseAlreadyPresent", blob.acquire_lease, 15)
    blob.upload_blob(b"3", overwrite=True, lease=lease)
    assert blob.download_blob().readall() == b"3"
    lease.release()
    blob.upload_blob(b"4", overwrite=True)


def test_a_leased_container_is_deleted_only_with_the_lease(service):
    container = service.create_container(f"leased{uuid.uuid4().hex}")
    lease = container.acquire_lease(60)
    refused(412, "LeaseIdMissing", container.delete_container)
    container.upload_blob("inside", b"1")
    container.delete_container(lease=lease)


def test_every_lease_action(container):
    blob = container.get_blob_client("actions")
    blob.upload_blob(b"1")
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    lease = BlobLeaseClient(blob, first)
    lease.acquire(-1)
    properties = blob.get_blob_properties()
    assert (properties.lease.state, properties.lease.status, properties.lease.duration) == ("leased", "locked", "infinite")
    lease.renew()
    lease.change(second)
    assert lease.id == second
    assert lease.break_lease(30) in (29, 30)
    assert blob.get_blob_properties().lease.state == "breaking"
    refused(409, "LeaseAlreadyPresent", blob.acquire_lease, 15)
    lease.release()
    assert blob.get_blob_properties().lease.state == "available"


def test_conditions_on_reads(container):
    blob = container.get_blob_client("read")
    blob.upload_blob(b"1")
    properties = blob.get_blob_properties()
    refused(
        304, "ConditionNotMet", blob.download_blob, etag=properties.etag, match_condition=MatchConditions.IfModified
    )
    refused(412, "ConditionNotMet", blob.download_blob, etag='"0x1"', match_condition=MatchConditions.IfNotModified)
    refused(304, "ConditionNotMet", blob.download_blob, if_modified_since=properties.last_modified)
    blob.download_blob(if_unmodified_since=properties.last_modified).readall()


def test_exactly_one_racing_create_wins(container):
    def create(number):
        try:
            container.upload_blob("raced", str(number).encode(), overwrite=False)
            return number
        except ResourceExistsError:
            return None

    with ThreadPoolExecutor(16) as pool:
        winners = [number for number in pool.map(create, range(16)) if number is not None]
    assert len(winners) == 1
    assert container.download_blob("raced").readall() == str(winners[0]).encode()


def test_increments_by_etag_lose_none(container):
    blob = container.get_blob_client("counter")
    blob.upload_blob(b"0")

    def increment(_):
        while True:
            download = blob.download_blob()
            value = int(download.readall()) + 1
            try:
                return blob.upload_blob(
                    str(value).encode(), overwrite=True,
                    etag=download.properties.etag, match_condition=MatchConditions.IfNotModified,
                )
            except ResourceModifiedError:
                continue

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(increment, range(100)))
    assert blob.download_blob().readall() == b"100"


def test_leases_survive_a_kill_and_expire_on_time(own_server):
    with own_server.client() as service:
        container = service.create_container("leases")
        for name in ("short", "infinite"):
            container.upload_blob(name, b"1")
        start = time.monotonic()
        short = container.get_blob_client("short").acquire_lease(15)
        infinite = container.get_blob_client("infinite").acquire_lease(-1)
        own_server.restart()
        refused(412, "LeaseIdMissing", container.upload_blob, "short", b"2", overwrite=True)
        refused(412, "LeaseIdMissing", container.upload_blob, "infinite", b"2", overwrite=True)
        container.upload_blob("short", b"3", overwrite=True, lease=short)
        blob = container.get_blob_client("short")
        when(lambda: blob.get_blob_properties().lease.state == "expired", 30)
        assert time.monotonic() - start >= 14.5, "a lease of 15 s lasts that long"
        blob.upload_blob(b"4", overwrite=True)
        container.get_blob_client("infinite").delete_blob(lease=infinite)


def test_everything_acknowledged_survives_a_kill(own_server):
    with own_server.client() as service:
        container = service.create_container("kept", metadata={"Kept": "yes"})
        bodies = {f"blob{size}": bytes([size % 251]) * size for size in (0, 1, 4096, 4097, 100_000, 5_000_000)}
        for name, body in bodies.items():
            container.upload_blob(name, body, metadata={"Size": str(len(body))})
        container.upload_blob("gone", b"1")
        container.delete_blob("gone")
        container.get_blob_client("staged").stage_block("a", b"half")
        own_server.restart()
        assert {blob.name for blob in container.list_blobs()} == set(bodies)
        assert container.get_container_properties().metadata == {"Kept": "yes"}
        for name, body in bodies.items():
            download = container.download_blob(name)
            assert download.readall() == body
            assert download.properties.metadata == {"Size": str(len(body))}
        assert [block.id for block in container.get_blob_client("staged").get_block_list("uncommitted")[1]] == ["a"]


def test_the_dedicated_clients_work_from_a_connection_string(server):
    container = ContainerClient.from_connection_string(server.connection_string, "direct")
    container.create_container()
    blob = BlobClient.from_connection_string(server.connection_string, "direct", "a")
    blob.upload_blob(b"1")
    assert blob.exists() and container.exists()
    blob.delete_blob()
    assert not blob.exists()
    container.delete_container()
