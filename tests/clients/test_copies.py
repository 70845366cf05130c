"""Copies of every kind, from the same account and from another server, through the official SDK."""

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, BlobSasPermissions, ContentSettings, generate_blob_sas

from conftest import ACCOUNT, KEY

MIB = 1024 * 1024


def signed(blob):
    permission = BlobSasPermissions(read=True, tag=True)
    expiry = datetime.now(timezone.utc) + timedelta(hours=1)
    names = (ACCOUNT, blob.container_name, blob.blob_name)
    sas = generate_blob_sas(*names, account_key=KEY, permission=permission, expiry=expiry)
    return f"{blob.url}?{sas}"


@pytest.fixture
def source(container):
    blob = container.get_blob_client("sub folder/ü ?%#+&.bin")
    settings = ContentSettings(content_type="text/plain", content_language="de")
    blob.upload_blob(os.urandom(70_000), metadata={"Owner": "ann"}, tags={"a": "1"}, content_settings=settings)
    return blob


@pytest.mark.parametrize("address", [lambda blob: blob.url, signed], ids=["plain", "signed"])
def test_a_copy_within_the_account_is_complete_at_once(container, source, address):
    target = container.get_blob_client("target")
    copy = target.start_copy_from_url(address(source))
    assert copy["copy_status"] == "success"
    properties = target.get_blob_properties()
    assert properties.copy.id == copy["copy_id"]
    assert properties.copy.progress == "70000/70000"
    assert "sig=" not in properties.copy.source
    assert properties.metadata == {"Owner": "ann"}
    assert properties.content_settings.content_type == "text/plain"
    assert target.download_blob().readall() == source.download_blob().readall()
    with pytest.raises(HttpResponseError) as refused:
        target.abort_copy(copy["copy_id"])
    assert refused.value.error_code == "NoPendingCopyOperation"


def test_a_copy_within_the_request(container, source):
    target = container.get_blob_client("target")
    copy = target.start_copy_from_url(signed(source), requires_sync=True, tags="COPY")
    assert copy["copy_status"] == "success"
    assert target.get_blob_tags() == {"a": "1"}


def test_a_blob_is_put_from_a_url(container, source):
    data = source.download_blob().readall()
    target = container.get_blob_client("target")
    md5 = bytearray(hashlib.md5(data).digest())
    target.upload_blob_from_url(signed(source), source_content_md5=md5)
    assert target.download_blob().readall() == data
    assert target.get_blob_properties().content_settings.content_language == "de"
    with pytest.raises(ResourceExistsError):
        target.upload_blob_from_url(signed(source), overwrite=False)
    target.upload_blob_from_url(signed(source), overwrite=True, include_source_blob_properties=False)
    assert target.get_blob_properties().content_settings.content_language is None
    with pytest.raises(HttpResponseError) as refused:
        target.upload_blob_from_url(signed(source), overwrite=True, source_content_md5=bytearray(16))
    assert refused.value.error_code == "Md5Mismatch"


def test_a_block_is_put_from_a_url(container, source):
    data = source.download_blob().readall()
    target = container.get_blob_client("target")
    target.stage_block_from_url("a", signed(source))
    target.stage_block_from_url("b", signed(source), source_offset=1000, source_length=10)
    target.commit_block_list([BlobBlock("b"), BlobBlock("a")])
    assert target.download_blob().readall() == data[1000:1010] + data


def test_conditions_and_missing_sources_are_told(container, source):
    target = container.get_blob_client("target")
    etag = source.get_blob_properties().etag
    target.start_copy_from_url(source.url, source_etag=etag, source_match_condition=MatchConditions.IfNotModified)
    with pytest.raises(HttpResponseError) as refused:
        target.start_copy_from_url(source.url, source_etag="0x1", source_match_condition=MatchConditions.IfNotModified)
    assert refused.value.error_code == "SourceConditionNotMet"
    with pytest.raises(ResourceNotFoundError) as refused:
        target.start_copy_from_url(source.url + "x")
    assert refused.value.error_code == "CannotVerifyCopySource"


