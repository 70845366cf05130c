"""Uploads, downloads, listings, metadata and properties, through the official SDK."""

import hashlib
import io
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, BlobServiceClient, ContentSettings, PartialBatchErrorException

MIB = 1024 * 1024


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 65_536, MIB - 1, 5 * MIB + 3])
def test_a_blob_comes_back_as_it_was_sent(container, size):
    data = os.urandom(size)
    blob = container.get_blob_client("sub folder/ü ?%#+&.bin")
    blob.upload_blob(data)
    assert blob.download_blob().readall() == data
    properties = blob.get_blob_properties()
    assert properties.size == size
    assert bytes(properties.content_settings.content_md5) == hashlib.md5(data).digest()


@pytest.mark.parametrize("size", [9 * MIB + 7, 256 * MIB])
def test_a_large_blob_goes_up_and_down_in_parallel_blocks(server, size):
    options = {"max_single_put_size": 4 * MIB, "max_block_size": 4 * MIB, "max_chunk_get_size": 4 * MIB}
    with server.client(**options) as service:
        container = service.create_container(f"large{size}")
        data = os.urandom(MIB) * (size // MIB) + os.urandom(size % MIB)
        blob = container.get_blob_client("large")
        blob.upload_blob(data, max_concurrency=4)
        sent, got = hashlib.sha256(data), hashlib.sha256()
        for chunk in blob.download_blob(max_concurrency=4).chunks():
            got.update(chunk)
        assert got.digest() == sent.digest()
        part = blob.download_blob(offset=5 * MIB - 3, length=7).readall()
        assert part == data[5 * MIB - 3 : 5 * MIB + 4]
        container.delete_container()


def test_a_listing_of_12000_blobs_is_whole_and_in_order(container):
    names = [f"{folder:03}/{number:03}" for folder in range(120) for number in range(100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: container.upload_blob(name, b"x"), names))
    assert list(container.list_blob_names()) == names
    pages = [len(list(page)) for page in container.list_blobs(results_per_page=5000).by_page()]
    assert pages == [5000, 5000, 2000]
    assert [blob.name for blob in container.list_blobs(name_starts_with="007/")] == names[700:800]
    folders = [item.name for item in container.walk_blobs(delimiter="/")]
    assert folders == [f"{folder:03}/" for folder in range(120)]
    assert [item.name for item in container.walk_blobs(name_starts_with="119/")] == names[-100:]


def test_names_that_xml_cannot_carry_are_listed(container):
    names = ["a\x01/b c", "a\x01/\ufffe", "a%41 ü&<>"]
    for name in names:
        container.upload_blob(name, b"1")
    assert [blob.name for blob in container.list_blobs()] == sorted(names)
    assert [item.name for item in container.walk_blobs()] == ["a\x01/", "a%41 ü&<>"]


def test_metadata_keeps_its_case_and_properties_are_kept(container):
    blob = container.get_blob_client("described")
    metadata = {"Owner": "Ann", "camelCase": "One Two", "lower": "x"}
    settings = ContentSettings(
        content_type="text/plain",
        content_language="en",
        content_encoding="identity",
        content_disposition="inline",
        cache_control="no-cache",
    )
    blob.upload_blob(b"hello", metadata=metadata, content_settings=settings)
    properties = blob.get_blob_properties()
    assert properties.metadata == metadata
    assert properties.content_settings.content_type == "text/plain"
    assert properties.content_settings.content_language == "en"
    assert properties.content_settings.content_encoding == "identity"
    assert properties.content_settings.content_disposition == "inline"
    assert properties.content_settings.cache_control == "no-cache"
    listed = next(iter(container.list_blobs(include=["metadata"])))
    assert listed.metadata == metadata
    assert listed.etag == properties.etag.strip('"')
    blob.set_blob_metadata({"only": "this"})
    assert blob.get_blob_properties().metadata == {"only": "this"}
    blob.set_http_headers(ContentSettings(content_type="text/html"))
    changed = blob.get_blob_properties()
    assert changed.content_settings.content_type == "text/html"
    assert changed.content_settings.cache_control is None
    assert changed.metadata == {"only": "this"}
    assert changed.creation_time == properties.creation_time
    assert changed.etag != properties.etag


def test_containers_are_created_described_listed_and_deleted(service):
    container = service.create_container("described-container", metadata={"Team": "Blue"}, public_access="blob")
    with pytest.raises(ResourceExistsError) as refused:
        service.create_container("described-container")
    assert refused.value.error_code == "ContainerAlreadyExists"
    properties = container.get_container_properties()
    assert properties.metadata == {"Team": "Blue"}
    assert properties.public_access == "blob"
    container.set_container_metadata({"team": "red"})
    listed = list(service.list_containers(name_starts_with="described-", include_metadata=True))
    assert [(item.name, item.metadata) for item in listed] == [("described-container", {"team": "red"})]
    container.set_container_access_policy(signed_identifiers={})
    assert container.get_container_access_policy() == {"public_access": None, "signed_identifiers": []}
    container.delete_container()
    with pytest.raises(ResourceNotFoundError) as gone:
        container.get_container_properties()
    assert gone.value.error_code == "ContainerNotFound"


def test_a_public_container_is_read_without_credentials_and_a_private_one_is_not(server, service):
    account = server.endpoint("blob")
    for name, access in [("open", "container"), ("closed", None)]:
        container = service.create_container(name, public_access=access)
        container.upload_blob("a", b"1")
        anonymous = BlobServiceClient(account).get_container_client(name)
        if access:
            assert anonymous.download_blob("a").readall() == b"1"
            assert list(anonymous.list_blob_names()) == ["a"]
        else:
            with pytest.raises(HttpResponseError) as refused:
                anonymous.download_blob("a")
            assert (refused.value.status_code, refused.value.error_code) == (401, "NoAuthenticationInformation")
        container.delete_container()


def test_blocks_are_staged_listed_and_committed(container):
    blob = container.get_blob_client("blocks")
    for name, data in [("b", b"world"), ("a", b"hello ")]:
        blob.stage_block(name, data)
    committed, uncommitted = blob.get_block_list("all")
    assert (committed, sorted(block.id for block in uncommitted)) == ([], ["a", "b"])
    blob.commit_block_list([BlobBlock("a"), BlobBlock("b")])
    assert blob.download_blob().readall() == b"hello world"
    committed, uncommitted = blob.get_block_list("all")
    assert ([block.id for block in committed], uncommitted) == (["a", "b"], [])
    with pytest.raises(HttpResponseError) as refused:
        blob.commit_block_list([BlobBlock("unknown")])
    assert refused.value.error_code == "InvalidBlockList"


def test_many_blobs_are_deleted_at_once(service, container):
    names = [f"ü {number}" for number in range(20)]
    for name in names:
        container.upload_blob(name, b"1")
    answers = list(container.delete_blobs(*names[:10], "absent", raise_on_any_failure=False))
    assert [answer.status_code for answer in answers] == [202] * 10 + [404]
    assert answers[10].headers["x-ms-error-code"] == "BlobNotFound"
    with pytest.raises(PartialBatchErrorException):
        container.delete_blobs(names[10], names[0])
    container.delete_blobs(*[blob.name for blob in container.list_blobs()])
    assert list(container.list_blob_names()) == []


def test_what_is_not_built_says_so(service, container):
    with pytest.raises(HttpResponseError) as refused:
        service._rename_container(container.container_name, "renamed", retry_total=0)
    assert (refused.value.status_code, refused.value.error_code) == (501, "NotImplemented")
    assert "Rename" in refused.value.message


def test_a_wrong_key_is_refused(server):
    wrong = server.connection_string.replace("AccountKey=Eby8", "AccountKey=Aby8")
    with BlobServiceClient.from_connection_string(wrong) as client, pytest.raises(HttpResponseError) as refused:
        client.create_container("never")
    assert (refused.value.status_code, refused.value.error_code) == (403, "AuthenticationFailed")


@pytest.mark.parametrize("size", [0, 5, 100_000, 9 * MIB + 7])
def test_content_goes_both_ways_with_a_sum_for_each_segment(container, size):
    data = os.urandom(size)
    blob = container.get_blob_client("summed")
    blob.upload_blob(io.BytesIO(data), length=size, validate_content="crc64")
    assert blob.download_blob().readall() == data
    assert blob.download_blob(validate_content="crc64").readall() == data
    if size:
        part = blob.download_blob(offset=1, length=size // 2, validate_content="crc64").readall()
        assert part == data[1 : 1 + size // 2]
        blob.stage_block("a", io.BytesIO(data), length=size, validate_content="crc64")
        blob.commit_block_list([BlobBlock("a")])
        assert blob.download_blob(validate_content="crc64").readall() == data
