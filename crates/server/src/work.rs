//! What is under way on a connection of HTTP/2, which carries many requests at a time and rests between them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

/// The requests of a connection. Clones are of the same one.
#[derive(Clone)]
pub(crate) struct Work(Arc<Mutex<State>>);

struct State {
    /// Requests that have no answer yet.
    unanswered: usize,
    /// Those, and answers that are not sent to their end.
    under_way: usize,
    /// When the last one ended.
    since: Instant,
}

impl Default for Work {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { unanswered: 0, under_way: 0, since: Instant::now() })))
    }
}

impl Work {
    /// A request begins.
    pub(crate) fn begin(&self) -> Unanswered {
        let mut state = self.state();
        state.unanswered += 1;
        state.under_way += 1;
        Unanswered { work: self.clone(), unsent: Some(Unsent(self.clone())) }
    }

    /// Whether the server works on a request: that nothing moves is then its own doing.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.state().unanswered > 0
    }

    /// Returns once nothing was under way for `time`.
    pub(crate) async fn rest(&self, time: Duration) {
        loop {
            let now = Instant::now();
            let end = match *self.state() {
                State { under_way: 0, since, .. } => since + time,
                _ => now + time,
            };
            if end <= now {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }

    /// Lets the rest begin anew.
    pub(crate) fn renew(&self) {
        self.state().since = Instant::now();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Numbers are whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request without an answer.
pub(crate) struct Unanswered {
    work: Work,
    unsent: Option<Unsent>,
}

impl Unanswered {
    /// Its answer's body, under way until it is dropped.
    pub(crate) fn answered<B>(mut self, body: B) -> Answering<B> {
        Answering { body, _unsent: self.unsent.take() }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.work.state().unanswered -= 1;
    }
}

/// A request that is under way.
struct Unsent(Work);

impl Drop for Unsent {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.under_way -= 1;
        state.since = Instant::now();
    }
}

/// The body of an answer that is under way.
pub(crate) struct Answering<B> {
    body: B,
    _unsent: Option<Unsent>,
}

impl<B: Body + Unpin> Body for Answering<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_connection_rests_when_its_last_answer_was_sent() {
        let start = Instant::now();
        let work = Work::default();
        let rested = tokio::spawn({
            let work = work.clone();
            async move {
                work.rest(TIME).await;
                start.elapsed().as_secs()
            }
        });
        let (one, two) = (work.begin(), work.begin());
        assert!(work.is_unanswered());
        tokio::time::sleep(Duration::from_secs(15)).await;
        drop(one);
        let body = two.answered(());
        assert!(!work.is_unanswered());
        tokio::time::sleep(Duration::from_secs(18)).await;
        drop(body);
        assert_eq!(rested.await.unwrap(), 43);
        assert_eq!(start.elapsed().as_secs(), 43);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_rests_from_the_beginning() {
        let work = Work::default();
        tokio::time::sleep(Duration::from_secs(4)).await;
        work.rest(TIME).await;
        work.renew();
        let again = Instant::now();
        work.rest(TIME).await;
        assert_eq!(again.elapsed(), TIME);
    }
}
