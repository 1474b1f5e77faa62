//! The exporter: a bounded queue, and a thread that sends what is in it. Nothing waits for either.

use std::io;
use std::path::PathBuf;
use std::sync::{LazyLock, mpsc as thread_mpsc};
use std::thread;
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use prometheus_client::metrics::counter::Counter;
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Certificate, Client, StatusCode, redirect};
use tokio::runtime;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::settings::traces::Export;

/// Maximum number of spans that wait; those beyond are dropped and counted.
const QUEUE: usize = 4096;
/// Maximum number of spans in a request.
const BATCH: usize = 512;
/// Time for which spans are gathered into a request.
const GATHER: Duration = Duration::from_secs(1);
/// Wait between two attempts at a batch that the collector may take later.
const RETRY: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30)).with_jitter(20);
/// Time for what is queued when the process ends.
const FINISH: Duration = Duration::from_secs(2);
/// Maximum size of an answer that is read.
const MAX_ANSWER: usize = 64 * 1024;

static DROPPED: LazyLock<Counter> = LazyLock::new(Counter::default);

/// Number of spans of this process that no collector has taken.
pub fn dropped() -> Counter {
    DROPPED.clone()
}

/// An exporter that cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file of certificate authorities cannot be read.
    #[error("OTEL_EXPORTER_OTLP_CERTIFICATE: cannot read {path}: make the file readable for this process")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file of certificate authorities holds none.
    #[error("OTEL_EXPORTER_OTLP_CERTIFICATE: {path} holds no certificate in PEM form")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The HTTP client cannot be set up.
    #[error("cannot set up the client of the collector of traces")]
    Http(#[source] reqwest::Error),
    /// The thread cannot be started.
    #[error("cannot start the thread that exports traces")]
    Thread(#[source] io::Error),
}

/// The spans that wait for their export.
#[derive(Debug)]
pub(super) struct Queue(mpsc::Sender<SpanData>);

/// The thread that exports.
#[derive(Debug)]
pub(super) struct Exporter {
    stop: CancellationToken,
    ended: thread_mpsc::Receiver<()>,
}

/// Starts the thread.
pub(super) fn start(export: &Export, resource: &Resource) -> Result<(Queue, Exporter), SetupError> {
    let sending = Sending {
        client: client(export)?,
        url: export.url.to_string(),
        resource: ResourceAttributesWithSchema::from(resource),
        is_failing: false,
        dropped_before: 0,
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(SetupError::Thread)?;
    let (sender, spans) = mpsc::channel(QUEUE);
    let (has_ended, ended) = thread_mpsc::channel();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let work = move || {
        runtime.block_on(sending.run(spans, stopped));
        drop(has_ended);
    };
    thread::Builder::new().name("traces".to_owned()).spawn(work).map_err(SetupError::Thread)?;
    Ok((Queue(sender), Exporter { stop, ended }))
}

fn client(export: &Export) -> Result<Client, SetupError> {
    let headers: HeaderMap = export.headers.iter().cloned().collect();
    let builder = Client::builder().default_headers(headers).redirect(redirect::Policy::none()).timeout(export.timeout);
    let builder = match &export.certificate {
        // Without TLS there is no certificate to check, and a proxy's operator could read the headers.
        _ if export.url.scheme_str() == Some("http") => builder.no_proxy().tls_certs_only([]),
        Some(path) => builder.tls_certs_only(authorities(path)?),
        None => builder,
    };
    builder.build().map_err(SetupError::Http)
}

fn authorities(path: &PathBuf) -> Result<Vec<Certificate>, SetupError> {
    let pem = std::fs::read(path).map_err(|source| SetupError::CaFile { path: path.clone(), source })?;
    let certificates = Certificate::from_pem_bundle(&pem).unwrap_or_default();
    if certificates.is_empty() { Err(SetupError::NoCertificate { path: path.clone() }) } else { Ok(certificates) }
}

// === impl Queue ===

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() && self.0.try_send(span).is_err() {
            DROPPED.inc();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

// === impl Exporter ===

impl Exporter {
    /// Ends the thread when what is queued has been sent, or after a short time.
    pub(super) fn finish(self) {
        self.finish_within(FINISH);
    }

    /// The same with another limit.
    pub(super) fn finish_within(self, limit: Duration) {
        self.stop.cancel();
        // The thread never sends: its end disconnects.
        let _ended = self.ended.recv_timeout(limit);
    }
}

/// The state of the thread.
struct Sending {
    client: Client,
    url: String,
    resource: ResourceAttributesWithSchema,
    /// True since a batch could not be sent, until one is.
    is_failing: bool,
    /// Number of spans that had been dropped by then.
    dropped_before: u64,
}

/// The failure of one attempt.
struct Failure {
    problem: String,
    may_pass: bool,
}

// === impl Sending ===

impl Sending {
    /// Sends what is queued until the stop, and then the rest.
    async fn run(mut self, mut spans: mpsc::Receiver<SpanData>, stop: CancellationToken) {
        let mut batch = Vec::new();
        loop {
            let received = tokio::select! {
                received = gather(&mut spans, &mut batch) => received,
                () = stop.cancelled(), if !spans.is_closed() => {
                    spans.close();
                    continue;
                }
            };
            self.send(std::mem::take(&mut batch), &stop).await;
            if received == Received::Last {
                return;
            }
        }
    }

    /// Sends a batch, and repeats it while the collector may take it later.
    async fn send(&mut self, batch: Vec<SpanData>, stop: &CancellationToken) {
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        if count == 0 {
            return;
        }
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        for failures in 1.. {
            match self.post(body.clone()).await {
                Ok(rejected) => {
                    DROPPED.inc_by(rejected);
                    return self.has_sent();
                }
                Err(failure) => {
                    self.has_failed(&failure.problem);
                    if !failure.may_pass || stop.is_cancelled() {
                        DROPPED.inc_by(count);
                        return;
                    }
                    let wait = RETRY.delay(failures, rand::random());
                    tokio::select! {
                        () = sleep(wait) => {}
                        () = stop.cancelled() => {}
                    }
                }
            }
        }
    }

    /// Posts a request and returns the number of spans that the collector has rejected.
    async fn post(&self, body: Vec<u8>) -> Result<u64, Failure> {
        let request = self.client.post(&self.url).header(CONTENT_TYPE, "application/x-protobuf").body(body);
        // The error would quote its address; its causes name what has failed.
        let unreachable =
            |error: reqwest::Error| Failure { problem: crate::log::causes(&error.without_url()), may_pass: true };
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if !status.is_success() {
            // The four statuses that the specification lets a client repeat.
            let may_pass = matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            );
            return Err(Failure { problem: format!("it answers {status}"), may_pass });
        }
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if answer.len().saturating_add(chunk.len()) > MAX_ANSWER {
                return Ok(0);
            }
            answer.extend_from_slice(&chunk);
        }
        let answer = ExportTraceServiceResponse::decode(answer.as_slice()).unwrap_or_default();
        let rejected = answer.partial_success.map_or(0, |partial| partial.rejected_spans);
        Ok(u64::try_from(rejected).unwrap_or_default())
    }

    fn has_failed(&mut self, problem: &str) {
        if !std::mem::replace(&mut self.is_failing, true) {
            self.dropped_before = DROPPED.get();
            let endpoint = &self.url;
            tracing::warn!(
                operation = "export-traces",
                endpoint,
                error = problem,
                "traces cannot be exported; spans are dropped once the queue is full"
            );
        }
    }

    fn has_sent(&mut self) {
        if std::mem::take(&mut self.is_failing) {
            let dropped = DROPPED.get().saturating_sub(self.dropped_before);
            tracing::info!(operation = "export-traces", dropped, "traces are exported again");
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Received {
    /// More may follow.
    Some,
    /// The queue is closed and empty.
    Last,
}

/// Waits for a span, and for more to send with it. What has been received is in `batch`, also if this is dropped.
async fn gather(spans: &mut mpsc::Receiver<SpanData>, batch: &mut Vec<SpanData>) -> Received {
    if spans.recv_many(batch, BATCH).await == 0 {
        return Received::Last;
    }
    let deadline = Instant::now() + GATHER;
    while let Some(room) = BATCH.checked_sub(batch.len()).filter(|room| *room > 0) {
        match timeout_at(deadline, spans.recv_many(batch, room)).await {
            Ok(0) => return Received::Last,
            Ok(_) => {}
            Err(_elapsed) => break,
        }
    }
    Received::Some
}
