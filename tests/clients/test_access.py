"""Shared access signatures, stored policies, tokens and delegation keys, as the official SDK makes and sends them."""

import base64
import datetime
import json
import time
import uuid

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceExistsError
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import (
    AccessPolicy,
    AccountSasPermissions,
    BlobClient,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

from conftest import ACCOUNT, KEY, Server

TENANT = "22222222-2222-2222-2222-222222222222"
ANN = "11111111-1111-1111-1111-111111111111"


def soon(hours=1):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=hours)


def code(error):
    return error.value.error_code


@pytest.fixture
def blob(container):
    blob = container.get_blob_client("folder/ü &+%.txt")
    blob.upload_blob(b"one", metadata={"owner": "ann"}, tags={"colour": "blue"})
    return blob


def test_a_blob_sas_reads_and_nothing_else(container, blob):
    sas = generate_blob_sas(
        ACCOUNT,
        container.container_name,
        blob.blob_name,
        account_key=KEY,
        permission=BlobSasPermissions(read=True),
        start=soon(-1),
        expiry=soon(),
        ip="127.0.0.0-127.0.0.255",
        protocol="https,http",
        content_disposition="attachment",
        content_type="text/x-own",
    )
    guest = BlobClient.from_blob_url(f"{blob.url}?{sas}")
    assert guest.download_blob().readall() == b"one"
    properties = guest.get_blob_properties()
    assert properties.content_settings.content_type == "text/x-own"
    assert properties.content_settings.content_disposition == "attachment"
    assert properties.tag_count is None and blob.get_blob_properties().tag_count == 1
    for refused in (guest.delete_blob, guest.get_blob_tags, lambda: guest.upload_blob(b"two", overwrite=True)):
        with pytest.raises(HttpResponseError) as error:
            refused()
        assert code(error) == "AuthorizationPermissionMismatch"


def test_a_container_sas_creates_appends_lists_and_tags(container, blob):
    letters = ContainerSasPermissions(
        read=True, create=True, list=True, tag=True, delete=True, filter_by_tags=True, add=True
    )
    sas = generate_container_sas(ACCOUNT, container.container_name, account_key=KEY, permission=letters, expiry=soon())
    small = {"max_block_size": 4096, "max_single_put_size": 4096}
    guest = ContainerClient.from_container_url(f"{container.url}?{sas}", **small)
    assert [found.name for found in guest.list_blobs(include=["tags", "metadata"])] == [blob.blob_name]
    new = guest.get_blob_client("new")
    new.upload_blob(b"x" * 100_000, tags={"colour": "red"})
    assert guest.get_blob_client("new").get_blob_tags() == {"colour": "red"}
    with pytest.raises(HttpResponseError) as error:
        new.upload_blob(b"y", overwrite=True)
    assert code(error) == "UnauthorizedBlobOverwrite"
    with pytest.raises(ResourceExistsError):
        new.upload_blob(b"y")
    new.delete_blob()
    with pytest.raises(HttpResponseError) as error:
        guest.get_container_properties()
    assert code(error) == "AuthorizationFailure"


def test_an_account_sas_runs_the_account(server):
    letters = AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True, tag=True)
    sas = generate_account_sas(
        ACCOUNT, KEY, ResourceTypes(service=True, container=True, object=True), letters, expiry=soon()
    )
    with BlobServiceClient(f"http://127.0.0.1:{server.ports['blob']}/{ACCOUNT}", credential=sas) as guest:
        container = guest.create_container(f"c{uuid.uuid4().hex}")
        container.upload_blob("a", b"one", tags={"a": "b"})
        assert container.container_name in [found.name for found in guest.list_containers()]
        assert guest.get_account_information()["account_kind"]
        assert guest.get_service_properties()["cors"] == []
        with pytest.raises(HttpResponseError) as error:
            container.get_container_access_policy()
        assert code(error) == "AuthorizationFailure"
        container.delete_container()
    few = generate_account_sas(ACCOUNT, KEY, ResourceTypes(object=True), letters, expiry=soon(), services="q")
    with BlobServiceClient(f"http://127.0.0.1:{server.ports['blob']}/{ACCOUNT}", credential=few) as guest:
        with pytest.raises(HttpResponseError) as error:
            list(guest.list_containers())
        assert code(error) in ("AuthorizationServiceMismatch", "AuthorizationResourceTypeMismatch")


