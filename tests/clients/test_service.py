"""Service properties, statistics, account information, CORS and static websites, through the official SDK."""

import pytest
import requests
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    BlobAnalyticsLogging,
    BlobServiceClient,
    ContentSettings,
    CorsRule,
    Metrics,
    RetentionPolicy,
    StaticWebsite,
)
from conftest import ACCOUNT, KEY

PAGE = "http://page.example"


@pytest.fixture
def service(own_server):
    """The service of a server of this test's own: properties are the account's."""
    with own_server.client() as client:
        yield client


def test_properties_come_back_root_by_root(service):
    fresh = service.get_service_properties()
    assert fresh["cors"] == [] and fresh["target_version"] is None
    assert not fresh["analytics_logging"].read and not fresh["delete_retention_policy"].enabled
    rules = [
        CorsRule([PAGE, "http://b.example"], ["GET", "PUT"], max_age_in_seconds=60, allowed_headers=["x-ms-*"]),
        CorsRule(["*"], ["GET"], exposed_headers=["x-ms-meta-data*", "etag"]),
    ]
    service.set_service_properties(
        analytics_logging=BlobAnalyticsLogging(read=True, retention_policy=RetentionPolicy(enabled=True, days=5)),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=7)),
        cors=rules,
    )
    service.set_service_properties(
        minute_metrics=Metrics(enabled=False),
        target_version="2020-06-12",
        delete_retention_policy=RetentionPolicy(enabled=True, days=3),
    )
    read = service.get_service_properties()
    assert read["analytics_logging"].read and not read["analytics_logging"].write
    assert read["analytics_logging"].retention_policy.days == 5
    assert read["hour_metrics"].include_apis and read["hour_metrics"].retention_policy.days == 7
    assert not read["minute_metrics"].enabled
    assert (read["target_version"], read["delete_retention_policy"].days) == ("2020-06-12", 3)
    fields = ("allowed_origins", "allowed_methods", "allowed_headers", "exposed_headers", "max_age_in_seconds")
    assert [tuple(getattr(rule, field) for field in fields) for rule in read["cors"]] == [
        (f"{PAGE},http://b.example", "GET,PUT", "x-ms-*", "", 60),
        ("*", "GET", "", "x-ms-meta-data*,etag", 0),
    ]
    service.set_service_properties(cors=[])
    assert service.get_service_properties()["cors"] == []


def test_wrong_properties_say_what_is_wrong(service):
    with pytest.raises(HttpResponseError) as refused:
        service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=366))
    assert (refused.value.status_code, refused.value.error_code) == (400, "InvalidXmlNodeValue")
    with pytest.raises(HttpResponseError) as refused:
        service.set_service_properties(cors=[CorsRule(["*"], ["GET"])] * 6)
    assert (refused.value.status_code, refused.value.error_code) == (400, "InvalidXmlDocument")


def test_statistics_come_from_the_secondary_endpoint(own_server):
    with own_server.client() as service:
        service.create_container("mirrored").upload_blob("a", b"one")
    address = f"127.0.0.1:{own_server.ports['blob']}"
    # The SDK replaces only the host when it asks the secondary endpoint; here both are one host.
    mirror = BlobServiceClient(
        f"http://{address}/{ACCOUNT}-secondary",
        credential={"account_name": ACCOUNT, "account_key": KEY},
        secondary_hostname=address,
    )
    with mirror:
        stats = mirror.get_service_stats()["geo_replication"]
        assert stats["status"] == "live" and stats["last_sync_time"] is not None
        blob = mirror.get_blob_client("mirrored", "a")
        assert blob.download_blob().readall() == b"one"
        with pytest.raises(HttpResponseError) as refused:
            blob.upload_blob(b"two", overwrite=True)
        assert refused.value.error_code == "InsufficientAccountPermissions"


def test_account_information_is_told_at_every_level(service):
    container = service.create_container("told")
    for client in (service, container, container.get_blob_client("absent")):
        told = client.get_account_information()
        assert (told["sku_name"], told["account_kind"], told["is_hns_enabled"]) == (
            "Standard_RAGRS",
            "StorageV2",
            False,
        )


def test_a_browser_may_do_what_a_rule_allows(service):
    container = service.create_container("open", public_access="blob")
    blob = container.upload_blob("a.txt", b"one", metadata={"data1": "x"})
    preflight = {"Origin": PAGE, "Access-Control-Request-Method": "GET"}
    assert requests.options(blob.url, headers=preflight, timeout=30).status_code == 403
    service.set_service_properties(cors=[CorsRule([PAGE], ["GET"], exposed_headers=["x-ms-meta-data*"])])
    allowed = requests.options(blob.url, headers=preflight, timeout=30)
    assert allowed.status_code == 200 and allowed.headers["Access-Control-Allow-Origin"] == PAGE
    read = requests.get(blob.url, headers={"Origin": PAGE}, timeout=30)
    assert read.content == b"one" and read.headers["Access-Control-Allow-Origin"] == PAGE
    assert "x-ms-meta-data1" in read.headers["Access-Control-Expose-Headers"].split(",")
    assert read.headers["Vary"] == "Origin"
    # The version of requests that name none.
    service.set_service_properties(target_version="2018-03-28")
    assert requests.get(blob.url, timeout=30).headers["x-ms-version"] == "2018-03-28"


def test_a_website_is_served_to_browsers(service, own_server):
    service.set_service_properties(
        static_website=StaticWebsite(
            enabled=True, index_document="index.html", error_document404_path="errors/404.html"
        )
    )
    read = service.get_service_properties()["static_website"]
    assert (read.enabled, read.index_document, read.error_document404_path) == (True, "index.html", "errors/404.html")
    pages = service.get_container_client("$web")
    html = ContentSettings(content_type="text/html")
    for name in ("index.html", "docs/index.html", "errors/404.html"):
        pages.upload_blob(name, name.encode(), content_settings=html)

    def get(path, **headers):
        host = {"Host": f"{ACCOUNT}.web.localhost:{own_server.ports['blob']}"}
        return requests.get(f"http://127.0.0.1:{own_server.ports['blob']}{path}", headers={**host, **headers}, timeout=30)

    assert get("/").text == "index.html" and get("/").headers["Content-Type"] == "text/html"
    assert get("/docs/").text == "docs/index.html"
    lost = get("/nowhere")
    assert (lost.status_code, lost.text) == (404, "errors/404.html")
    same = get("/", **{"If-None-Match": get("/").headers["ETag"]})
    assert same.status_code == 304
    service.set_service_properties(static_website=StaticWebsite(enabled=False))
    assert get("/").status_code == 404
    listed = [container.name for container in service.list_containers(include_system=True)]
    assert "$web" in listed and "$web" not in [container.name for container in service.list_containers()]
