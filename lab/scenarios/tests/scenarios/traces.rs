//! One trace from a change at the API to the stored version, as OpenTelemetry's own collector receives it.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use daemon::retry::Budget;
use hyperfleet_client::Patch;
use serde_json::{Value, json};
use testkit::environment::{missing, variable};
use testkit::fleet::{Up, document, folder, is_available, up};
use testkit::leaks;
use testkit::rig::{Signal, signal};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::guides::free_ports;

const ID: &str = "cls-1";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// A collector that writes what it receives to a file.
struct Collector {
    child: Child,
    endpoint: String,
    file: PathBuf,
}

/// A span as the collector writes it.
#[derive(Debug)]
struct Span {
    id: String,
    trace: String,
    parent: String,
    name: String,
    service: String,
    attributes: BTreeMap<String, Value>,
    links: Vec<Value>,
}

// === impl Collector ===

impl Collector {
    /// `None`, with a line that says how to get it, where there is none; in CI that is a failure.
    async fn start(folder: &Path) -> Option<Self> {
        let Some(program) = variable("REAL_OPENTELEMETRY_COLLECTOR") else {
            return missing(
                "REAL_OPENTELEMETRY_COLLECTOR is not set: no collector; e=$(hack/real-parts/tools.sh get opentelemetry-collector) && eval \"$e\"",
            );
        };
        let address = SocketAddr::from(([127, 0, 0, 1], free_ports(1)[0]));
        let file = folder.join("spans.json");
        let config = json!({
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": address.to_string()}}}},
            "exporters": {"file": {"path": file}},
            "service": {
                "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]}},
                "telemetry": {"metrics": {"level": "none"}},
            },
        });
        let path = folder.join("collector.yaml");
        daemon::file::replace(&path, config.to_string().as_bytes()).unwrap();
        let mut command = Command::new(program);
        command.arg("--config").arg(&path).env_clear().stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        while tokio::net::TcpStream::connect(address).await.is_err() {
            assert_eq!(child.try_wait().unwrap(), None, "the collector has ended");
            tokio::task::yield_now().await;
        }
        Some(Self { child, endpoint: format!("http://{address}"), file })
    }

    /// Ends it, and returns everything that it has received.
    async fn received(mut self) -> Vec<Span> {
        signal(&self.child, Signal::TERM);
        assert!(self.child.wait().await.unwrap().success());
        let text = fs::read_to_string(&self.file).unwrap();
        leaks::check("the collector's file", &text);
        text.lines().flat_map(|line| spans(&serde_json::from_str(line).unwrap())).collect()
    }
}

fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

fn attributes(value: &Value) -> BTreeMap<String, Value> {
    let pair = |pair: &Value| {
        let value = pair["value"].as_object().unwrap().values().next().unwrap().clone();
        (pair["key"].as_str().unwrap().to_owned(), value)
    };
    items(value, "attributes").map(pair).collect()
}

fn spans(request: &Value) -> Vec<Span> {
    let mut spans = Vec::new();
    for resource in items(request, "resourceSpans") {
        let service = attributes(&resource["resource"])["service.name"].as_str().unwrap().to_owned();
        for span in items(resource, "scopeSpans").flat_map(|scope| items(scope, "spans")) {
            let text = |name: &str| span[name].as_str().unwrap_or_default().to_owned();
            assert!(span.get("events").is_none(), "an event may say anything: {span}");
            spans.push(Span {
                id: text("spanId"),
                trace: text("traceId"),
                parent: text("parentSpanId"),
                name: text("name"),
                service: service.clone(),
                attributes: attributes(span),
                links: items(span, "links").cloned().collect(),
            });
        }
    }
    spans
}

/// The names from a span up to the one that has no parent here, and the id of the parent that is missing.
fn ancestry<'a>(spans: &'a [Span], mut span: &'a Span) -> (Vec<&'a str>, &'a str) {
    let mut names = vec![span.name.as_str()];
    while let Some(parent) = spans.iter().find(|other| other.id == span.parent) {
        assert_eq!(parent.trace, span.trace);
        names.push(&parent.name);
        span = parent;
    }
    (names, &span.parent)
}

/// The record of a fleet plane in which a cluster becomes available, and then is changed by a caller with a trace.
#[derive(Default)]
struct Change {
    spans: Vec<Span>,
    output: String,
}

