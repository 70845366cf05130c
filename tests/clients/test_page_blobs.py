"""Page blobs, through the official SDK."""

import os

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobType, SequenceNumberAction

MIB = 1024 * 1024
TIB = MIB * MIB


def refused(status, code, call, *arguments, **options):
    with pytest.raises(HttpResponseError) as error:
        call(*arguments, **options)
    assert (error.value.status_code, error.value.error_code) == (status, code)


def ranges(blob, **options):
    return [(item.start, item.end, item.cleared) for item in blob.list_page_ranges(**options)]


def test_pages_are_written_cleared_and_listed(container):
    blob = container.get_blob_client("disk")
    blob.create_page_blob(4 * MIB, sequence_number=3, metadata={"Team": "Blue"})
    assert blob.download_blob().readall() == bytes(4 * MIB)
    data = os.urandom(MIB)
    written = blob.upload_page(data, offset=512, length=MIB, validate_content=True)
    assert written["blob_sequence_number"] == 3
    blob.upload_page(b"x" * 512, offset=3 * MIB, length=512, if_sequence_number_lte=3)
    assert ranges(blob) == [(512, MIB + 511, False), (3 * MIB, 3 * MIB + 511, False)]
    assert ranges(blob, results_per_page=1) == ranges(blob)
    assert ranges(blob, offset=MIB, length=512) == [(MIB, MIB + 511, False)]
    blob.clear_page(1024, 512)
    assert ranges(blob)[:2] == [(512, 1023, False), (1536, MIB + 511, False)]
    expected = bytes(512) + data[:512] + bytes(512) + data[1024:] + bytes(2 * MIB - 512) + b"x" * 512
    assert blob.download_blob().readall() == expected.ljust(4 * MIB, b"\0")
    assert blob.download_blob(offset=1000, length=600).readall() == expected[1000:1600]
    refused(412, "SequenceNumberConditionNotMet", blob.upload_page, b"y" * 512, 0, 512, if_sequence_number_lt=3)
    refused(416, "InvalidPageRange", blob.upload_page, b"y" * 512, 4 * MIB, 512)
    properties = blob.get_blob_properties()
    assert properties.blob_type == BlobType.PAGEBLOB
    assert (properties.page_blob_sequence_number, properties.metadata) == (3, {"Team": "Blue"})
    listed = next(iter(container.list_blobs()))
    assert (listed.blob_type, listed.page_blob_sequence_number, listed.size) == (BlobType.PAGEBLOB, 3, 4 * MIB)


def test_a_disk_image_goes_up_and_down_without_its_zeros(container):
    data = os.urandom(MIB) + bytes(14 * MIB) + os.urandom(MIB)
    blob = container.get_blob_client("image")
    blob.upload_blob(data, blob_type="PageBlob", length=len(data), max_concurrency=4)
    assert blob.download_blob(max_concurrency=4).readall() == data
    written = sum(end - start + 1 for start, end, _ in ranges(blob))
    assert 2 * MIB <= written < len(data), "chunks of zeros are not sent"


def test_a_blob_of_a_tebibyte_is_resized_and_its_sequence_number_moved(container):
    blob = container.get_blob_client("sparse")
    blob.create_page_blob(TIB)
    blob.upload_page(b"z" * 512, offset=TIB - 512, length=512)
    assert ranges(blob) == [(TIB - 512, TIB - 1, False)]
    assert blob.download_blob(offset=TIB - 1024, length=1024).readall() == bytes(512) + b"z" * 512
    blob.resize_blob(MIB)
    blob.resize_blob(TIB)
    assert ranges(blob) == []
    assert blob.download_blob(offset=TIB - 512, length=512).readall() == bytes(512)
    for action, number, expected in [
        (SequenceNumberAction.Update, "7", 7),
        (SequenceNumberAction.Max, "5", 7),
        (SequenceNumberAction.Increment, None, 8),
    ]:
        assert blob.set_sequence_number(action, number)["blob_sequence_number"] == expected


def test_what_changed_since_a_snapshot_is_listed(container):
    blob = container.get_blob_client("diffed")
    blob.create_page_blob(MIB)
    blob.upload_page(b"1" * 2048, offset=0, length=2048)
    snapshot = blob.create_snapshot()["snapshot"]
    blob.upload_page(b"2" * 512, offset=512, length=512)
    blob.clear_page(1024, 512)
    blob.upload_page(b"3" * 512, offset=8192, length=512)
    expected = [(512, 1023, False), (1024, 1535, True), (8192, 8703, False)]
    assert sorted(ranges(blob, previous_snapshot=snapshot)) == expected
    old = container.get_blob_client("diffed", snapshot=snapshot)
    assert old.download_blob().readall() == (b"1" * 2048).ljust(MIB, b"\0")
    assert blob.download_blob(offset=0, length=2048).readall() == b"1" * 512 + b"2" * 512 + bytes(512) + b"1" * 512
    blob.delete_blob(delete_snapshots="include")


def test_pages_survive_a_kill(own_server):
    with own_server.client() as service:
        blob = service.create_container("kept").get_blob_client("disk")
        blob.create_page_blob(8 * MIB)
        data = os.urandom(4 * MIB)
        blob.upload_page(data, offset=MIB, length=len(data))
        blob.clear_page(2 * MIB, MIB)
        own_server.restart()
        expected = bytes(MIB) + data[:MIB] + bytes(MIB) + data[2 * MIB :] + bytes(3 * MIB)
        assert blob.download_blob().readall() == expected
        blob.upload_page(b"on" * 256, offset=0, length=512)
        assert ranges(blob)[0] == (0, 511, False)


def test_snapshots_are_copied_one_by_one(container):
    source, target = container.get_blob_client("followed"), container.get_blob_client("following")
    source.create_page_blob(MIB)
    made = []
    for number in (1, 2, 3):
        source.upload_page(bytes([number]) * 1024, offset=number * 512, length=1024)
        snapshot = container.get_blob_client("followed", snapshot=source.create_snapshot())
        copy = target.start_copy_from_url(snapshot.url, incremental_copy=True)
        assert copy["copy_status"] == "success"
        properties = target.get_blob_properties().copy
        assert (properties.id, properties.incremental_copy) == (copy["copy_id"], True)
        copied = container.get_blob_client("following", snapshot=properties.destination_snapshot)
        assert copied.download_blob().readall() == snapshot.download_blob().readall()
        made.append(properties.destination_snapshot)
    listed = [blob for blob in container.list_blobs(include=["snapshots", "copy"]) if blob.name == "following"]
    assert [blob.snapshot for blob in listed] == [*made, None]
    assert all(blob.copy.incremental_copy for blob in listed)
    with pytest.raises(HttpResponseError) as refused:
        target.download_blob()
    assert refused.value.error_code == "OperationNotAllowedOnIncrementalCopyBlob"
    for blob in (source, target):
        blob.delete_blob(delete_snapshots="include")
