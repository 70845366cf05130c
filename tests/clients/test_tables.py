"""Tables and entities, through the official SDK."""

import math
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import (
    EdmType,
    EntityProperty,
    RequestTooLargeError,
    TableAccessPolicy,
    TableClient,
    TableCorsRule,
    TableSasPermissions,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)
from conftest import ACCOUNT, KEY

CREDENTIAL = AzureNamedKeyCredential(ACCOUNT, KEY)


@pytest.fixture
def tables(server):
    with server.tables() as service:
        yield service


@pytest.fixture
def table(tables):
    client = tables.create_table(f"t{uuid.uuid4().hex}")
    yield client
    client.delete_table()


def code(error):
    """The code in the body; create_entity raises its errors as the pipeline made them, without."""
    return getattr(error, "error_code", None) or error.response.json()["odata.error"]["code"]


def refused(status, expected, call, *arguments, **options):
    with pytest.raises(HttpResponseError) as raised:
        call(*arguments, **options)
    assert (raised.value.status_code, code(raised.value)) == (status, expected)


def entity(row, partition="p", **properties):
    return {"PartitionKey": partition, "RowKey": row, **properties}


def test_an_entity_is_created_updated_and_deleted_by_version(table):
    created = table.create_entity(entity("r", a=1, b="x"))
    read = table.get_entity("p", "r")
    assert (read.metadata["etag"], read["a"], read["b"]) == (created["etag"], 1, "x")
    assert read.metadata["timestamp"].tzinfo is not None
    with pytest.raises(ResourceExistsError) as raised:
        table.create_entity(entity("r"))
    assert code(raised.value) == "EntityAlreadyExists"
    table.update_entity(entity("r", b="y"), mode=UpdateMode.MERGE)
    assert dict(table.get_entity("p", "r")) == entity("r", a=1, b="y")
    options = {"etag": created["etag"], "match_condition": MatchConditions.IfNotModified}
    with pytest.raises(ResourceModifiedError) as raised:
        table.update_entity(entity("r", c=1), mode=UpdateMode.REPLACE, **options)
    assert code(raised.value) == "UpdateConditionNotSatisfied"
    options["etag"] = table.get_entity("p", "r").metadata["etag"]
    table.update_entity(entity("r", c=1), mode=UpdateMode.REPLACE, **options)
    assert dict(table.get_entity("p", "r")) == entity("r", c=1)
    table.upsert_entity(entity("r", d=1), mode=UpdateMode.MERGE)
    table.upsert_entity(entity("new", d=1), mode=UpdateMode.REPLACE)
    assert dict(table.get_entity("p", "r", select=["d", "RowKey"])) == {"RowKey": "r", "d": 1}
    refused(412, "UpdateConditionNotSatisfied", table.delete_entity, "p", "r", **options)
    table.delete_entity(table.get_entity("p", "r"))
    table.delete_entity("p", "r")
    refused(404, "ResourceNotFound", table.get_entity, "p", "r")
    refused(404, "ResourceNotFound", table.update_entity, entity("r"))


def test_values_of_every_type_come_back(table):
    moment = datetime(2026, 8, 1, 12, 30, 15, 123456, tzinfo=timezone.utc)
    values = {
        "text": "\U0001f600 ü\n\"'\\",
        "empty": "",
        "yes": True,
        "small": -(2**31),
        "large": EntityProperty(2**63 - 1, EdmType.INT64),
        "least": EntityProperty(-(2**63), EdmType.INT64),
        "fraction": 0.1,
        "whole": 5.0,
        "tiny": 5e-324,
        "infinite": float("-inf"),
        "id": uuid.uuid4(),
        "bytes": bytes(range(256)),
        "moment": moment,
        "first": datetime(1601, 1, 1, tzinfo=timezone.utc),
        "last": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc),
    }
    table.create_entity(entity("r", none=None, nan=float("nan"), **values))
    read = table.get_entity("p", "r")
    assert math.isnan(read.pop("nan"))
    assert dict(read) == entity("r", **values)
    assert {name: type(value) for name, value in read.items() if name in ("whole", "small", "yes")} == {
        "whole": float,
        "small": int,
        "yes": bool,
    }
    assert list(table.query_entities("whole eq 5.0 and yes and least lt 0L", select="text")) == [{"text": values["text"]}]


@pytest.mark.parametrize("key", ["", " ", "it's", "''", "100%", "%27", "a,RowKey='b'", "(é)", "\U0001f600", "a+b&c=d", "ü" * 512])
def test_keys_are_any_text(table, key):
    table.create_entity(entity(key, key, a=1))
    assert table.get_entity(key, key)["a"] == 1
    found = table.query_entities("PartitionKey eq @p and RowKey eq @r", parameters={"p": key, "r": key})
    assert [found["RowKey"] for found in found] == [key]
    table.submit_transaction([("upsert", entity(key, key, a=2)), ("create", entity(f"{key[:511]}x", key))])
    assert table.get_entity(key, key)["a"] == 2
    table.delete_entity(key, key)
    refused(404, "ResourceNotFound", table.get_entity, key, key)


