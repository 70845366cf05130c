//! The queue service of one account: queues and messages in one line each, over a real socket.

#![expect(clippy::panic, reason = "a test that cannot go on fails loudly")]

use quick_xml::escape::unescape;

use crate::client::ACCOUNT;
use crate::signed::{Answer, Client, Request, encode};

/// The queue service of one account.
#[derive(Clone, Debug)]
pub struct Queues {
    client: Client,
}

impl Queues {
    /// The service that `client` speaks to.
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    /// The client.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Creates a queue.
    pub async fn queue(&self, name: &str) -> Queue {
        let queue = self.existing(name);
        queue.create().await.expect(201);
        queue
    }

    /// A queue that is there already, or not yet.
    pub fn existing(&self, name: &str) -> Queue {
        Queue { client: self.client.clone(), path: format!("/{ACCOUNT}/{name}") }
    }

    /// List Queues, with more of the query in `query`, which begins with `&` or is empty.
    pub fn list(&self, query: &str) -> Request {
        self.request("GET", &format!("?comp=list{query}"))
    }

    /// A request on the service itself; `query` begins with a question mark.
    pub fn request(&self, method: &str, query: &str) -> Request {
        self.client.request(method, format!("/{ACCOUNT}{query}"))
    }
}

/// A queue.
#[derive(Clone, Debug)]
pub struct Queue {
    client: Client,
    path: String,
}

impl Queue {
    /// Create Queue.
    pub fn create(&self) -> Request {
        self.request("PUT", "")
    }

    /// Delete Queue.
    pub fn delete(&self) -> Request {
        self.request("DELETE", "")
    }

    /// Get Queue Metadata.
    pub fn metadata(&self) -> Request {
        self.request("GET", "?comp=metadata")
    }

    /// Put Message; `query` begins with a question mark or is empty.
    pub fn put(&self, text: &str, query: &str) -> Request {
        self.messages("POST", query).body(document(text))
    }

    /// Get Messages; `query` begins with a question mark or is empty.
    pub fn get(&self, query: &str) -> Request {
        self.messages("GET", query)
    }

    /// Peek Messages, with more of the query in `query`, which begins with `&` or is empty.
    pub fn peek(&self, query: &str) -> Request {
        self.messages("GET", &format!("?peekonly=true{query}"))
    }

    /// Clear Messages.
    pub fn clear(&self) -> Request {
        self.messages("DELETE", "")
    }

    /// Delete Message.
    pub fn remove(&self, id: &str, receipt: &str) -> Request {
        self.message("DELETE", id, &format!("?popreceipt={}", encode(receipt)))
    }

    /// Update Message, with a new text if there is one.
    pub fn update(&self, id: &str, receipt: &str, seconds: u32, text: Option<&str>) -> Request {
        let query = format!("?popreceipt={}&visibilitytimeout={seconds}", encode(receipt));
        self.message("PUT", id, &query).body(text.map(document).unwrap_or_default())
    }

    /// A request on the queue itself; `query` begins with a question mark or is empty.
    pub fn request(&self, method: &str, query: &str) -> Request {
        self.client.request(method, format!("{}{query}", self.path))
    }

    /// A request on its messages; `query` begins with a question mark or is empty.
    pub fn messages(&self, method: &str, query: &str) -> Request {
        self.client.request(method, format!("{}/messages{query}", self.path))
    }

    /// A request on one message; `query` begins with a question mark or is empty.
    pub fn message(&self, method: &str, id: &str, query: &str) -> Request {
        self.client.request(method, format!("{}/messages/{id}{query}", self.path))
    }
}

/// The body of a message to put.
pub fn document(text: &str) -> String {
    let text = quick_xml::escape::partial_escape(text);
    format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

/// A message as an answer shows it; what it does not show is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: String,
    /// When it was put.
    pub inserted: String,
    /// When it ceases to exist.
    pub expires: String,
    /// The right to it.
    pub receipt: String,
    /// When it is visible again.
    pub visible: String,
    /// How often it was taken.
    pub dequeues: String,
    /// Its text.
    pub text: String,
}

impl Message {
    /// The messages of an answer's body.
    pub fn all(text: &str) -> Vec<Self> {
        text.split("<QueueMessage>").skip(1).map(Self::parse).collect()
    }

    /// The only message of an answer.
    pub fn only(answer: &Answer) -> Self {
        let mut all = Self::all(&answer.text());
        assert_eq!(all.len(), 1, "{}", answer.text());
        all.pop().unwrap_or_default()
    }

    fn parse(xml: &str) -> Self {
        let element = |name: &str| {
            let inside =
                xml.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once(&format!("</{name}>")));
            let text = inside.map_or("", |(text, _)| text);
            unescape(text).unwrap_or_else(|error| panic!("{text}: {error}")).into_owned()
        };
        Self {
            id: element("MessageId"),
            inserted: element("InsertionTime"),
            expires: element("ExpirationTime"),
            receipt: element("PopReceipt"),
            visible: element("TimeNextVisible"),
            dequeues: element("DequeueCount"),
            text: element("MessageText"),
        }
    }
}
