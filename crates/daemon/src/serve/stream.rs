//! Streams with time limits, where HTTP's own timers do not run: before the first byte, and while nothing is read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The first bytes of HTTP/2. While these arrive the version is not known, and no timer of HTTP/1 or HTTP/2 runs.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream of which nothing can be read any more if the version of HTTP does not show in time.
pub(super) struct FirstBytes<S> {
    stream: S,
    /// Number of bytes that were read, and are those of the preface.
    matching: usize,
    /// `None` once the version is known.
    deadline: Option<Pin<Box<Sleep>>>,
}

/// A stream to which nothing can be written any more if the peer reads nothing in time.
pub(super) struct Stalled<S> {
    stream: S,
    limit: Duration,
    /// Runs while the peer reads nothing.
    timer: Option<Pin<Box<Sleep>>>,
}

fn timed_out<T>(what: &'static str) -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, what)))
}

// === impl FirstBytes ===

impl<S> FirstBytes<S> {
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, matching: 0, deadline: Some(Box::pin(sleep(limit))) }
    }

    fn take(&mut self, bytes: &[u8]) {
        let rest = PREFACE.get(self.matching..).unwrap_or_default();
        let is_preface = bytes.len() < rest.len() && rest.starts_with(bytes);
        self.matching += bytes.len();
        if !is_preface {
            self.deadline = None;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstBytes<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Some(deadline) = &mut self.deadline else { return Pin::new(&mut self.stream).poll_read(cx, buf) };
        // Bytes that have come in time may be read late, on a busy machine.
        let is_late = deadline.as_mut().poll(cx).is_ready();
        let before = buf.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buf)? {
            Poll::Pending if is_late => return timed_out("the client has sent no request"),
            polled => ready!(polled),
        }
        self.take(buf.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstBytes<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

// === impl Stalled ===

impl<S> Stalled<S> {
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, timer: None }
    }

    /// Starts the timer when nothing can be written, and stops it when something can.
    fn observe<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.timer = None;
            return polled;
        }
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if timer.as_mut().poll(cx).is_ready() { timed_out("the client reads nothing") } else { Poll::Pending }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalled<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalled<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.observe(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.observe(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.observe(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.observe(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
