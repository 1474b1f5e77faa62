//! The spans that are exported, and all that is not, with a collector on loopback.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span as Exported;
use prost::Message as _;
use rstest::rstest;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::with_default;
use tracing::{info, info_span};

use super::*;
use crate::log::buffer::Buffer;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const UNRECORDED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// The bodies that a collector has received.
type Bodies = Arc<Mutex<Vec<Bytes>>>;

/// The lines of a log.
fn lines_of(log: &Buffer) -> Vec<serde_json::Value> {
    log.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A collector that takes everything, on a thread that ends with the process.
fn collector() -> (SocketAddr, Bodies) {
    let bodies = Bodies::default();
    let taken = Arc::clone(&bodies);
    let take = move |body: Bytes| {
        taken.lock().unwrap_or_else(PoisonError::into_inner).push(body);
        async {}
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, Router::new().route("/v1/traces", post(take))).await.unwrap();
        });
    });
    (address, bodies)
}

fn export(address: SocketAddr, sampler: Sampler) -> Export {
    Export {
        url: format!("http://{address}/v1/traces").parse().unwrap(),
        headers: Vec::new(),
        certificate: None,
        timeout: Duration::from_secs(10),
        sampler,
        share: 1.0,
        service_name: None,
    }
}

/// Runs `work` while its spans are exported, and returns the log lines. The collector has the spans when this returns.
fn exporting(export: &Export, work: impl FnOnce()) -> Vec<serde_json::Value> {
    exporting_within(Duration::from_mins(1), export, work)
}

/// The same, with a limit for what is still queued at the end.
fn exporting_within(limit: Duration, export: &Export, work: impl FnOnce()) -> Vec<serde_json::Value> {
    let log = Buffer::default();
    let settings = log::Settings { format: log::Format::Json, level: LevelFilter::INFO, crates: &["daemon"] };
    let program = Program { name: "a-program", version: "1.2.3" };
    let (queue, exporter) = export::start(export, &resource(export, program)).unwrap();
    let layer = log::lines(&[], settings, Some(add_ids), log.clone());
    with_default(subscriber(layer, export, queue), work);
    exporter.finish_within(limit);
    lines_of(&log)
}

