use lazuli_engine::service::properties::{Change, CorsRule, IncludeApis};
use proptest::prelude::*;

use super::*;
use crate::code::Code;

const RETENTION: &str = "<RetentionPolicy><Enabled>true</Enabled><Days>3</Days></RetentionPolicy>";

fn full() -> ServiceProperties {
    let metrics = Metrics { version: Some("1.0".into()), enabled: Some(IncludeApis(false)), retention_days: None };
    let list = |items: &[&str]| items.iter().map(ToString::to_string).collect();
    ServiceProperties {
        logging: Logging {
            version: Some("2.0".into()),
            delete: true,
            read: false,
            write: true,
            retention_days: Some(365),
        },
        hour_metrics: metrics,
        minute_metrics: Metrics { version: Some("1.0".into()), ..Metrics::default() },
        cors: vec![CorsRule {
            allowed_origins: list(&["http://a.example", "http://b.example"]),
            allowed_methods: list(&["GET", "PUT"]),
            allowed_headers: list(&["x-ms-meta-*", "content-type"]),
            exposed_headers: vec![],
            max_age_seconds: 60,
        }],
        default_version: Some("2020-02-10".into()),
        delete_retention: DeleteRetention { days: Some(7), allow_permanent: true },
        website: StaticWebsite {
            enabled: true,
            index_document: Some("index.html".into()),
            default_index_path: Some("start/page.html".into()),
            error_path: Some("errors/404.html".into()),
        },
    }
}

fn text(properties: &ServiceProperties, service: Service, version: Version) -> String {
    String::from_utf8(document(properties, service, version)).unwrap()
}

fn root(content: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><{ROOT}>{content}</{ROOT}>")
}

fn rule(origins: &str, methods: &str, allowed: &str, age: &str) -> String {
    format!(
        "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins><AllowedMethods>{methods}</AllowedMethods>\
         <AllowedHeaders>{allowed}</AllowedHeaders><ExposedHeaders></ExposedHeaders>\
         <MaxAgeInSeconds>{age}</MaxAgeInSeconds></CorsRule>"
    )
}

#[test]
fn the_whole_document_is_written_in_the_order_of_the_service() {
    let expected = root(
        "<Logging><Version>2.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write><RetentionPolicy>\
         <Enabled>true</Enabled><Days>365</Days></RetentionPolicy></Logging><HourMetrics><Version>1.0</Version>\
         <Enabled>true</Enabled><IncludeAPIs>false</IncludeAPIs><RetentionPolicy><Enabled>false</Enabled>\
         </RetentionPolicy></HourMetrics><MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled>\
         <RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors><CorsRule>\
         <AllowedOrigins>http://a.example,http://b.example</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>\
         <AllowedHeaders>x-ms-meta-*,content-type</AllowedHeaders><ExposedHeaders />\
         <MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule></Cors><DefaultServiceVersion>2020-02-10\
         </DefaultServiceVersion><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>\
         <AllowPermanentDelete>true</AllowPermanentDelete></DeleteRetentionPolicy><StaticWebsite><Enabled>true\
         </Enabled><IndexDocument>index.html</IndexDocument><DefaultIndexDocumentPath>start/page.html\
         </DefaultIndexDocumentPath><ErrorDocument404Path>errors/404.html</ErrorDocument404Path></StaticWebsite>",
    );
    assert_eq!(text(&full(), Service::Blob, Version::NEWEST), expected);
}

#[test]
fn queues_tables_and_old_versions_show_less() {
    let cases = [
        (Service::Blob, "2026-04-06", "L H M C D R W"),
        (Service::Blob, "2018-03-28", "L H M C D R W"),
        (Service::Blob, "2017-07-29", "L H M C D R"),
        (Service::Blob, "2013-08-15", "L H M C D"),
        (Service::Blob, "2012-02-12", "L H D"),
        (Service::Queue, "2026-04-06", "L H M C"),
        (Service::Table, "2026-04-06", "L H M C"),
    ];
    let roots = [
        ("L", "<Logging>"),
        ("H", "<HourMetrics>"),
        ("M", "<MinuteMetrics>"),
        ("C", "<Cors>"),
        ("D", "<DefaultServiceVersion>"),
        ("R", "<DeleteRetentionPolicy>"),
        ("W", "<StaticWebsite>"),
    ];
    for (service, version, expected) in cases {
        let text = text(&full(), service, Version::parse(version, true).unwrap());
        let shown: Vec<_> = roots.iter().filter(|(_, root)| text.contains(root)).map(|(short, _)| *short).collect();
        assert_eq!(shown.join(" "), expected, "{service:?} {version}");
    }
}

