use http::HeaderMap;

use super::*;
use crate::head::HeaderCase;

fn parse(host: &str, path: &str, query: &str) -> Result<Target, Problem> {
    let fields = Fields::parse(HeaderMap::new(), Some(query), HeaderCase::default()).unwrap();
    Target::parse(Service::Blob, Some(host), path, &fields)
}

/// Account, container and blob as text, a dash for what is not addressed.
fn shown(host: &str, path: &str, query: &str) -> String {
    match parse(host, path, query) {
        Ok(Target { account, resource, .. }) => match resource {
            Resource::Service => format!("{account} - -"),
            Resource::Container(container) => format!("{account} {container} -"),
            Resource::Blob(container, blob) => format!("{account} {container} {blob}"),
            other => format!("{other:?}"),
        },
        Err(problem) => problem.code.name().to_owned(),
    }
}

#[test]
fn paths_address_service_container_and_blob() {
    let cases = [
        ("/dev", "comp=list", "dev - -"),
        ("/dev/", "comp=list", "dev - -"),
        ("/dev/photos", "restype=container", "dev photos -"),
        ("/dev/photos/", "restype=container", "dev photos -"),
        ("/dev/$root", "restype=container", "dev $root -"),
        ("/dev/photos", "", "dev $root photos"),
        ("/dev/photos", "restype=", "dev $root photos"),
        ("/dev/$root/a.jpg", "", "dev $root a.jpg"),
        ("/dev/$root/a/b", "", "InvalidResourceName"),
        ("/dev/$root/a%2Fb", "", "InvalidResourceName"),
        ("/dev/a%2Fb", "", "InvalidResourceName"),
        ("/dev/$web/a/b", "", "dev $web a/b"),
        ("/dev/photos/a.jpg", "", "dev photos a.jpg"),
        ("/dev/photos/a%20b%2Fc", "", "dev photos a b/c"),
        ("/dev/photos/a/../b//c/.", "", "dev photos a/../b//c/."),
        ("/dev/photos//a", "", "dev photos /a"),
        ("/dev/photos/a+b%252F", "", "dev photos a+b%2F"),
        ("/dev/photos/a/", "", "dev photos a/"),
        ("/dev/photos/", "", "OutOfRangeInput"),
        ("/", "", "InvalidUri"),
        ("*", "", "InvalidUri"),
        ("/Dev/photos/a", "", "ResourceNotFound"),
        ("/dev/ab/a", "", "OutOfRangeInput"),
        ("/dev/Photos/a", "", "InvalidResourceName"),
        ("/dev/a--b/a", "", "InvalidResourceName"),
        ("/dev/photos/%ff", "", "InvalidUri"),
        ("/dev/photos/%2", "", "InvalidUri"),
        ("/dev/photos/%00", "", "InvalidResourceName"),
    ];
    for (path, query, expected) in cases {
        assert_eq!(shown("127.0.0.1:10000", path, query), expected, "{path}?{query}");
    }
    let long = format!("/dev/photos/{}", "a".repeat(1025));
    assert_eq!(shown("localhost", &long, ""), "OutOfRangeInput");
}

#[test]
fn the_account_is_in_the_host_or_in_the_path() {
    let cases = [
        ("127.0.0.1:10000", true),
        ("[::1]:10000", true),
        ("localhost:10000", true),
        ("storage", true),
        ("host.docker.internal:10000", true),
        ("dev.blob.localhost:10000", false),
        ("dev.localhost:10000", false),
        ("dev.blob.core.windows.net", false),
        ("Dev.Blob.LocalHost:10000", false),
    ];
    for (host, path_style) in cases {
        let path = if path_style { "/dev/photos/a" } else { "/photos/a" };
        assert_eq!(shown(host, path, ""), "dev photos a", "{host}");
        assert_eq!(parse(host, path, "").map(|target| target.path_style), Ok(path_style), "{host}");
    }
    assert_eq!(shown("dev.blob.localhost", "/", ""), "dev - -");
}

#[test]
fn the_secondary_endpoint_is_the_same_account() {
    for (host, path) in [("localhost", "/dev-secondary/photos/a"), ("dev-secondary.blob.localhost", "/photos/a")] {
        let target = parse(host, path, "").unwrap();
        assert_eq!((target.account.as_str(), target.secondary), ("dev", true));
        assert_eq!(target.raw_path, path);
    }
}

