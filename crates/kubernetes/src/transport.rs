//! Middleware of every request: a timeout until the response begins, and a minimum interval between two watches.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Request;
use tokio::time::{Instant, sleep, timeout};
use tower::{BoxError, Layer, Service};

/// Minimum interval between the starts of two watches of the same objects. The client library resumes a watch that has ended
/// at once; a server or proxy that ends each of them would otherwise be asked without a pause.
const MIN_WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Adds the middleware to a client.
#[derive(Clone, Debug)]
pub(crate) struct TransportLayer {
    /// Maximum time until a response begins.
    timeout: Duration,
    watches: Arc<Mutex<BTreeMap<String, Instant>>>,
}

/// A client with the middleware.
#[derive(Clone, Debug)]
pub(crate) struct Transport<S> {
    inner: S,
    layer: TransportLayer,
}

/// The response did not begin in time.
#[derive(Debug)]
pub(crate) struct ResponseTimedOut;

// === impl TransportLayer ===

impl TransportLayer {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { timeout, watches: Arc::default() }
    }

    /// Time to wait before the request is sent.
    fn delay<B>(&self, request: &Request<B>) -> Duration {
        let query = request.uri().query().unwrap_or_default();
        if !query.split('&').any(|pair| pair == "watch=true") {
            return Duration::ZERO;
        }
        let pairs = query.split('&').filter(|pair| !pair.starts_with("resourceVersion="));
        let watched = format!("{}?{}", request.uri().path(), pairs.collect::<Vec<_>>().join("&"));
        let now = Instant::now();
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|_, started| *started + MIN_WATCH_INTERVAL > now);
        let starts = watches.get(&watched).map_or(now, |started| *started + MIN_WATCH_INTERVAL);
        watches.insert(watched, starts);
        starts.duration_since(now)
    }
}

impl<S> Layer<S> for TransportLayer {
    type Service = Transport<S>;

    fn layer(&self, inner: S) -> Transport<S> {
        Transport { inner, layer: self.clone() }
    }
}

// === impl Transport ===

impl<S, B> Service<Request<B>> for Transport<S>
where
    S: Service<Request<B>, Error: Into<BoxError>, Future: Send + 'static>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (delay, limit) = (self.layer.delay(&request), self.layer.timeout);
        let response = self.inner.call(request);
        async move {
            if !delay.is_zero() {
                sleep(delay).await;
            }
            timeout(limit, response).await.map_err(|_elapsed| ResponseTimedOut)?.map_err(Into::into)
        }
        .boxed()
    }
}

// === impl ResponseTimedOut ===

impl fmt::Display for ResponseTimedOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("no response in time")
    }
}

impl std::error::Error for ResponseTimedOut {}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{pending, ready};

    use tower::service_fn;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn request(uri: &str) -> Request<()> {
        Request::builder().uri(uri).body(()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_does_not_begin_is_given_up() {
        let begin = Instant::now();
        let mut silent = TransportLayer::new(TIMEOUT).layer(service_fn(|_request| pending::<Result<(), Infallible>>()));
        let error =
            silent.call(request("/api/v1/namespaces/n/secrets?&watch=true&resourceVersion=1")).await.unwrap_err();
        assert!(error.is::<ResponseTimedOut>(), "{error}");
        assert_eq!(begin.elapsed(), TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn watches_that_end_at_once_start_once_a_second() {
        let begin = Instant::now();
        let mut hasty = TransportLayer::new(TIMEOUT).layer(service_fn(|_request| ready(Ok::<_, Infallible>(()))));
        for version in 0..10 {
            hasty
                .call(request(&format!("/api/v1/namespaces/n/secrets?&watch=true&resourceVersion={version}")))
                .await
                .unwrap();
        }
        assert_eq!(begin.elapsed(), MIN_WATCH_INTERVAL * 9);
        // Neither other watches nor other requests wait for them.
        hasty.call(request("/api/v1/namespaces/other/secrets?&watch=true&resourceVersion=9")).await.unwrap();
        for _ in 0..10 {
            hasty.call(request("/api/v1/namespaces/n/secrets?limit=500")).await.unwrap();
        }
        assert_eq!(begin.elapsed(), MIN_WATCH_INTERVAL * 9);
    }
}