#[test]
fn what_was_written_is_read_back() {
    for properties in [full(), ServiceProperties::default()] {
        let change = parse(&document(&properties, Service::Blob, Version::NEWEST), Service::Blob).unwrap();
        let usual = |version: Option<String>| version.or(Some(USUAL_FORM.into()));
        let metrics = |metrics: Metrics| Metrics { version: usual(metrics.version), ..metrics };
        let logging = Logging { version: usual(properties.logging.version.clone()), ..properties.logging };
        assert_eq!(change.logging, Some(logging));
        assert_eq!(change.hour_metrics, Some(metrics(properties.hour_metrics)));
        assert_eq!(change.minute_metrics, Some(metrics(properties.minute_metrics)));
        assert_eq!(change.cors, Some(properties.cors));
        assert_eq!(change.default_version, properties.default_version);
        assert_eq!(change.delete_retention, Some(properties.delete_retention));
        assert_eq!(change.website, Some(properties.website));
    }
}

#[test]
fn what_is_left_out_does_not_change_and_an_empty_list_is_a_list() {
    assert_eq!(parse(root("").as_bytes(), Service::Blob), Ok(Change::default()));
    let cors = parse(root("<Cors />").as_bytes(), Service::Queue).unwrap();
    assert_eq!(cors, Change { cors: Some(vec![]), ..Change::default() });
    let website = "<StaticWebsite><Enabled>True</Enabled><IndexDocument/></StaticWebsite>";
    let website = parse(root(website).as_bytes(), Service::Blob).unwrap().website;
    assert_eq!(website, Some(StaticWebsite { enabled: true, ..StaticWebsite::default() }));
    let retention = "<DeleteRetentionPolicy><Enabled>false</Enabled><Days/></DeleteRetentionPolicy>";
    let retention = parse(root(retention).as_bytes(), Service::Blob).unwrap().delete_retention;
    assert_eq!(retention, Some(DeleteRetention::default()));
    let star = parse(root(&format!("<Cors>{}</Cors>", rule("*", "GET, PUT", "*", "0"))).as_bytes(), Service::Table);
    assert_eq!(star.unwrap().cors.unwrap()[0].allowed_methods, ["GET", "PUT"]);
}

#[test]
fn wrong_documents_are_refused() {
    let logging = |delete: &str, retention: &str| {
        let write = "<Read>true</Read><Write>true</Write>";
        format!("<Logging><Version>1.0</Version><Delete>{delete}</Delete>{write}{retention}</Logging>")
    };
    let metrics = |content: &str| format!("<HourMetrics><Version>1.0</Version>{content}{RETENTION}</HourMetrics>");
    let days =
        |days: &str| logging("true", &format!("<RetentionPolicy><Enabled>true</Enabled>{days}</RetentionPolicy>"));
    let cases = [
        (logging("yes", RETENTION), Code::InvalidXmlNodeValue),
        (logging("", RETENTION), Code::InvalidXmlNodeValue),
        (logging("true", ""), Code::InvalidXmlDocument),
        (logging("true", RETENTION).replace("1.0", "3.0"), Code::InvalidXmlNodeValue),
        (logging("true", RETENTION).replace("<Version>1.0</Version>", ""), Code::InvalidXmlDocument),
        (logging("true", RETENTION).replace("<Read>true</Read>", ""), Code::InvalidXmlDocument),
        (logging("true", RETENTION).repeat(2), Code::InvalidXmlDocument),
        (logging("true", &RETENTION.repeat(2)), Code::InvalidXmlDocument),
        (days(""), Code::InvalidXmlDocument),
        (days("<Days/>"), Code::InvalidXmlDocument),
        (days("<Days>0</Days>"), Code::InvalidXmlNodeValue),
        (days("<Days>366</Days>"), Code::InvalidXmlNodeValue),
        (days("<Days>seven</Days>"), Code::InvalidXmlNodeValue),
        (days("<Weeks>1</Weeks>"), Code::InvalidXmlDocument),
        (metrics("<Enabled>true</Enabled>"), Code::InvalidXmlDocument),
        (metrics("<Enabled>false</Enabled><IncludeAPIs>true</IncludeAPIs>"), Code::InvalidXmlDocument),
        (metrics("<Enabled>true</Enabled><IncludeAPIs>some</IncludeAPIs>"), Code::InvalidXmlNodeValue),
        (metrics("<IncludeAPIs>true</IncludeAPIs>"), Code::InvalidXmlDocument),
        (metrics("<Enabled>false</Enabled>").replace("1.0", "2.0"), Code::InvalidXmlNodeValue),
        ("<Metrics/>".into(), Code::InvalidXmlDocument),
        ("<DefaultServiceVersion>2020-01-01</DefaultServiceVersion>".into(), Code::InvalidXmlNodeValue),
        ("<DefaultServiceVersion/>".into(), Code::InvalidXmlNodeValue),
        ("<DeleteRetentionPolicy/>".into(), Code::InvalidXmlDocument),
        ("<StaticWebsite><IndexDocument>i</IndexDocument></StaticWebsite>".into(), Code::InvalidXmlDocument),
        (
            "<StaticWebsite><Enabled>true</Enabled><IndexDocument>a/b</IndexDocument></StaticWebsite>".into(),
            Code::InvalidXmlNodeValue,
        ),
        (
            format!(
                "<StaticWebsite><Enabled>true</Enabled><ErrorDocument404Path>{}</ErrorDocument404Path>\
                 </StaticWebsite>",
                "p".repeat(256)
            ),
            Code::InvalidXmlNodeValue,
        ),
    ];
    for (content, code) in cases {
        let outcome = parse(root(&content).as_bytes(), Service::Blob);
        assert_eq!(outcome.map_err(|problem| problem.code), Err(code), "{content}");
    }
    for body in ["", "<StorageServiceStats/>", "<StorageServiceProperties>"] {
        let outcome = parse(body.as_bytes(), Service::Blob);
        assert_eq!(outcome.map_err(|problem| problem.code), Err(Code::InvalidXmlDocument), "{body}");
    }
    for element in ["DefaultServiceVersion", "DeleteRetentionPolicy", "StaticWebsite"] {
        for service in [Service::Queue, Service::Table] {
            let problem = parse(root(&format!("<{element}/>")).as_bytes(), service).unwrap_err();
            assert_eq!(problem.code, Code::InvalidXmlDocument, "{element} {service:?}");
        }
    }
}

