//! The letter case of metadata names, which the service gives back as they were written.
//!
//! HTTP ignores the case of header names and hyper forgets it; what hyper can keep of it is private. So a [`Tap`] lies
//! between socket and hyper: on the way in it remembers the names of each request's head, on the way out it writes the
//! names of a response's head in the case that the response asks for. Case has no length, so no byte moves.
//!
//! Requests and responses of a connection are handled in order, one after the other. The tap puts each head's names
//! into a queue as it passes, the [`Cased`] service takes them out as hyper hands over the request; the same in the
//! other direction. Bodies are passed over by their length, so that bytes which look like a head are left alone.

mod framing;
mod tap;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Method, Request, Response};
use hyper::service::Service;
use lazuli_api::head::{HeaderCase, ResponseCase};

pub(crate) use tap::Tap;

/// The names whose case counts.
const METADATA_PREFIX: &[u8] = b"x-ms-meta-";

/// What a connection's tap and its service tell each other.
#[derive(Clone, Default)]
pub(crate) struct Cases {
    shared: Arc<Mutex<Queues>>,
}

#[derive(Default)]
struct Queues {
    /// Of each request that passed the tap and hyper has not handed over yet. hyper reads a bounded number of bytes
    /// ahead, which bounds this.
    requests: VecDeque<HeaderCase>,
    /// Of each response that hyper was given and that has not passed the tap yet: one, or none.
    responses: VecDeque<Outgoing>,
}

/// What the tap must know of a response before its head passes.
#[derive(Default)]
struct Outgoing {
    names: Vec<String>,
    /// Whether it answers a HEAD request: its length is then only announced.
    to_head: bool,
}

impl Cases {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        // The queues are whole between any two statements; a panic elsewhere doesn't make them wrong.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A service that finds each request's [`HeaderCase`] among its extensions, and whose [`ResponseCase`] is obeyed.
#[derive(Clone)]
pub(crate) struct Cased<S> {
    inner: S,
    cases: Cases,
}

impl<S> Cased<S> {
    /// `inner` on the connection whose [`Tap`] has the same `cases`.
    pub(crate) const fn new(inner: S, cases: Cases) -> Self {
        Self { inner, cases }
    }
}

impl<S, I, O> Service<Request<I>> for Cased<S>
where
    S: Service<Request<I>, Response = Response<O>>,
    S::Future: Send + 'static,
{
    type Response = Response<O>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<O>, S::Error>> + Send>>;

    fn call(&self, mut request: Request<I>) -> Self::Future {
        if let Some(case) = self.cases.queues().requests.pop_front() {
            request.extensions_mut().insert(case);
        }
        let to_head = request.method() == Method::HEAD;
        let cases = self.cases.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let mut response = answer.await?;
            let names = response.extensions_mut().remove::<ResponseCase>().map_or_else(Vec::new, |case| case.0);
            cases.queues().responses.push_back(Outgoing { names, to_head });
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests;
