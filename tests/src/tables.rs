//! The table service of one account: tables and entities in one line each, over a real socket.

#![expect(clippy::panic, clippy::expect_used, reason = "a test that cannot go on fails loudly")]

use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::client::ACCOUNT;
use crate::signed::{Answer, Client, Request};

/// A document without anything but properties.
pub const BARE: &str = "application/json;odata=nometadata";
/// A document of the usual kind.
pub const MINIMAL: &str = "application/json;odata=minimalmetadata";

/// The table service of one account.
#[derive(Clone, Debug)]
pub struct Tables {
    client: Client,
}

impl Tables {
    /// The service that `client` speaks to, signing as that service wants.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    /// The client.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Creates a table.
    pub async fn table(&self, name: &str) -> Table {
        let table = self.existing(name);
        table.create().await.expect(201);
        table
    }

    /// A table that is there already, or not yet.
    pub fn existing(&self, name: &str) -> Table {
        Table { service: self.clone(), name: name.to_owned() }
    }

    /// Query Tables; `query` begins with a question mark or is empty.
    pub fn list(&self, query: &str) -> Request {
        self.request("GET", &format!("/Tables{query}"))
    }

    /// A batch of these parts, each a request with its own head and body.
    pub fn batch(&self, parts: &[String]) -> Request {
        self.request("POST", "/$batch").header("content-type", "multipart/mixed; boundary=batch_1").body(batch(parts))
    }

    /// A request on the service itself, with a JSON body if any; `target` is what follows the account.
    pub fn request(&self, method: &str, target: &str) -> Request {
        let request = self.client.request(method, format!("/{ACCOUNT}{target}"));
        request.header("accept", MINIMAL).header("content-type", "application/json")
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    service: Tables,
    name: String,
}

impl Table {
    /// Create Table.
    pub fn create(&self) -> Request {
        self.service.request("POST", "/Tables").body(format!("{{\"TableName\":\"{}\"}}", self.name))
    }

    /// Get Table.
    pub fn get(&self) -> Request {
        self.service.request("GET", &format!("/Tables('{}')", self.name))
    }

    /// Delete Table.
    pub fn delete(&self) -> Request {
        self.service.request("DELETE", &format!("/Tables('{}')", self.name))
    }

    /// Query Entities; `query` begins with a question mark or is empty.
    pub fn query(&self, query: &str) -> Request {
        self.request("GET", &format!("(){query}"))
    }

    /// Query Entities with a filter.
    pub fn filter(&self, filter: &str) -> Request {
        self.query(&format!("?$filter={}", utf8_percent_encode(filter, NON_ALPHANUMERIC)))
    }

    /// Insert Entity.
    pub fn insert(&self, document: &str) -> Request {
        self.request("POST", "").body(document.to_owned())
    }

    /// An entity in it.
    pub fn entity(&self, partition: &str, row: &str) -> Entity {
        let quoted = |key: &str| utf8_percent_encode(&key.replace('\'', "''"), NON_ALPHANUMERIC).to_string();
        let address = format!("{}(PartitionKey='{}',RowKey='{}')", self.name, quoted(partition), quoted(row));
        Entity { service: self.service.clone(), address }
    }

    /// A request on the table; `rest` is what follows its name.
    pub fn request(&self, method: &str, rest: &str) -> Request {
        self.service.request(method, &format!("/{}{rest}", self.name))
    }
}

/// An entity.
#[derive(Clone, Debug)]
pub struct Entity {
    service: Tables,
    address: String,
}

impl Entity {
    /// Table and keys as they stand in a URL.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Get Entity.
    pub fn get(&self) -> Request {
        self.request("GET")
    }

    /// Insert Or Replace Entity, or Update Entity with `if-match`.
    pub fn put(&self, document: &str) -> Request {
        self.request("PUT").body(document.to_owned())
    }

    /// Insert Or Merge Entity, or Merge Entity with `if-match`.
    pub fn merge(&self, document: &str) -> Request {
        self.request("PATCH").body(document.to_owned())
    }

    /// Delete Entity, of whatever version.
    pub fn delete(&self) -> Request {
        self.request("DELETE").header("if-match", "*")
    }

    /// A request on it.
    pub fn request(&self, method: &str) -> Request {
        self.service.request(method, &format!("/{}", self.address))
    }

    /// A part of a batch; `headers` are whole lines.
    pub fn part(&self, method: &str, headers: &str, document: &str) -> String {
        part(method, &self.address, headers, document)
    }
}

/// A part of a batch; `headers` are whole lines.
pub fn part(method: &str, address: &str, headers: &str, document: &str) -> String {
    format!(
        "{method} http://127.0.0.1/{ACCOUNT}/{address} HTTP/1.1\r\nAccept: {MINIMAL}\r\nContent-Type: application/json\r\n\
         {headers}\r\n{document}"
    )
}

/// The body of a batch of changes, between `batch_1` and `changeset_1`.
pub fn batch(parts: &[String]) -> String {
    let mut body = "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n".to_owned();
    for (number, part) in parts.iter().enumerate() {
        let _ = write!(
            body,
            "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\
             Content-ID: {number}\r\n\r\n{part}\r\n"
        ); // writing to a String cannot fail
    }
    body + "--changeset_1--\r\n--batch_1--\r\n"
}

/// The document of an answer.
pub fn json(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{}: {error}", answer.text()))
}

/// The entities or tables of an answer.
pub fn values(answer: &Answer) -> Vec<Value> {
    json(answer).get("value").and_then(Value::as_array).expect("a list").clone()
}

/// One property of each of the entities of an answer.
pub fn column(answer: &Answer, name: &str) -> Vec<String> {
    values(answer)
        .iter()
        .map(|entity| entity.get(name).and_then(Value::as_str).unwrap_or_default().to_owned())
        .collect()
}
