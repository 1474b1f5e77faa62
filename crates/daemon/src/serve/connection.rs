//! One connection: TLS, HTTP/1 or HTTP/2, and its time limits.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use http::Request;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::Watcher;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::limits::{ConnectionLimits, Place};
use super::options::ServeOptions;
use super::readers::{StreamExecutor, watched};
use super::stream::{FirstBytes, Stalled};

/// Maximum number of requests at once on an HTTP/2 connection.
const MAX_STREAMS: u32 = 200;

/// Maximum bytes that wait to be sent on one HTTP/2 stream.
const MAX_SEND_BUFFER: usize = 64 * 1024;

/// A connection to be served.
pub(super) struct Connection {
    pub(super) place: Place,
    pub(super) limits: ConnectionLimits,
    pub(super) options: ServeOptions,
}

type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request, which fails if it takes too long.
struct TimedBody<B> {
    body: Pin<Box<B>>,
    deadline: Pin<Box<Sleep>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the body of the request takes too long")]
struct TooSlow;

// === impl Connection ===

impl Connection {
    /// Serves until the connection ends, or until another one needs its place.
    pub(super) async fn serve(self, stream: TcpStream, router: Router, watcher: Watcher) {
        // Without it small responses are delayed; a failure to set it changes nothing else.
        let _best_effort = stream.set_nodelay(true);
        let evicted = self.place.evicted.clone();
        tokio::select! {
            () = evicted.cancelled() => {}
            () = self.serve_tls(stream, router, watcher) => {}
        }
    }

    async fn serve_tls(&self, stream: TcpStream, router: Router, watcher: Watcher) {
        let stream = Stalled::new(stream, self.limits.stall);
        match &self.options.tls {
            None => self.serve_http(stream, router, watcher).await,
            Some(config) => {
                let handshake = TlsAcceptor::from(Arc::clone(config)).accept(stream);
                // The client sees a failed handshake.
                if let Ok(Ok(stream)) = timeout(self.options.head_timeout, handshake).await {
                    self.serve_http(stream, router, watcher).await;
                }
            }
        }
    }

    async fn serve_http<S>(&self, stream: S, router: Router, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { place, limits, options } = self;
        let mut builder = auto::Builder::new(StreamExecutor(limits.stall));
        builder.http1().timer(TokioTimer::new()).header_read_timeout(options.head_timeout);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(limits.keep_alive)
            .keep_alive_timeout(limits.keep_alive)
            .max_send_buf_size(MAX_SEND_BUFFER)
            .max_concurrent_streams(MAX_STREAMS);
        let (is_used, body_limit) = (Arc::clone(&place.is_used), limits.body);
        let service = router.map_request(move |request: Request<_>| {
            is_used.store(true, Ordering::Relaxed);
            request.map(|body| Body::new(TimedBody::new(body, body_limit)))
        });
        let service = service.map_response(watched);
        let stream = FirstBytes::new(stream, options.head_timeout);
        let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).into_owned();
        // The client sees a connection that ends with an error.
        let _ended = watcher.watch(connection).await;
    }
}

// === impl TimedBody ===

impl<B> TimedBody<B> {
    fn new(body: B, limit: Duration) -> Self {
        Self { body: Box::pin(body), deadline: Box::pin(sleep(limit)) }
    }
}

impl<B> HttpBody for TimedBody<B>
where
    B: HttpBody,
    B::Error: Into<BodyError>,
{
    type Data = B::Data;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        if let Poll::Ready(frame) = self.body.as_mut().poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        match self.deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Err(TooSlow.into()))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
