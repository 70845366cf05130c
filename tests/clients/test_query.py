"""Queries over the contents of blobs, through the official SDK."""

import json

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import ArrowDialect, ArrowType, DelimitedJsonDialect, DelimitedTextDialect

ROWS = b"Service,Package,Version\r\nEvent Hubs\r\nStorage,azure-storage-blob,12.4.0\r\nIdentity,azure-identity,1\r\n"


@pytest.fixture
def blob(container):
    blob = container.get_blob_client("data")
    blob.upload_blob(ROWS)
    return blob


def test_a_whole_blob_comes_back_with_its_size(blob):
    reader = blob.query_blob("SELECT * from BlobStorage")
    assert reader.readall() == ROWS.replace(b"\r\n", b"\n")
    assert len(reader) == len(ROWS)
    text = blob.query_blob("SELECT * from BlobStorage", encoding="utf-8").readall()
    assert text == ROWS.decode().replace("\r\n", "\n")
    lines = [line for line in blob.query_blob("SELECT _1 from BlobStorage").records() if line]
    assert lines == [b"Service", b"Event Hubs", b"Storage", b"Identity"]


def test_results_are_written_as_the_output_format_says(blob):
    source = DelimitedTextDialect(delimiter=",", quotechar='"', lineterminator="\n", escapechar="", has_header=False)
    target = DelimitedTextDialect(delimiter=";", quotechar="'", lineterminator=".", escapechar="\\")
    reader = blob.query_blob("SELECT * from BlobStorage", blob_format=source, output_format=target)
    expected = b"Service;Package;Version.Event Hubs.Storage;azure-storage-blob;'12.4.0'.Identity;azure-identity;1."
    assert reader.readall() == expected


def test_headers_go_out_only_if_asked_for(blob):
    source = DelimitedTextDialect(has_header=True)
    for target, first in [(None, b"Service,Package,Version"), (DelimitedTextDialect(has_header=False), b"Event Hubs")]:
        reader = blob.query_blob("SELECT * from BlobStorage", blob_format=source, output_format=target)
        assert next(iter(reader.records())) == first


def test_records_that_fail_are_reported_and_passed_over(blob):
    errors = []
    reader = blob.query_blob(
        "SELECT Version from BlobStorage",
        blob_format=DelimitedTextDialect(has_header=True),
        output_format=DelimitedTextDialect(),
        on_error=errors.append,
    )
    assert reader.readall() == b"12.4.0\n1\n"
    assert [(error.error, error.is_fatal) for error in errors] == [("InvalidColumnOrdinal", False)]
    assert len(reader) == len(ROWS)
    assert blob.query_blob("SELECT _1 from BlobStorage WHERE _3 > 5").readall() == b""


def test_a_blob_that_cannot_be_parsed_is_a_fatal_error(container):
    blob = container.get_blob_client("data")
    blob.upload_blob(b"{name: owner}\n{name2: owner2}")
    errors = []
    reader = blob.query_blob("SELECT * from BlobStorage", blob_format=DelimitedJsonDialect(), on_error=errors.append)
    assert reader.readall() == b""
    assert [(error.error, error.is_fatal, error.position) for error in errors] == [("ParseError", True, 0)]
    assert len(reader) == 29


def test_documents_are_selected_from(container):
    blob = container.get_blob_client("data")
    documents = [{"name": "owner", "id": 1, "in": {"deep": [1, 2]}}, {"name2": "owner2"}, {"name": "other", "id": 7}]
    blob.upload_blob("\n".join(map(json.dumps, documents)))
    source, target = DelimitedJsonDialect(delimiter="\n"), DelimitedJsonDialect(delimiter=";")
    reader = blob.query_blob("SELECT name from BlobStorage", blob_format=source, output_format=target)
    assert reader.readall() == b'{"name":"owner"};{};{"name":"other"};'
    reader = blob.query_blob("SELECT * from BlobStorage WHERE id IS NOT MISSING", blob_format=source)
    found = [json.loads(line) for line in reader.records() if line]
    assert found == [documents[0], documents[2]]
    reader = blob.query_blob('SELECT "in".deep[1] FROM BlobStorage LIMIT 1', blob_format=source)
    assert reader.readall() == b'{"_1":2}\n'
    target = DelimitedTextDialect()
    reader = blob.query_blob("SELECT SUM(id), COUNT(*) FROM BlobStorage", blob_format=source, output_format=target)
    assert reader.readall() == b"8,3\n"


def test_a_large_blob_is_answered_as_it_is_read(container):
    blob = container.get_blob_client("data")
    line = b"1,two," + b"x" * 1016 + b"\n"
    blob.upload_blob(line * 9000)
    reader = blob.query_blob("SELECT _2 FROM BlobStorage")
    records = list(reader.records())
    assert records.count(b"two") == 9000
    assert reader._bytes_processed == len(reader) == 9000 * len(line)


def test_results_can_be_arrow(container):
    blob = container.get_blob_client("data")
    blob.upload_blob(b"100,200,x\n300,400,y\n")
    errors = []
    columns = [
        ArrowDialect(ArrowType.DECIMAL, name="abc", precision=6, scale=2),
        ArrowDialect(ArrowType.INT64, name="n"),
        ArrowDialect(ArrowType.STRING, name="s"),
    ]
    reader = blob.query_blob(
        "SELECT _2, _1, _3 FROM BlobStorage WHERE _1 > 250", output_format=columns, on_error=errors.append
    )
    stream = reader.readall()
    assert not errors
    # A schema, one batch, the end: each begins with the continuation marker, and lies at multiples of eight.
    assert stream.startswith(b"\xff\xff\xff\xff") and stream.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    assert len(stream) % 8 == 0
    assert all(name in stream for name in (b"abc", (40_000).to_bytes(16, "little"), (300).to_bytes(8, "little")))


def test_bad_queries_and_unmet_conditions_are_refused(blob):
    etag = blob.get_blob_properties().etag
    same = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
    other = {"etag": '"0x1"', "match_condition": MatchConditions.IfNotModified}
    assert blob.query_blob("SELECT COUNT(*) FROM BlobStorage", **same).readall() == b"4\n"
    cases = [
        ("SELEKT", {}, 400, "ErrorProcessingQueryExpression"),
        ("SELECT Service FROM BlobStorage", {}, 400, "ErrorProcessingQueryExpression"),
        ("SELECT * FROM BlobStorage", other, 412, "ConditionNotMet"),
    ]
    for expression, options, status, code in cases:
        with pytest.raises(HttpResponseError) as caught:
            blob.query_blob(expression, **options)
        assert (caught.value.status_code, caught.value.error_code) == (status, code)