def test_queries_are_answered_page_by_page(table):
    for partition in "ab":
        for start in range(0, 1500, 100):
            rows = range(start, start + 100)
            table.submit_transaction([("create", entity(f"{row:05}", partition, n=row)) for row in rows])
    pages = table.query_entities("n lt 1200", results_per_page=250).by_page()
    sizes, rows = [], []
    for page in pages:
        page = list(page)
        sizes.append(len(page))
        rows += [(entity["PartitionKey"], entity["n"]) for entity in page]
    assert max(sizes) <= 250
    assert rows == [(partition, row) for partition in "ab" for row in range(1200)]
    assert len(list(table.list_entities())) == 3000
    pages = table.list_entities(results_per_page=7).by_page()
    first = list(next(pages))
    rest = table.list_entities(results_per_page=1000).by_page(continuation_token=pages.continuation_token)
    assert len(first) + sum(len(list(page)) for page in rest) == 3000


def test_filters_compare_by_type(table):
    moment = datetime(2026, 8, 1, tzinfo=timezone.utc)
    identifier = uuid.UUID(int=7)
    table.create_entity(entity("1", i=5, l=EntityProperty(5, EdmType.INT64), d=5.5, s="it's", b=True))
    table.create_entity(entity("2", i=-5, g=identifier, x=b"\x00\xff", t=moment, s="B", b=False))
    cases = [
        ("i eq 5", {}, "1"),
        ("i eq 5L", {}, "1"),
        ("l gt 4", {}, "1"),
        ("d ge 5.5 and d lt 6", {}, "1"),
        ("s eq @s", {"s": "it's"}, "1"),
        ("s lt 'a'", {}, "2"),
        ("b", {}, "1"),
        ("not b", {}, "2"),
        ("b eq false", {}, "2"),
        ("g eq @g", {"g": identifier}, "2"),
        ("x eq @x", {"x": b"\x00\xff"}, "2"),
        ("t eq @t", {"t": moment}, "2"),
        ("t ge @t and Timestamp gt @t", {"t": moment - timedelta(days=36500)}, "2"),
        ("absent ne 1", {}, ""),
        ("not (absent eq 1)", {}, "12"),
        ("i eq '5'", {}, ""),
        ("PartitionKey eq 'p' and (RowKey eq '1' or RowKey eq '3')", {}, "1"),
        ("RowKey gt '1'", {}, "2"),
    ]
    for text, parameters, expected in cases:
        found = table.query_entities(text, parameters=parameters)
        assert "".join(found["RowKey"] for found in found) == expected, text
    refused(400, "InvalidInput", lambda: list(table.query_entities("i eq")))
    refused(501, "NotImplemented", lambda: list(table.query_entities("startswith(s,'i')")))


def test_a_transaction_happens_as_a_whole_or_not_at_all(table):
    etag = table.create_entity(entity("kept", n=1))["etag"]
    table.create_entity(entity("gone"))
    done = table.submit_transaction(
        [
            ("create", entity("new", text="ü")),
            ("update", entity("kept", n=2), {"etag": etag, "match_condition": MatchConditions.IfNotModified}),
            ("upsert", entity("other", n=3), {"mode": "replace"}),
            ("delete", entity("gone")),
        ]
    )
    assert [part.get("etag") is not None for part in done] == [True, True, True, False]
    assert table.get_entity("p", "kept")["n"] == 2
    assert table.get_entity("p", "new").metadata["etag"] == done[0]["etag"]
    with pytest.raises(TableTransactionError) as raised:
        table.submit_transaction([("create", entity("x")), ("create", entity("new")), ("create", entity("y"))])
    assert (raised.value.index, code(raised.value)) == (1, "EntityAlreadyExists")
    refused(404, "ResourceNotFound", table.get_entity, "p", "x")
    with pytest.raises(TableTransactionError) as raised:
        table.submit_transaction([("create", entity(f"{row}")) for row in range(101)])
    assert raised.value.index == 99
    table.submit_transaction([("create", entity(f"{row:03}")) for row in range(100)])
    with pytest.raises(TableTransactionError) as raised:
        table.submit_transaction([("delete", entity("000")), ("delete", entity("000"))])
    assert code(raised.value) == "InvalidDuplicateRow"
    with pytest.raises(RequestTooLargeError):
        table.submit_transaction([("upsert", entity(f"{row}", a="x" * 30_000, b="x" * 30_000)) for row in range(90)])


def test_no_increment_by_version_is_lost(table):
    table.create_entity(entity("count", n=0))

    def increment(_):
        while True:
            read = table.get_entity("p", "count")
            read["n"] += 1
            try:
                options = {"etag": read.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
                return table.update_entity(read, mode=UpdateMode.REPLACE, **options)
            except ResourceModifiedError:
                continue

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(increment, range(80)))
    assert table.get_entity("p", "count")["n"] == 80