#[test]
fn paths_address_queues_and_messages() {
    const ID: &str = "00000000-0000-8000-84de-ef5fd48b0000";
    let cases = [
        ("/dev", Ok(Level::Service)),
        ("/dev/", Ok(Level::Service)),
        ("/dev/jobs", Ok(Level::Queue)),
        ("/dev/jobs/", Ok(Level::Queue)),
        ("/dev/jo%62s", Ok(Level::Queue)),
        ("/dev/jobs/messages", Ok(Level::Messages)),
        ("/dev/jobs/messages/", Ok(Level::Messages)),
        (&format!("/dev/jobs/messages/{ID}"), Ok(Level::Message)),
        ("/dev/jobs/messages/nonsense", Ok(Level::Message)),
        ("/dev/jobs/messages/a/b", Err(Code::InvalidUri)),
        ("/dev/jobs/other", Err(Code::InvalidUri)),
        ("/dev/jobs//messages", Err(Code::InvalidUri)),
        ("/dev/jobs/messages/%ff", Err(Code::InvalidUri)),
        ("/dev/ab", Err(Code::OutOfRangeInput)),
        ("/dev/Jobs", Err(Code::InvalidResourceName)),
        ("/dev/$root", Err(Code::InvalidResourceName)),
        ("/dev/a--b/messages", Err(Code::InvalidResourceName)),
    ];
    for (path, expected) in cases {
        let target = Target::parse(Service::Queue, Some("127.0.0.1"), path, &Fields::default());
        assert_eq!(target.as_ref().map(Target::level).map_err(|problem| problem.code), expected, "{path}");
        let Ok(target) = target else { continue };
        let queue = target.queue().map(|address| address.queue.to_string()).ok();
        assert_eq!(queue.as_deref(), (target.level() != Level::Service).then_some("jobs"), "{path}");
        let id = target.message().map(|id| id.uuid().to_string());
        assert_eq!(id.as_deref(), path.ends_with(ID).then_some(ID), "{path}");
        assert!(target.container().is_err() && target.blob().is_err());
    }
}

#[test]
fn paths_address_tables_and_entities() {
    let keys = "(PartitionKey='it%27%27s',RowKey='%2520')";
    let cases = [
        ("127.0.0.1", "/dev", Ok((Level::Service, false))),
        ("127.0.0.1", "/dev/Tables", Ok((Level::Tables, false))),
        ("127.0.0.1", "/dev-secondary/Tables()", Ok((Level::Tables, true))),
        ("127.0.0.1", "/dev/Tables('People')", Ok((Level::TableEntry, false))),
        ("127.0.0.1", "/dev/People", Ok((Level::Table, false))),
        ("127.0.0.1", "/dev/Peopl%65()", Ok((Level::Table, false))),
        ("127.0.0.1", &format!("/dev/People{keys}"), Ok((Level::Entity, false))),
        ("dev.table.localhost:10002", &format!("/People{keys}"), Ok((Level::Entity, false))),
        ("dev-secondary.table.localhost", "/People", Ok((Level::Table, true))),
        ("127.0.0.1", "/dev/$batch", Ok((Level::Batch, false))),
        ("127.0.0.1", "/dev/People(x)", Err(Code::InvalidInput)),
        ("127.0.0.1", "/dev/%ff", Err(Code::InvalidUri)),
    ];
    for (host, path, expected) in cases {
        let target = Target::parse(Service::Table, Some(host), path, &Fields::default());
        let found = target.as_ref().map(|target| (target.level(), target.secondary)).map_err(|problem| problem.code);
        assert_eq!(found, expected, "{host} {path}");
        let Ok(target) = target else { continue };
        let table = target.table().map(|address| address.table.to_string()).ok();
        let has_one = [Level::TableEntry, Level::Table, Level::Entity].contains(&target.level());
        assert_eq!(
            (table.as_deref(), target.top()),
            (has_one.then_some("People"), has_one.then_some("People")),
            "{path}"
        );
        let entity = target.entity().map(|on| format!("{} {}", on.key.partition, on.key.row)).ok();
        assert_eq!(entity.as_deref(), (target.level() == Level::Entity).then_some("it's %20"), "{path}");
        assert!(target.container().is_err() && target.queue().is_err());
    }
}
