"""The change feed, read by the official reader of it."""

import time
from datetime import datetime, timedelta, timezone

import pytest
from azure.storage.blob.changefeed import ChangeFeedClient

from conftest import Server


@pytest.fixture
def fed(tmp_path):
    """A server that records the changes of its account."""
    config = tmp_path / "lazuli.toml"
    config.write_text("[accounts.devstoreaccount1]\nchange_feed = true\nversioning = true\n")
    server = Server(tmp_path / "data", "--config", config).start()
    yield server
    server.kill()


def reader(fed):
    return ChangeFeedClient.from_connection_string(fed.connection_string)


def changes(fed, **options):
    return list(reader(fed).list_changes(**options))


def wait_for(fed, count):
    deadline = time.monotonic() + 60
    while len(read := changes(fed)) < count:
        assert time.monotonic() < deadline, read
        time.sleep(0.1)
    return read


def test_the_reader_tells_what_happened(fed):
    with fed.client() as service:
        container = service.create_container("photos")
        blob = container.get_blob_client("dir/ü #1.txt")
        put = blob.upload_blob(b"hello", client_request_id="mine")
        blob.set_blob_metadata({"a": "b"})
        snapshot = blob.create_snapshot()
        blob.set_standard_blob_tier("Cool")
        blob.delete_blob(delete_snapshots="include")
    read = wait_for(fed, 5)
    assert [(change["eventType"], change["data"]["api"]) for change in read] == [
        ("BlobCreated", "PutBlob"),
        ("BlobPropertiesUpdated", "SetBlobMetadata"),
        ("BlobSnapshotCreated", "SnapshotBlob"),
        ("BlobTierChanged", "SetBlobTier"),
        ("BlobDeleted", "DeleteBlob"),
    ]
    first = read[0]
    assert first["schemaVersion"] == 4
    assert first["subject"] == "/blobServices/default/containers/photos/blobs/dir/ü #1.txt"
    assert first["data"]["etag"] == put["etag"].strip('"')
    assert first["data"]["clientRequestId"] == "mine"
    assert first["data"]["requestId"] == put["request_id"]
    assert first["data"]["blobVersion"] == put["version_id"]
    assert (first["data"]["contentLength"], first["data"]["blobType"]) == (5, "BlockBlob")
    assert read[2]["data"]["snapshot"] == snapshot["snapshot"]
    assert read[3]["data"]["blobTier"] == "Cool"
    sequencers = [change["data"]["sequencer"] for change in read]
    assert sequencers == sorted(sequencers)
    assert len({change["id"] for change in read}) == len(read)
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    assert changes(fed, start_time=now + timedelta(hours=2)) == []
    assert len(changes(fed, start_time=now - timedelta(hours=2), end_time=now + timedelta(hours=2))) == 5


def test_a_reader_goes_on_where_it_stopped(fed):
    with fed.client() as service:
        container = service.create_container("photos")
        for number in range(25):
            container.upload_blob(f"{number:03}", b"x")
        wait_for(fed, 25)
        pages = reader(fed).list_changes(results_per_page=10).by_page()
        seen = list(next(pages))
        token = pages.continuation_token
        # More is appended to the same file, by a server that was killed meanwhile.
        fed.restart()
    with fed.client() as service:
        container = service.get_container_client("photos")
        for number in range(25, 40):
            container.upload_blob(f"{number:03}", b"x")
        wait_for(fed, 40)
        while len(seen) < 40:
            pages = reader(fed).list_changes(results_per_page=10).by_page(continuation_token=token)
            seen += next(pages)
            token = pages.continuation_token
    names = [change["subject"].rsplit("/", 1)[1] for change in seen]
    assert names == [f"{number:03}" for number in range(40)]