#[test]
fn wrong_rules_are_refused() {
    let good = rule("http://a.example", "GET", "x-ms-*", "1");
    let many = |count: usize, item: &str| vec![item; count].join(",");
    let cases = [
        (good.repeat(5), None),
        (good.repeat(6), Some(Code::InvalidXmlDocument)),
        (rule(&many(64, "http://a"), "GET", "", "1"), None),
        (rule(&many(65, "http://a"), "GET", "", "1"), Some(Code::InvalidXmlNodeValue)),
        (rule(&"a".repeat(256), "GET", "", "1"), None),
        (rule(&"a".repeat(257), "GET", "", "1"), Some(Code::InvalidXmlNodeValue)),
        (rule(&many(10, &"a".repeat(250)), "GET", "", "1"), Some(Code::InvalidXmlDocument)),
        (rule("", "GET", "", "1"), Some(Code::InvalidXmlNodeValue)),
        (rule("http://*.example", "GET", "", "1"), Some(Code::InvalidXmlNodeValue)),
        (rule("*", "", "", "1"), Some(Code::InvalidXmlNodeValue)),
        (rule("*", "get", "", "1"), Some(Code::InvalidXmlNodeValue)),
        (rule("*", "TRACE", "", "1"), Some(Code::InvalidXmlNodeValue)),
        (rule("*", "DELETE,GET,HEAD,MERGE,OPTIONS,PATCH,POST,PUT", "", "1"), None),
        (rule("*", "GET", "x-a*,x-b*", "1"), None),
        (rule("*", "GET", "x-a*,x-b*,x-c*", "1"), Some(Code::InvalidXmlNodeValue)),
        (rule("*", "GET", &many(64, "x-a"), "1"), None),
        (rule("*", "GET", &many(65, "x-a"), "1"), Some(Code::InvalidXmlNodeValue)),
        (rule("*", "GET", "x a", "1"), Some(Code::InvalidXmlNodeValue)),
        (rule("*", "GET", "x*y", "1"), None),
        (rule("*", "GET", "", "-1"), Some(Code::InvalidXmlNodeValue)),
        (rule("*", "GET", "", "2147483647"), None),
        (rule("*", "GET", "", "2147483648"), Some(Code::InvalidXmlNodeValue)),
        (good.replace("<MaxAgeInSeconds>1</MaxAgeInSeconds>", ""), Some(Code::InvalidXmlDocument)),
        (good.replace("<ExposedHeaders></ExposedHeaders>", ""), Some(Code::InvalidXmlDocument)),
        ("<Rule/>".into(), Some(Code::InvalidXmlDocument)),
    ];
    for (rules, code) in cases {
        let outcome = parse(root(&format!("<Cors>{rules}</Cors>")).as_bytes(), Service::Blob);
        assert_eq!(outcome.err().map(|problem| problem.code), code, "{rules}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, Service::Blob);
        let _ = parse(root(&String::from_utf8_lossy(&bytes)).as_bytes(), Service::Blob);
    }
}