fn spans(bodies: &Bodies) -> Vec<Exported> {
    let bodies = bodies.lock().unwrap();
    let requests = bodies.iter().map(|body| ExportTraceServiceRequest::decode(body.clone()).unwrap());
    let resources = requests.flat_map(|request| request.resource_spans);
    resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

#[test]
fn spans_are_exported_with_what_they_name_and_nothing_else() {
    let (address, bodies) = collector();
    let parent = PARENT.parse().ok();
    let lines = exporting(&export(address, Sampler::ParentOrRatio), || {
        let span = continuing(parent.as_ref(), info_span!(target: SPANS, "outer", hyperfleet.generation = 7_i64));
        let _outer = span.enter();
        let _log = info_span!("a span of the log", field = "planted-1").entered();
        info!(field = "planted-2", "planted-3");
        tracing::info!(target: SPANS, "planted-4");
        let inner = info_span!(target: SPANS, "inner");
        fail(&inner, "NameConflict");
        inner.in_scope(|| info!("within"));
    });
    let spans = spans(&bodies);
    let [inner, outer] = spans.as_slice() else { panic!("two spans, not {spans:?}") };
    assert_eq!((outer.name.as_str(), inner.name.as_str()), ("outer", "inner"));
    assert_eq!(hex(&outer.trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!((hex(&outer.parent_span_id).as_str(), &inner.trace_id), ("b7ad6b7169203331", &outer.trace_id));
    assert_eq!(inner.parent_span_id, outer.span_id);
    let attributes: Vec<&str> = outer.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
    assert_eq!(attributes, ["hyperfleet.generation"]);
    assert_eq!(inner.status.as_ref().unwrap().message, "NameConflict");
    assert!(spans.iter().all(|span| span.events.is_empty()));
    let exported: Vec<u8> = bodies.lock().unwrap().iter().flatten().copied().collect();
    assert!(String::from_utf8_lossy(&exported).contains("a-program"));
    assert!(!String::from_utf8_lossy(&exported).contains("planted"));
    // A span for traces gives lines no field but its ids.
    let ids = |line: &serde_json::Value| {
        [line["trace_id"].as_str().map(str::to_owned), line["span_id"].as_str().map(str::to_owned)]
    };
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(ids(&lines[0]), [Some(hex(&outer.trace_id)), Some(hex(&outer.span_id))]);
    assert_eq!(ids(&lines[1]), [Some(hex(&inner.trace_id)), Some(hex(&inner.span_id))]);
    assert_eq!(lines[0]["hyperfleet.generation"], serde_json::Value::Null);
}

#[test]
fn without_an_export_there_are_no_spans() {
    let log = Buffer::default();
    let settings = log::Settings { format: log::Format::Json, level: LevelFilter::INFO, crates: &["daemon"] };
    with_default(log::subscriber(settings, log.clone()), || {
        let parent = PARENT.parse().ok();
        let span = continuing(parent.as_ref(), info_span!(target: SPANS, "outer"));
        let span = linked(parent.as_ref(), span);
        assert!(span.is_disabled());
        fail(&span, "NameConflict");
        span.in_scope(|| {
            assert_eq!((current(), context(&span)), (None, None));
            info!("within");
        });
    });
    assert!(lines_of(&log)[0].get("trace_id").is_none());
}

#[test]
fn the_context_of_a_span_is_what_another_process_continues() {
    let (address, bodies) = collector();
    exporting(&export(address, Sampler::AlwaysOn), || {
        let span = info_span!(target: SPANS, "outer");
        let context = context(&span).unwrap();
        assert_eq!(span.in_scope(current), Some(context.clone()));
        drop(linked(Some(&context), continuing(Some(&context), info_span!(target: SPANS, "elsewhere"))));
        drop(span);
    });
    let spans = spans(&bodies);
    let [elsewhere, outer] = spans.as_slice() else { panic!("two spans, not {spans:?}") };
    assert_eq!((&elsewhere.trace_id, &elsewhere.parent_span_id), (&outer.trace_id, &outer.span_id));
    assert_eq!(elsewhere.links[0].span_id, outer.span_id);
}

#[rstest]
#[case::always_on(Sampler::AlwaysOn, [true, true, true])]
#[case::always_off(Sampler::AlwaysOff, [false, false, false])]
#[case::ratio(Sampler::Ratio, [true, true, true])]
#[case::parent_or_on(Sampler::ParentOrOn, [true, false, true])]
#[case::parent_or_off(Sampler::ParentOrOff, [true, false, false])]
#[case::parent_or_ratio(Sampler::ParentOrRatio, [true, false, true])]
fn the_sampler_chooses(#[case] sampler: Sampler, #[case] expect: [bool; 3]) {
    for (parent, expect) in [PARENT, UNRECORDED, "none"].into_iter().zip(expect) {
        let (address, bodies) = collector();
        exporting(&export(address, sampler), || {
            let parent = parent.parse().ok();
            let span = continuing(parent.as_ref(), info_span!(target: SPANS, "one"));
            // What is not recorded is said so to the next process.
            assert_eq!(context(&span).unwrap().is_sampled(), expect);
        });
        assert_eq!(spans(&bodies).len(), usize::from(expect), "{sampler:?} with {parent}");
    }
}

#[test]
fn a_share_of_zero_records_nothing() {
    let (address, bodies) = collector();
    let export = Export { share: 0.0, ..export(address, Sampler::ParentOrRatio) };
    exporting(&export, || drop(info_span!(target: SPANS, "one")));
    assert_eq!(spans(&bodies), []);
}

#[test]
fn a_collector_that_stalls_holds_nothing_up_and_what_it_does_not_take_is_counted() {
    // Connections are made and never answered.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let before = dropped().get();
    exporting_within(Duration::from_secs(2), &export(listener.local_addr().unwrap(), Sampler::AlwaysOn), || {
        // More than the queue and the request in flight can hold.
        for _ in 0..10_000 {
            drop(info_span!(target: SPANS, "one"));
        }
    });
    assert!(dropped().get() - before >= 5_000, "{} dropped", dropped().get() - before);
}

#[test]
fn authorities_that_cannot_be_read_are_refused_with_the_variable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    let url = "https://collector/v1/traces".parse().unwrap();
    let export =
        Export { url, certificate: Some(path.clone()), ..export(([127, 0, 0, 1], 1).into(), Sampler::AlwaysOn) };
    let program = Program { name: "a-program", version: "1" };
    let fault = || export::start(&export, &resource(&export, program)).unwrap_err().to_string();
    assert!(fault().starts_with("OTEL_EXPORTER_OTLP_CERTIFICATE: cannot read "), "{}", fault());
    crate::file::replace(&path, b"not pem").unwrap();
    assert!(fault().contains("holds no certificate"), "{}", fault());
}
