"""Append blobs, through the official SDK."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobType, ContentSettings


def refused(status, code, call, *arguments, **options):
    with pytest.raises(HttpResponseError) as error:
        call(*arguments, **options)
    assert (error.value.status_code, error.value.error_code) == (status, code)


def test_an_append_blob_grows_until_it_is_sealed(container):
    blob = container.get_blob_client("grows")
    blob.create_append_blob(ContentSettings(content_type="text/plain"), metadata={"Team": "Blue"})
    first = blob.append_block(b"hello ")
    assert (first["blob_append_offset"], first["blob_committed_block_count"]) == ("0", 1)
    second = blob.append_block(b"world", validate_content=True, appendpos_condition=6, maxsize_condition=11)
    assert (second["blob_append_offset"], second["blob_committed_block_count"]) == ("6", 2)
    refused(412, "AppendPositionConditionNotMet", blob.append_block, b"!", appendpos_condition=6)
    refused(412, "MaxBlobSizeConditionNotMet", blob.append_block, b"!", maxsize_condition=11)
    assert blob.download_blob().readall() == b"hello world"
    assert blob.seal_append_blob()["blob_sealed"]
    refused(409, "BlobIsSealed", blob.append_block, b"!")
    properties = blob.get_blob_properties()
    assert properties.blob_type == BlobType.APPENDBLOB
    assert (properties.append_blob_committed_block_count, properties.is_append_blob_sealed) == (2, True)
    assert (properties.metadata, properties.content_settings.content_type) == ({"Team": "Blue"}, "text/plain")
    listed = next(iter(container.list_blobs()))
    assert (listed.blob_type, listed.is_append_blob_sealed, listed.size) == (BlobType.APPENDBLOB, True, 11)


def test_an_upload_as_an_append_blob_goes_up_in_blocks_and_can_go_on(server, container):
    data = os.urandom(9 * 1024 * 1024 + 7)
    with server.client(max_block_size=1024 * 1024) as service:
        blob = service.get_blob_client(container.container_name, "long")
        blob.upload_blob(data, blob_type="AppendBlob", length=len(data))
        blob.upload_blob(b"tail", blob_type="AppendBlob", overwrite=False)
        assert blob.download_blob().readall() == data + b"tail"
        assert blob.get_blob_properties().append_blob_committed_block_count == 11


def test_appends_of_many_threads_lose_nothing(container):
    blob = container.get_blob_client("shared")
    blob.create_append_blob()
    lines = [f"line {number:04};".encode() for number in range(400)]

    def append(line):
        return int(blob.append_block(line)["blob_append_offset"])

    with ThreadPoolExecutor(32) as pool:
        offsets = list(pool.map(append, lines))
    content = blob.download_blob().readall()
    assert len(content) == sum(map(len, lines))
    assert all(content[offset : offset + len(line)] == line for offset, line in zip(offsets, lines))


def test_what_was_appended_survives_a_kill(own_server):
    with own_server.client() as service:
        blob = service.create_container("kept").get_blob_client("log")
        blob.create_append_blob()
        sizes = (1, 4096, 4097, 1_000_000)
        for size in sizes:
            blob.append_block(bytes([size % 251]) * size)
        own_server.restart()
        assert blob.download_blob().readall() == b"".join(bytes([size % 251]) * size for size in sizes)
        assert blob.append_block(b"on")["blob_append_offset"] == str(sum(sizes))
