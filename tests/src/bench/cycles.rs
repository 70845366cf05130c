//! The whole life of a message over HTTP: put, get, delete.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{BoxFuture, try_join_all};
use http::{Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::bench::load::{Contender, Slice};
use crate::bench::server::Server;
use crate::bench::{KIB, versus};
use crate::client::{Answer, Client, Failure};
use crate::queues::{Message, document};

/// Connections that each put, take and delete a message, again and again, in one queue.
pub(super) struct Cycles {
    clients: Vec<Client>,
    queue: &'static str,
    message: Bytes,
}

impl Cycles {
    /// So many connections to `server`, in `queue`, which is new.
    pub(super) async fn start(server: &Server, queue: &'static str, connections: usize) -> Result<Self, Failure> {
        expect(&server.client()?.put(queue, &[], "").await?, StatusCode::CREATED)?;
        let clients = (0..connections).map(|_| server.client()).collect::<Result<_, _>>()?;
        // Letters only, as Base64 would be.
        let text: String = versus::body(KIB).iter().map(|byte| char::from(b'a' + byte % 26)).collect();
        Ok(Self { clients, queue, message: document(&text).into() })
    }
}

impl Contender for Cycles {
    fn slice(&mut self, length: Duration) -> BoxFuture<'_, Result<Slice, Failure>> {
        Box::pin(async move {
            let end = Instant::now() + length;
            let tasks = self.clients.drain(..).map(|mut client| {
                let (queue, message) = (self.queue, self.message.clone());
                tokio::spawn(async move {
                    let slice = cycle(&mut client, queue, &message, end).await?;
                    Ok::<_, Failure>((client, slice))
                })
            });
            let mut all = Slice::empty()?;
            for outcome in try_join_all(tasks.collect::<Vec<_>>()).await? {
                let (client, slice) = outcome?;
                all.beside(&slice)?;
                self.clients.push(client);
            }
            Ok(all)
        })
    }
}

async fn cycle(client: &mut Client, queue: &str, message: &Bytes, end: Instant) -> Result<Slice, Failure> {
    let (mut slice, begin) = (Slice::empty()?, Instant::now());
    let mut before = begin;
    let messages = format!("{queue}/messages");
    while before < end {
        let put = client.send(Method::POST, &messages, &[("content-type", "application/xml")], message.clone());
        expect(&put.await?, StatusCode::CREATED)?;
        let answer = client.get(&format!("{messages}?visibilitytimeout=3600"), &[]).await?;
        expect(&answer, StatusCode::OK)?;
        let taken = Message::all(&answer.text()).pop().ok_or("a message was put and is not there")?;
        let receipt = utf8_percent_encode(&taken.receipt, NON_ALPHANUMERIC);
        let gone = client.delete(&format!("{messages}/{}?popreceipt={receipt}", taken.id), &[]).await?;
        expect(&gone, StatusCode::NO_CONTENT)?;
        let now = Instant::now();
        slice.note(now - before);
        before = now;
    }
    slice.elapsed = before - begin;
    Ok(slice)
}

fn expect(answer: &Answer, status: StatusCode) -> Result<(), Failure> {
    if answer.status == status { Ok(()) } else { Err(format!("{}: {}", answer.status, answer.text()).into()) }
}