def test_of_racing_conditional_copies_one_wins(container):
    target = container.get_blob_client("_delta_log/00000000000000000001.json")
    for racer in range(16):
        container.upload_blob(f"tmp/{racer}", f"racer {racer}".encode())

    def race(racer):
        try:
            target.start_copy_from_url(f"{container.url}/tmp/{racer}", match_condition=MatchConditions.IfMissing)
            return racer
        except ResourceExistsError:
            return None

    with ThreadPoolExecutor(16) as pool:
        winners = [racer for racer in pool.map(race, range(16)) if racer is not None]
    assert len(winners) == 1
    assert target.download_blob().readall() == f"racer {winners[0]}".encode()


def test_a_snapshot_is_promoted_by_copying_it_over_its_base(container, source):
    data = source.download_blob().readall()
    snapshot = container.get_blob_client(source.blob_name, snapshot=source.create_snapshot())
    source.upload_blob(b"newer", overwrite=True)
    source.start_copy_from_url(snapshot.url)
    assert source.download_blob().readall() == data


def test_a_copy_from_another_server_ends_by_itself(container, own_server):
    target = container.get_blob_client("target")
    with own_server.client() as elsewhere:
        source = elsewhere.create_container("theirs").get_blob_client("a b/ü")
        data = os.urandom(MIB) * 20
        source.upload_blob(data, metadata={"owner": "ann"})
        begun = target.start_copy_from_url(signed(source))
        assert begun["copy_status"] == "pending"
        deadline = time.monotonic() + 60
        while (properties := target.get_blob_properties()).copy.status == "pending":
            assert time.monotonic() < deadline
    assert properties.copy.status == "success"
    assert properties.metadata == {"owner": "ann"}
    assert target.download_blob().readall() == data


def test_a_disk_image_comes_from_another_server_without_its_zeros(container, own_server):
    target = container.get_blob_client("disk")
    with own_server.client() as elsewhere:
        source = elsewhere.create_container("theirs").get_blob_client("disk")
        source.create_page_blob(1024 * MIB, sequence_number=5)
        for first in (0, 512 * MIB, 1024 * MIB - 512):
            source.upload_page(b"1" * 512, offset=first, length=512)
        target.start_copy_from_url(signed(source))
        deadline = time.monotonic() + 60
        while (properties := target.get_blob_properties()).copy.status == "pending":
            assert time.monotonic() < deadline
    assert (properties.copy.status, properties.size) == ("success", 1024 * MIB)
    assert properties.page_blob_sequence_number == 5
    ranges = [(page.start, page.end) for page in target.list_page_ranges()]
    assert ranges == [(first, first + 511) for first in (0, 512 * MIB, 1024 * MIB - 512)]


def test_snapshots_of_another_server_are_followed_one_by_one(container, own_server):
    target = container.get_blob_client("following")
    with own_server.client() as elsewhere:
        source = elsewhere.create_container("theirs").get_blob_client("disk")
        source.create_page_blob(MIB)
        copied = []
        for number in (1, 2, 3):
            source.upload_page(bytes([number]) * 1024, offset=number * 512, length=1024)
            source.clear_page(offset=(number - 1) * 512, length=512)
            of = source.create_snapshot()["snapshot"]
            begun = target.start_copy_from_url(f"{signed(source)}&snapshot={of}", incremental_copy=True)
            assert begun["copy_status"] == "pending"
            deadline = time.monotonic() + 60
            while (copy := target.get_blob_properties().copy).status == "pending":
                assert time.monotonic() < deadline
            assert (copy.id, copy.status, copy.incremental_copy) == (begun["copy_id"], "success", True)
            made = container.get_blob_client("following", snapshot=copy.destination_snapshot)
            copied.append((made, of))
            with pytest.raises(HttpResponseError) as refused:
                target.start_copy_from_url(f"{signed(source)}&snapshot={of}", incremental_copy=True)
            assert refused.value.error_code == "IncrementalCopyOfEarlierVersionSnapshotNotAllowed"
        for made, of in copied:
            snapshot = elsewhere.get_blob_client("theirs", "disk", snapshot=of)
            assert made.download_blob().readall() == snapshot.download_blob().readall()
