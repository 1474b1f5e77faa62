//! Traces over OTLP: spans of this project, joined across processes by the W3C's `traceparent`, sent by a thread of their own.
//!
//! Only spans with the target [`SPANS`] are exported, with the attributes that they name, and no event: whatever a library or a
//! log line says stays out. While nothing is exported these spans are disabled, which costs a comparison.
//!
//! ```
//! use daemon::log::SPANS;
//! use daemon::traces;
//! use tracing::Instrument as _;
//!
//! # async fn pass() {}
//! # let event = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().ok();
//! let span = traces::continuing(event.as_ref(), tracing::info_span!(target: SPANS, "reconcile", cluster_id = "cls-1"));
//! let work = pass().instrument(span);
//! # drop(work);
//! ```

mod export;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use fleet_model::TraceContext;
use opentelemetry::Context;
use opentelemetry::trace::{
    SpanContext, SpanId, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler as SdkSampler, SdkTracerProvider};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

use crate::log::{self, Components, Fields, SPANS};
use crate::settings::traces::{Export, Sampler};
use export::{Exporter, Queue};

pub use export::{SetupError, dropped};

/// A program as its traces name it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Name of the service, unless the settings give one.
    pub name: &'static str,
    /// Version of the service.
    pub version: &'static str,
}

/// Export of a program.
#[derive(Clone, Debug)]
pub struct ProgramExport {
    /// Destination and selection of traces.
    pub export: Export,
    /// The program.
    pub program: Program,
}

/// Export of the traces of a process. Dropping it sends what is queued, for a short time.
#[derive(Debug)]
#[must_use]
pub struct Traces(Option<Exporter>);

/// Log and traces cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is a log.
    #[error(transparent)]
    Log(#[from] log::StartError),
    /// The exporter cannot be set up.
    #[error(transparent)]
    Exporter(#[from] SetupError),
}

/// Starts the log of the process on stdout, and the export of its traces if there is to be one.
pub fn start(settings: log::Settings, export: Option<Export>, program: Program) -> Result<Traces, StartError> {
    let export = export.map(|export| ProgramExport { export, program });
    start_for(&[], settings, io::stdout(), export)
}

/// Starts the same for a process with several components, with its log on `writer`.
pub fn start_for<W: Write + Send + 'static>(
    components: Components,
    settings: log::Settings,
    writer: W,
    export: Option<ProgramExport>,
) -> Result<Traces, StartError> {
    let Some(ProgramExport { export, program }) = export else {
        log::start_for(components, settings, writer)?;
        return Ok(Traces(None));
    };
    let (queue, exporter) = export::start(&export, &resource(&export, program))?;
    let subscriber = subscriber(log::lines(components, settings, Some(add_ids), writer), &export, queue);
    tracing::subscriber::set_global_default(subscriber).map_err(|_started| log::StartError)?;
    Ok(Traces(Some(exporter)))
}

fn subscriber(
    lines: impl tracing_subscriber::Layer<Registry> + Send + Sync,
    export: &Export,
    queue: Queue,
) -> impl Subscriber + Send + Sync {
    let provider = SdkTracerProvider::builder().with_span_processor(queue).with_sampler(sampler(export)).build();
    // No events, no source locations, no threads: nothing but what a span names.
    let spans = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(env!("CARGO_PKG_NAME")))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(|metadata| metadata.is_span() && metadata.target() == SPANS));
    Registry::default().with(lines).with(spans)
}

fn sampler(export: &Export) -> SdkSampler {
    let or = |root: SdkSampler| SdkSampler::ParentBased(Box::new(root));
    match export.sampler {
        Sampler::AlwaysOn => SdkSampler::AlwaysOn,
        Sampler::AlwaysOff => SdkSampler::AlwaysOff,
        Sampler::Ratio => SdkSampler::TraceIdRatioBased(export.share),
        Sampler::ParentOrOn => or(SdkSampler::AlwaysOn),
        Sampler::ParentOrOff => or(SdkSampler::AlwaysOff),
        Sampler::ParentOrRatio => or(SdkSampler::TraceIdRatioBased(export.share)),
    }
}

fn resource(export: &Export, program: Program) -> Resource {
    let name = export.service_name.clone().unwrap_or_else(|| program.name.to_owned());
    let version = opentelemetry::KeyValue::new("service.version", program.version);
    // With the attributes in OTEL_RESOURCE_ATTRIBUTES.
    Resource::builder().with_service_name(name).with_attribute(version).build()
}

fn add_ids(fields: &mut Fields) {
    let context = Context::current();
    let span = context.span();
    let ids = span.span_context();
    if ids.is_valid() {
        fields.insert("trace_id", ids.trace_id().to_string().into());
        fields.insert("span_id", ids.span_id().to_string().into());
    }
}

/// The trace context of the innermost span that is entered; `None` if there is none, as while no traces are exported.
pub fn current() -> Option<TraceContext> {
    of(&Context::current())
}

/// The trace context of a span; `None` for a disabled one, as all are while no traces are exported.
pub fn context(span: &Span) -> Option<TraceContext> {
    if span.is_disabled() { None } else { of(&span.context()) }
}

fn of(context: &Context) -> Option<TraceContext> {
    let span = context.span();
    let ids = span.span_context();
    let text = || format!("00-{}-{}-{:02x}", ids.trace_id(), ids.span_id(), ids.trace_flags().to_u8() & 1);
    if ids.is_valid() { text().parse().ok() } else { None }
}

/// Makes a span that has not been entered yet continue the trace of another process. Without a parent the span stays as it is.
#[must_use]
pub fn continuing(parent: Option<&TraceContext>, span: Span) -> Span {
    if let Some(parent) = parent.filter(|_| !span.is_disabled()).and_then(remote) {
        // The span has neither been entered nor asked for its context, so that its parent can be set.
        let _set = span.set_parent(Context::new().with_remote_span_context(parent));
    }
    span
}

/// Links a span to one of another trace that has led to it.
#[must_use]
pub fn linked(to: Option<&TraceContext>, span: Span) -> Span {
    if let Some(to) = to.filter(|_| !span.is_disabled()).and_then(remote) {
        span.add_link(to);
    }
    span
}

/// Marks a span as failed for a reason, which is one word of a closed list.
pub fn fail(span: &Span, reason: &str) {
    span.set_status(Status::error(reason.to_owned()));
}

fn remote(context: &TraceContext) -> Option<SpanContext> {
    let trace = TraceId::from_hex(context.trace_id()).ok()?;
    let span = SpanId::from_hex(context.span_id()).ok()?;
    let flags = if context.is_sampled() { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
    Some(SpanContext::new(trace, span, flags, true, TraceState::NONE))
}

// === impl Traces ===

impl Drop for Traces {
    fn drop(&mut self) {
        if let Some(exporter) = self.0.take() {
            exporter.finish();
        }
    }
}
