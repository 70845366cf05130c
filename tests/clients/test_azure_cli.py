"""The Azure command line, given nothing but a connection string. Only the long run installs it: it is 700 MB large."""

import json
import os
import shutil
import subprocess
import uuid

import pytest

from conftest import ROOT

INSTALLED = ROOT / ".tools" / "azure-cli" / "bin"
AZ = shutil.which("az", path=f"{os.environ.get('PATH', '')}:{INSTALLED}")


@pytest.fixture
def az(server, tmp_path):
    """Runs `az storage …` and gives what it prints, read as JSON."""
    if AZ is None:
        pytest.skip("NOT TESTED: azure-cli is not installed; scripts/test --long installs it")
    environment = os.environ | {
        "AZURE_STORAGE_CONNECTION_STRING": server.connection_string,
        "AZURE_CONFIG_DIR": str(tmp_path / "config"),
        "AZURE_CORE_COLLECT_TELEMETRY": "0",
        "AZURE_CORE_ONLY_SHOW_ERRORS": "1",
    }

    def run(*arguments, refused=None):
        command = [AZ, "storage", *map(str, arguments), "--output", "json"]
        done = subprocess.run(command, env=environment, text=True, capture_output=True)
        if refused:
            assert done.returncode != 0 and refused in done.stderr, done.stderr
            return None
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    return run


def unique(prefix):
    return prefix + uuid.uuid4().hex


def test_blobs_go_up_and_down_alone_and_as_a_tree(az, tmp_path):
    container, content = unique("c"), os.urandom(3_000_000)
    tree, copy = tmp_path / "tree", tmp_path / "copy"
    (tree / "a" / "b").mkdir(parents=True)
    copy.mkdir()
    for name in ["one.txt", "a/two.txt", "a/b/three.txt"]:
        (tree / name).write_text(name)
    (tmp_path / "large").write_bytes(content)
    assert az("container", "create", "--name", container)["created"]
    assert az("container", "exists", "--name", container)["exists"]
    blob = ["--container-name", container, "--name", "large"]
    az("blob", "upload", *blob, "--file", tmp_path / "large", "--no-progress")
    az("blob", "download", *blob, "--file", tmp_path / "back", "--no-progress")
    assert (tmp_path / "back").read_bytes() == content
    az("blob", "upload-batch", "--destination", container, "--source", tree, "--no-progress")
    listed = az("blob", "list", "--container-name", container, "--prefix", "a/")
    assert [found["name"] for found in listed] == ["a/b/three.txt", "a/two.txt"]
    az("blob", "download-batch", "--source", container, "--destination", copy, "--pattern", "a/*", "--no-progress")
    assert (copy / "a" / "b" / "three.txt").read_text() == "a/b/three.txt"
    az("blob", "metadata", "update", *blob, "--metadata", "kind=big")
    az("blob", "set-tier", *blob, "--tier", "Cool")
    shown = az("blob", "show", *blob)
    assert shown["metadata"] == {"kind": "big"} and shown["properties"]["blobTier"] == "Cool"
    assert az("blob", "snapshot", *blob)["snapshot"]
    lease = az("blob", "lease", "acquire", "--container-name", container, "--blob-name", "large", "--lease-duration", 60)
    az("blob", "delete", *blob, refused="LeaseIdMissing")
    az("blob", "delete", *blob, "--lease-id", lease, "--delete-snapshots", "include")
    az("blob", "delete-batch", "--source", container, "--pattern", "a/*")
    assert [found["name"] for found in az("blob", "list", "--container-name", container)] == ["one.txt"]
    az("container", "delete", "--name", container)


def test_messages_entities_and_properties(az):
    queue, table = unique("q"), unique("t")
    assert az("queue", "create", "--name", queue)["created"]
    az("message", "put", "--queue-name", queue, "--content", "a job")
    assert [message["content"] for message in az("message", "peek", "--queue-name", queue)] == ["a job"]
    [message] = az("message", "get", "--queue-name", queue)
    receipt = ["--id", message["id"], "--pop-receipt", message["popReceipt"]]
    az("message", "delete", "--queue-name", queue, *receipt)
    az("queue", "delete", "--name", queue)
    assert az("table", "create", "--name", table)["created"]
    on = ["--table-name", table]
    az("entity", "insert", *on, "--entity", "PartitionKey=p", "RowKey=r", "Age=5", "Name=Ann")
    az("entity", "insert", *on, "--entity", "PartitionKey=p", "RowKey=r", refused="already exists")
    az("entity", "merge", *on, "--entity", "PartitionKey=p", "RowKey=r", "Age=6")
    found = az("entity", "query", *on, "--filter", "Age eq 6")["items"]
    assert [(entity["Name"], entity["Age"]) for entity in found] == [("Ann", 6)]
    az("entity", "delete", *on, "--partition-key", "p", "--row-key", "r")
    az("table", "delete", "--name", table)
    az("cors", "add", "--services", "bqt", "--methods", "GET", "--origins", "https://example.org")
    assert {rule["Service"] for rule in az("cors", "list", "--services", "bqt")} == {"blob", "queue", "table"}
    az("cors", "clear", "--services", "bqt")
    scope = ["--services", "bqt", "--resource-types", "sco", "--permissions", "rl", "--expiry", "2099-01-01"]
    assert "sig=" in az("account", "generate-sas", *scope)