def test_tables_are_created_listed_and_deleted(tables):
    prefix = f"L{uuid.uuid4().hex[:8]}"
    names = [f"{prefix}x{number}" for number in range(5)]
    for name in names:
        tables.create_table(name)
    refused(409, "TableAlreadyExists", tables.create_table, names[0])
    tables.create_table_if_not_exists(names[0].lower())
    assert [table.name for table in tables.list_tables(results_per_page=2) if table.name in names] == names
    found = tables.query_tables("TableName ge @first and TableName lt @last", parameters={"first": names[1], "last": names[3]})
    assert [table.name for table in found] == names[1:3]
    for name in names:
        tables.delete_table(name)
    tables.delete_table(names[0])
    with pytest.raises(ResourceNotFoundError) as raised:
        tables.get_table_client(names[0]).create_entity(entity("r"))
    assert code(raised.value) == "TableNotFound"
    for wrong in ["a-b", "ab", "a" * 64]:
        with pytest.raises(ValueError, match="Storage table names"):
            tables.create_table(wrong)


def test_signatures_and_stored_policies_allow_what_they_say(server, tables, table):
    tomorrow = datetime.now(timezone.utc) + timedelta(days=1)
    for partition in "abc":
        table.submit_transaction([("create", entity(f"{row}", partition)) for row in range(3)])

    def client(**options):
        signature = generate_table_sas(CREDENTIAL, table.table_name, **options)
        return TableClient(server.endpoint("table"), table.table_name, credential=AzureSasCredential(signature))

    span = {"start_pk": "a", "start_rk": "1", "end_pk": "b", "end_rk": "1"}
    with client(permission=TableSasPermissions(read=True, add=True), expiry=tomorrow, **span) as some:
        found = [found["PartitionKey"] + found["RowKey"] for found in some.list_entities()]
        assert found == ["a1", "a2", "b0", "b1"]
        refused(403, "AuthorizationFailure", some.get_entity, "c", "0")
        refused(403, "AuthorizationFailure", some.create_entity, entity("5", "b"))
        refused(403, "AuthorizationPermissionMismatch", some.upsert_entity, entity("1", "a"))
        some.create_entity(entity("5", "a"))
        some.submit_transaction([("create", entity("6", "a"))])
        with pytest.raises(TableTransactionError) as raised:
            some.submit_transaction([("create", entity("7", "a")), ("create", entity("0", "a"))])
        assert (raised.value.index, code(raised.value)) == (1, "AuthorizationFailure")
        with pytest.raises(TableTransactionError) as raised:
            some.submit_transaction([("delete", entity("5", "a"))])
        assert code(raised.value) == "AuthorizationPermissionMismatch"
        refused(403, "AuthorizationFailure", some.delete_table)
    policy = TableAccessPolicy(permission=TableSasPermissions(read=True), expiry=tomorrow)
    table.set_table_access_policy({"readers": policy})
    assert table.get_table_access_policy()["readers"].permission == "r"
    with client(policy_id="readers") as reader:
        assert reader.get_entity("a", "0")["RowKey"] == "0"
        refused(403, "AuthorizationPermissionMismatch", reader.create_entity, entity("9"))
    with pytest.raises(ValueError, match="Too many access policies"):
        table.set_table_access_policy({f"policy{number}": policy for number in range(6)})
    table.set_table_access_policy({})
    with client(policy_id="readers") as reader:
        refused(403, "AuthenticationFailed", reader.get_entity, "a", "0")
    signature = generate_account_sas(CREDENTIAL, "sco", "racdlwu", tomorrow)
    with TableServiceClient(server.endpoint("table"), credential=AzureSasCredential(signature)) as whole:
        other = whole.create_table(f"t{uuid.uuid4().hex}")
        other.upsert_entity(entity("r"))
        other.delete_table()


def test_the_service_has_properties_of_its_own(tables):
    rule = TableCorsRule(["http://page.example"], ["GET"], max_age_in_seconds=60)
    tables.set_service_properties(cors=[rule])
    assert tables.get_service_properties()["cors"][0].allowed_origins == ["http://page.example"]
    tables.set_service_properties(cors=[])
    assert tables.get_service_properties()["cors"] == []


def test_entities_survive_a_crash(own_server):
    with own_server.tables() as service:
        table = service.create_table("Kept")
        table.submit_transaction([("create", entity(f"{row:02}", n=row)) for row in range(20)])
        etag = table.get_entity("p", "05").metadata["etag"]
        table.delete_entity("p", "00")
        own_server.restart()
        assert [found["n"] for found in table.list_entities()] == list(range(1, 20))
        assert table.get_entity("p", "05").metadata["etag"] == etag
        assert [table.name for table in service.list_tables()] == ["Kept"]
