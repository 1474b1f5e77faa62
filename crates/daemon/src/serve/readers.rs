//! Readers of HTTP/2 streams. A response that its client does not take in time is reset; other streams of the connection go on.
//!
//! The connection's own time limit does not see such a client: it answers pings, and gives no room in the stream's window.
//! Meanwhile the body is not asked for its next frame, so the task of the stream is watched from outside.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http::Response;
use http_body::{Frame, SizeHint};
use hyper::rt::Executor;
use tokio::time::{Instant, sleep_until};

/// Maximum size of one frame: so much waits for the client beyond the window that it has given.
const FRAME: usize = 16 * 1024;

tokio::task_local! {
    /// The reader of the stream whose task this is.
    static READER: Arc<Reader>;
}

/// Runs the tasks of HTTP/2 streams, and ends those whose client takes nothing for that time.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamExecutor(pub(super) Duration);

/// The client of one stream.
#[derive(Debug, Default)]
struct Reader {
    /// The time from which something waits for the client; `None` while the client waits for the server.
    since: Mutex<Option<Instant>>,
}

/// A body that notes when its frames are taken.
struct ReadBody {
    body: Body,
    /// The rest of a frame that was too large.
    rest: Bytes,
    /// Number of bytes that were taken.
    taken: usize,
    reader: Arc<Reader>,
}

/// Watches the reader of a response, if it belongs to an HTTP/2 stream.
pub(super) fn watched(response: Response<Body>) -> Response<Body> {
    let Ok(reader) = READER.try_with(Arc::clone) else { return response };
    reader.waits_since(Some(Instant::now()));
    response.map(|body| Body::new(ReadBody { body, rest: Bytes::new(), taken: 0, reader }))
}

// === impl StreamExecutor ===

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let (reader, limit) = (Arc::new(Reader::default()), self.0);
        let watched = READER.scope(Arc::clone(&reader), stream);
        tokio::spawn(async move {
            tokio::select! {
                _ended = watched => {}
                // Dropping the stream resets it.
                () = reader.is_stalled(limit) => {}
            }
        });
    }
}

// === impl Reader ===

impl Reader {
    fn waits_since(&self, since: Option<Instant>) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    /// Returns when something has waited for the client for that time.
    async fn is_stalled(&self, limit: Duration) {
        let mut next = Instant::now() + limit;
        loop {
            sleep_until(next).await;
            let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
            next = since.unwrap_or_else(Instant::now) + limit;
            if next <= Instant::now() {
                return;
            }
        }
    }
}

// === impl ReadBody ===

impl ReadBody {
    fn hand_out(&mut self, mut bytes: Bytes) -> Frame<Bytes> {
        self.rest = bytes.split_off(bytes.len().min(FRAME));
        self.taken = self.taken.saturating_add(bytes.len());
        Frame::data(bytes)
    }
}

impl HttpBody for ReadBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        // The client has taken what was handed out before.
        self.reader.waits_since(None);
        let frame = if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            }
        } else {
            Frame::data(std::mem::take(&mut self.rest))
        };
        self.reader.waits_since(Some(Instant::now()));
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(bytes) => self.hand_out(bytes),
            Err(trailers) => trailers,
        })))
    }

    /// The end of a larger body is found out only when its last frame is taken, since nothing watches a body that has ended.
    fn is_end_stream(&self) -> bool {
        self.taken <= FRAME && self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), u64::try_from(self.rest.len()).unwrap_or(u64::MAX));
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint.set_lower(hint.lower().saturating_add(rest));
        hint
    }
}
