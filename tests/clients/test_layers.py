"""Snapshots, versions, soft delete and restoring, through the official SDK."""

import uuid

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import RetentionPolicy

from conftest import ACCOUNT, Server


def server_with(folder, *policy):
    """A server whose account's owner has set `policy`, lines of its table in the configuration."""
    config = folder / "lazuli.toml"
    config.write_text("\n".join([f"[accounts.{ACCOUNT}]", *policy]))
    return Server(folder / "data", "--config", config).start()


@pytest.fixture(scope="module")
def versioned(tmp_path_factory):
    """A server that keeps versions."""
    server = server_with(tmp_path_factory.mktemp("versioned"), "versioning = true")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def keeping(tmp_path_factory):
    """A server that keeps deleted blobs and containers."""
    server = server_with(tmp_path_factory.mktemp("keeping"), "container_retention_days = 7")
    with server.client() as service:
        service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=7))
    yield server
    assert server.stop() == 0


def new_container(service):
    return service.create_container(f"c{uuid.uuid4().hex}")


def refused(code, call, *arguments, **options):
    with pytest.raises(HttpResponseError) as error:
        call(*arguments, **options)
    assert error.value.error_code == code


def test_a_snapshot_is_taken_read_listed_and_deleted(container):
    blob = container.get_blob_client("a")
    blob.upload_blob(b"one", metadata={"of": "base"})
    taken = blob.create_snapshot()
    described = blob.create_snapshot(metadata={"of": "snapshot"})
    assert taken["etag"] == blob.get_blob_properties().etag != described["etag"]
    blob.upload_blob(b"two", overwrite=True)
    snapshot = container.get_blob_client("a", snapshot=taken["snapshot"])
    assert snapshot.download_blob().readall() == b"one"
    properties = snapshot.get_blob_properties()
    assert (properties.snapshot, properties.metadata, properties.lease.state) == (taken["snapshot"], {"of": "base"}, None)
    listed = [(item.name, item.snapshot) for item in container.list_blobs(include=["snapshots"])]
    assert listed == [("a", taken["snapshot"]), ("a", described["snapshot"]), ("a", None)]
    assert [item.snapshot for item in container.list_blobs()] == [None]
    refused("SnapshotsPresent", blob.delete_blob)
    refused("InvalidQueryParameterValue", snapshot.set_blob_metadata, {"a": "b"})
    snapshot.delete_blob()
    refused("BlobNotFound", snapshot.download_blob)
    blob.delete_blob(delete_snapshots="only")
    assert [item.snapshot for item in container.list_blobs(include=["snapshots"])] == [None]
    blob.create_snapshot()
    blob.delete_blob(delete_snapshots="include")
    assert list(container.list_blobs(include=["snapshots"])) == []


def test_every_write_keeps_a_version(versioned):
    with versioned.client() as service:
        container = new_container(service)
        blob = container.get_blob_client("a")
        first = blob.upload_blob(b"one")["version_id"]
        second = blob.set_blob_metadata({"k": "v"})["version_id"]
        third = blob.upload_blob(b"three", overwrite=True)["version_id"]
        current = blob.get_blob_properties()
        assert (current.version_id, current.is_current_version) == (third, True)
        for version, content in [(first, b"one"), (second, b"one"), (third, b"three")]:
            assert blob.download_blob(version_id=version).readall() == content
        listed = [(item.version_id, bool(item.is_current_version)) for item in container.list_blobs(include=["versions"])]
        assert listed == [(first, False), (second, False), (third, True)]
        taken = blob.create_snapshot()
        assert taken["version_id"] == blob.get_blob_properties().version_id > third
        refused("OperationNotAllowedOnRootBlob", blob.delete_blob, version_id=taken["version_id"])
        blob.delete_blob(delete_snapshots="include")
        refused("BlobNotFound", blob.download_blob)
        assert list(container.list_blobs()) == []
        (gone,) = container.list_blobs(include=["deletedwithversions"])
        assert (gone.name, gone.has_versions_only) == ("a", True)
        for item in list(container.list_blobs(include=["versions"])):
            blob.delete_blob(version_id=item.version_id)
        assert list(container.list_blobs(include=["versions", "deletedwithversions"])) == []


def test_versions_survive_a_kill(tmp_path):
    server = server_with(tmp_path, "versioning = true")
    with server.client() as service:
        blob = new_container(service).get_blob_client("a")
        versions = [blob.upload_blob(bytes([number]) * 9000, overwrite=True)["version_id"] for number in range(5)]
    server.restart()
    with server.client() as service:
        blob = service.get_blob_client(blob.container_name, "a")
        for number, version in enumerate(versions):
            assert blob.download_blob(version_id=version).readall() == bytes([number]) * 9000
    server.kill()


def test_a_deleted_blob_comes_back_with_its_snapshots(keeping):
    with keeping.client() as service:
        container = new_container(service)
        blob = container.get_blob_client("a")
        blob.upload_blob(b"one", metadata={"k": "v"})
        snapshot = blob.create_snapshot()["snapshot"]
        blob.delete_blob(delete_snapshots="include")
        refused("BlobNotFound", blob.get_blob_properties)
        assert list(container.list_blobs(include=["snapshots"])) == []
        (deleted,) = container.list_blobs(include=["deleted"])
        assert (deleted.deleted, deleted.remaining_retention_days) == (True, 6)
        assert deleted.deleted_time is not None
        listed = container.list_blobs(include=["deleted", "snapshots"])
        assert [(item.snapshot, item.deleted) for item in listed] == [(snapshot, True), (None, True)]
        blob.undelete_blob()
        assert blob.download_blob().readall() == b"one"
        assert blob.get_blob_properties().metadata == {"k": "v"}
        assert container.get_blob_client("a", snapshot=snapshot).download_blob().readall() == b"one"
        blob.upload_blob(b"two", overwrite=True)
        (overwritten,) = [item for item in container.list_blobs(include=["deleted", "snapshots"]) if item.deleted]
        blob.undelete_blob()
        old = container.get_blob_client("a", snapshot=overwritten.snapshot)
        assert old.download_blob().readall() == b"one"
        refused("BlobNotFound", container.get_blob_client("never").undelete_blob)


def test_a_deleted_container_comes_back_with_its_blobs(keeping):
    with keeping.client() as service:
        container = new_container(service)
        name = container.container_name
        container.upload_blob("a", b"one")
        container.delete_container()
        with pytest.raises(ResourceNotFoundError):
            container.get_container_properties()
        assert list(service.list_containers(name_starts_with=name)) == []
        (deleted,) = service.list_containers(name_starts_with=name, include_deleted=True)
        assert deleted.deleted
        service.create_container(name)
        with pytest.raises(ResourceExistsError):
            service.undelete_container(name, deleted.version)
        container.delete_container()
        restored = service.undelete_container(name, deleted.version)
        assert restored.get_blob_client("a").download_blob().readall() == b"one"


def test_pages_end_and_begin_inside_a_name(container):
    for name in ["a", "b/1", "b/2"]:
        blob = container.get_blob_client(name)
        blob.upload_blob(b"one")
        for _ in range(5):
            blob.create_snapshot()
    whole = [(item.name, item.snapshot) for item in container.list_blobs(include=["snapshots"])]
    assert len(whole) == 18
    for size in [1, 4, 7]:
        pages = container.list_blobs(include=["snapshots"], results_per_page=size).by_page()
        assert [(item.name, item.snapshot) for page in pages for item in page] == whole
    folders = sorted(item.name for item in container.walk_blobs(include=["snapshots"], delimiter="/"))
    assert folders == ["a"] * 6 + ["b/"]