async fn change(collector: Collector, data: &Path) -> Change {
    let mut command = up(data);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    let up = Up::start(command).await;
    let (player, cluster) = (&up.player, up.cluster().await);
    player.create(ID, &document("a")).await;
    player.make_ready(&cluster, ID, 1).await;
    player.until(ID, |cluster| is_available(cluster, 1)).await;
    let spec = json!({
        "provider": "gcp", "gcp": {"projectId": testkit::fleet::PROJECT}, "pullSecret": {"data": document("b")},
    });
    let patch = Patch { spec: spec.as_object().cloned(), ..Patch::default() };
    let budget = Budget::new(Duration::from_mins(10), CancellationToken::new());
    let caller = format!("00-{TRACE}-{CALLER}-01").parse().unwrap();
    player.client.within(&budget).traced(Some(&caller)).patch("clusters", ID, &patch, None).await.unwrap();
    player.make_ready(&cluster, ID, 2).await;
    player.until(ID, |cluster| is_available(cluster, 2)).await;
    let (code, output) = up.interrupt().await;
    assert_eq!(code, Some(0), "{output}");
    Change { spans: collector.received().await, output }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_one_trace_from_the_caller_to_the_stored_version() {
    let mut changed = Change::default();
    // A pass that an earlier event has caused may see the change first: then the run belongs to that event's trace, rightly.
    for _attempt in 0..24 {
        let (data, kept) = (folder(), folder());
        let Some(collector) = Collector::start(kept.path()).await else { return };
        changed = change(collector, data.path()).await;
        // At its end a program has two seconds for its last spans; on a busy machine they may be lost.
        let stored = changed.spans.iter().filter(|span| span.name == "add version");
        let (of_change, others): (Vec<_>, Vec<_>) = stored.partition(|span| span.trace == TRACE);
        if !of_change.is_empty() && !others.is_empty() {
            break;
        }
    }
    let Change { spans, output } = changed;
    let of_change: Vec<&Span> = spans.iter().filter(|span| span.trace == TRACE).collect();
    let named = |name: &str| of_change.iter().find(|span| span.name == name).copied();
    let stored = named("add version").unwrap_or_else(|| panic!("the stored version is not in the trace: {spans:#?}"));
    assert_eq!(
        (stored.service.as_str(), &stored.attributes["hyperfleet.secret_version"]),
        ("pullsecret-job", &json!("2"))
    );
    let route = "PATCH /api/hyperfleet/v1/clusters/-";
    let chain = ["add version", "run", "reconcile", "hyperfleet-clusters publish", route];
    assert_eq!(ancestry(&spans, stored), (chain.to_vec(), CALLER));
    for step in ["read back", "apply Kubernetes Secret"] {
        assert_eq!(ancestry(&spans, named(step).unwrap()).0[1..], chain[1..], "{step}");
    }
    let run = named("run").unwrap();
    let expected = json!({
        "hyperfleet.resource_type": "clusters", "hyperfleet.resource_id": ID, "hyperfleet.generation": "2",
        "hyperfleet.secret_name": format!("hyperfleet-{ID}-pull-secret"), "hyperfleet.secret_version": "2",
        "hyperfleet.decision_reason": "SecretStored",
    });
    assert_eq!(json!(run.attributes), expected);
    // The report that ends it belongs to it too: the pass that the Job's end has caused, and its call of the API.
    let reports = of_change.iter().filter(|span| span.name == "PUT /api/hyperfleet/v1/clusters/-/statuses");
    assert!(
        reports
            .map(|span| ancestry(&spans, span))
            .any(|(names, _)| names.get(1..3) == Some(&["reconcile", "reconcile"][..]))
    );
    // The creation, of a caller without a trace, is a trace of its own.
    let created = spans.iter().find(|span| span.name == "POST /api/hyperfleet/v1/clusters").unwrap();
    assert_eq!((created.parent.as_str(), created.trace == TRACE), ("", false));
    assert!(spans.iter().any(|span| span.name == "add version" && span.trace == created.trace));
    let of_trace = |line: &&str| line.contains(TRACE) && line.contains("\"span_id\":\"");
    for operation in ["\"operation\":\"publish\"", "\"operation\":\"reconcile\"", "\"operation\":\"request\""] {
        assert!(output.lines().filter(of_trace).any(|line| line.contains(operation)), "{operation}: {output}");
    }
    assert!(of_change.iter().all(|span| span.links.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_collector_all_works_and_the_log_says_so_once() {
    let data = folder();
    let mut command = up(data.path());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let up = Up::start(command).await;
    let (player, cluster) = (&up.player, up.cluster().await);
    for generation in [1, 2] {
        let content = document(if generation == 1 { "a" } else { "b" });
        if generation == 1 {
            player.create(ID, &content).await
        } else {
            player.rotate(ID, &content).await
        };
        player.make_ready(&cluster, ID, generation).await;
        player.until(ID, |cluster| is_available(cluster, generation)).await;
    }
    assert_eq!(up.versions(ID).await.len(), 2);
    let (code, output) = up.interrupt().await;
    assert_eq!(code, Some(0), "{output}");
    let own = |line: &&str| line.contains(r#""operation":"export-traces""#) && !line.contains(r#""component":"job""#);
    assert_eq!(output.lines().filter(own).count(), 1, "{output}");
}
