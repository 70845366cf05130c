//! Requests on entities as their clients send them.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT as ACCEPT_NAME, CONTENT_TYPE, IF_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::bench::load::{Demand, Work};
use crate::client::{ACCOUNT, Client, Failure};

/// Entities of a partition.
pub(super) const PARTITION: u64 = 100;
/// Entities of a group, all of one partition.
pub(super) const BATCH: u64 = PARTITION;
pub(super) const ACCEPT: &str = "application/json;odata=nometadata";
/// A filter on a property that one entity matches.
pub(super) const ONE: &str = "Number eq 4242";
/// One that none matches.
pub(super) const NOTHING: &str = "Number eq -1";

/// Entity number n: its keys.
fn keys(n: u64) -> (String, String) {
    (format!("partition-{:07}", n / PARTITION), format!("row-{:03}", n % PARTITION))
}

fn path(table: &str, n: u64) -> String {
    let (partition, row) = keys(n);
    format!("{table}(PartitionKey='{partition}',RowKey='{row}')")
}

/// Entity number n: about 250 bytes.
fn document(n: u64) -> String {
    let (partition, row) = keys(n);
    format!(
        "{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"Name\":\"The name of entity {n}\",\"Number\":{n},\
         \"Price\":{n}.5,\"Active\":true,\"Created@odata.type\":\"Edm.DateTime\",\"Created\":\"2026-08-01T00:00:00Z\",\
         \"Total@odata.type\":\"Edm.Int64\",\"Total\":\"{}\"}}",
        n << 32
    )
}

fn headers(more: &[(HeaderName, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([(ACCEPT_NAME, HeaderValue::from_static(ACCEPT))]);
    headers.extend(more.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))));
    headers
}

const JSON: (HeaderName, &str) = (CONTENT_TYPE, "application/json");
const NO_ECHO: (HeaderName, &str) = (HeaderName::from_static("prefer"), "return-no-content");

/// Insert Entity, number after number.
pub(super) fn inserts(table: &'static str) -> Work {
    let headers = headers(&[JSON, NO_ECHO]);
    Arc::new(move |n| Demand {
        method: Method::POST,
        path: table.to_owned(),
        headers: headers.clone(),
        body: document(n).into(),
        status: StatusCode::NO_CONTENT,
    })
}

/// Update Entity, whatever its version, of entities here and there.
pub(super) fn updates(table: &'static str, count: u64) -> Work {
    let headers = headers(&[JSON, (IF_MATCH, "*")]);
    Arc::new(move |n| Demand {
        method: Method::PUT,
        path: path(table, scattered(n, count)),
        headers: headers.clone(),
        body: document(scattered(n, count)).into(),
        status: StatusCode::NO_CONTENT,
    })
}

/// Get Entity, here and there.
pub(super) fn gets(table: &'static str, count: u64) -> Work {
    let headers = headers(&[]);
    Arc::new(move |n| Demand {
        method: Method::GET,
        path: path(table, scattered(n, count)),
        headers: headers.clone(),
        body: Bytes::new(),
        status: StatusCode::OK,
    })
}

/// Query Entities for whole partitions, here and there.
pub(super) fn partitions(table: &'static str, count: u64) -> Work {
    let headers = headers(&[]);
    Arc::new(move |n| Demand {
        method: Method::GET,
        path: query(table, &partition(scattered(n, count) / PARTITION), None),
        headers: headers.clone(),
        body: Bytes::new(),
        status: StatusCode::OK,
    })
}

/// Entity Group Transactions of inserts, of partition after partition.
pub(super) fn batches(table: &'static str, server: SocketAddr) -> Work {
    let headers = headers(&[(CONTENT_TYPE, "multipart/mixed; boundary=batch_a")]);
    Arc::new(move |batch| {
        let mut body = String::with_capacity(64 * 1024);
        body.push_str("--batch_a\r\nContent-Type: multipart/mixed; boundary=changeset_b\r\n\r\n");
        for n in batch * BATCH..(batch + 1) * BATCH {
            // Writing to a String cannot fail.
            let _ = write!(
                body,
                "--changeset_b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
                 POST http://{server}/{ACCOUNT}/{table} HTTP/1.1\r\nContent-Type: application/json\r\n\
                 Accept: {ACCEPT}\r\nPrefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n{}\r\n",
                document(n)
            );
        }
        body.push_str("--changeset_b--\r\n--batch_a--\r\n");
        Demand {
            method: Method::POST,
            path: "$batch".into(),
            headers: headers.clone(),
            body: body.into(),
            status: StatusCode::ACCEPTED,
        }
    })
}

/// A number below `count` for each n, near to none before.
fn scattered(n: u64, count: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % count
}

fn partition(number: u64) -> String {
    format!("PartitionKey eq '{}'", keys(number * PARTITION).0)
}

fn query(table: &str, filter: &str, next: Option<&str>) -> String {
    let filter = utf8_percent_encode(filter, NON_ALPHANUMERIC);
    format!("{table}()?$filter={filter}{}", next.unwrap_or_default())
}

/// A query that is read page by page.
pub(super) struct Range {
    table: String,
    filter: String,
    /// What of the next page's query says where it begins.
    next: Option<String>,
}

impl Range {
    /// A partition.
    pub(super) fn of(table: &str, number: u64) -> Self {
        Self::matching(table, &partition(number))
    }

    /// All that a filter matches.
    pub(super) fn matching(table: &str, filter: &str) -> Self {
        Self { table: table.to_owned(), filter: filter.to_owned(), next: None }
    }

    /// Whether the next page is the first.
    pub(super) fn at_the_beginning(&self) -> bool {
        self.next.is_none()
    }

    /// Reads a page; answers how many entities it has.
    pub(super) async fn page(&mut self, client: &mut Client) -> Result<u64, Failure> {
        let path = query(&self.table, &self.filter, self.next.as_deref());
        let answer = client.get(&path, &[("accept", ACCEPT)]).await?;
        if answer.status != StatusCode::OK {
            return Err(format!("GET {path}: {} {}", answer.status, answer.text()).into());
        }
        let mut next = String::new();
        for key in ["NextPartitionKey", "NextRowKey"] {
            if let Some(value) = answer.header(&format!("x-ms-continuation-{key}")) {
                let _ = write!(next, "&{key}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
            }
        }
        self.next = (!next.is_empty()).then_some(next);
        Ok(u64::try_from(answer.text().matches("\"RowKey\":").count())?)
    }

    /// Reads all pages; answers how many entities they have.
    pub(super) async fn count(&mut self, client: &mut Client) -> Result<u64, Failure> {
        let mut count = self.page(client).await?;
        while !self.at_the_beginning() {
            count += self.page(client).await?;
        }
        Ok(count)
    }
}