def test_a_stored_policy_opens_and_closes(container, blob):
    sas = generate_container_sas(ACCOUNT, container.container_name, account_key=KEY, policy_id="readers")
    guest = BlobClient.from_blob_url(f"{blob.url}?{sas}")
    policy = AccessPolicy(permission=ContainerSasPermissions(read=True), start=soon(-1), expiry=soon())
    container.set_container_access_policy({"readers": policy})
    assert guest.download_blob().readall() == b"one"
    container.set_container_access_policy({})
    with pytest.raises(ClientAuthenticationError) as error:
        guest.download_blob()
    assert code(error) == "AuthenticationFailed"


def test_an_expired_sas_says_when(container, blob):
    sas = generate_blob_sas(
        ACCOUNT, container.container_name, blob.blob_name, account_key=KEY, permission="r", expiry=soon(-1)
    )
    with pytest.raises(ClientAuthenticationError) as error:
        BlobClient.from_blob_url(f"{blob.url}?{sas}").download_blob()
    assert code(error) == "AuthenticationFailed" and "Signature not valid in the specified time frame" in str(error.value)


class Unwrapped(RequestsTransport):
    """Sends what is meant for TLS without: clients give tokens to nothing else, and the server takes them from here."""

    def send(self, request, **options):
        request.url = request.url.replace("https://", "http://", 1)
        return super().send(request, **options)


class Tokens:
    """A credential as identity libraries have it."""

    def get_token(self, *scopes, **_):
        assert scopes == ("https://storage.azure.com/.default",)
        now = int(time.time())
        claims = {
            "iss": f"https://sts.windows.net/{TENANT}/",
            "aud": "https://storage.azure.com",
            "nbf": now - 60,
            "exp": now + 3600,
            "tid": TENANT,
            "oid": ANN,
        }
        encoded = [json.dumps(part).encode() for part in ({"alg": "RS256", "typ": "JWT"}, claims)]
        parts = [base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (*encoded, b"signature")]
        return AccessToken(".".join(parts), now + 3600)


def test_a_token_lets_in_and_gets_a_key_to_sign_with(tmp_path):
    server = Server(tmp_path / "data", "--oauth", "basic").start()
    url = f"https://127.0.0.1:{server.ports['blob']}/{ACCOUNT}"
    try:
        with BlobServiceClient(url, credential=Tokens(), transport=Unwrapped()) as owner:
            container = owner.create_container("photos")
            blob = container.get_blob_client("a.jpg")
            blob.upload_blob(b"one")
            key = owner.get_user_delegation_key(soon(-1), soon())
            assert (key.signed_oid, key.signed_tid, key.signed_service) == (ANN, TENANT, "b")
            for name, make in (("a.jpg", generate_blob_sas), (None, generate_container_sas)):
                names = {"blob_name": name} if name else {}
                sas = make(
                    ACCOUNT, "photos", **names, user_delegation_key=key, permission="r", expiry=soon(),
                    content_language="de",
                )
                guest = BlobClient.from_blob_url(f"{blob.url}?{sas}", transport=Unwrapped())
                assert guest.download_blob().readall() == b"one"
                assert guest.get_blob_properties().content_settings.content_language == "de"
                with pytest.raises(HttpResponseError) as error:
                    guest.delete_blob()
                assert code(error) == "AuthorizationPermissionMismatch"
        with server.client() as service, pytest.raises(ClientAuthenticationError) as error:
            service.get_user_delegation_key(soon(-1), soon())
        assert code(error) == "AuthenticationFailed"
    finally:
        server.stop()
