//! The metrics of the API, under HyperFleet's names.

use std::time::Duration;

use http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry as Metered;

use crate::decide::report::DiscardReason;
use crate::entity::Registry;
use crate::resource::Resource;
use crate::store::Pending;
use crate::store::meter::QueryMeter;

/// The metrics of one server. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    version: &'static str,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RequestLabels, Histogram>,
    started: Family<ReconciliationLabels, Counter>,
    discarded: Family<DiscardLabels, Counter>,
    pending: Family<ReconciliationLabels, Gauge>,
    stuck: Family<ReconciliationLabels, Gauge>,
    stuck_seconds: Family<ReconciliationLabels, Gauge>,
    pub(crate) connections_open: Gauge,
    pub(crate) connections_in_use: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    component: &'static str,
    version: &'static str,
    method: String,
    path: String,
    code: u16,
}

/// The resources whose reconciliation is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconciliationLabels {
    resource_type: String,
    is_delete: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DiscardLabels {
    reason: &'static str,
}

// === impl Metrics ===

impl Metrics {
    /// Registers the metrics of a server of that version.
    pub fn register(registry: &mut Metered, version: &'static str, queries: &QueryMeter) -> Self {
        let metrics = Self {
            version,
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 15))),
            started: Family::default(),
            discarded: Family::default(),
            pending: Family::default(),
            stuck: Family::default(),
            stuck_seconds: Family::default(),
            connections_open: Gauge::default(),
            connections_in_use: Gauge::default(),
        };
        let build = Info::new([("version", version)]);
        registry.register("hyperfleet_api_build", "Version of the running server", build);
        registry.register("hyperfleet_api_requests", "Answered requests", metrics.requests.clone());
        let help = "Duration of requests, in seconds";
        registry.register("hyperfleet_api_request_duration_seconds", help, metrics.durations.clone());
        let help = "Changes of desired state that adapters have to reconcile";
        registry.register("hyperfleet_api_reconciliation_started", help, metrics.started.clone());
        let help = "Discarded reports, by reason";
        registry.register("hyperfleet_api_reports_discarded", help, metrics.discarded.clone());
        let help = "Resources that are not reconciled";
        registry.register("hyperfleet_api_resource_pending_reconciliation", help, metrics.pending.clone());
        let help = "Resources that have not been reconciled for longer than the threshold";
        registry.register("hyperfleet_api_resource_pending_reconciliation_stuck", help, metrics.stuck.clone());
        let help = "Time for which the oldest of these has not been reconciled, in seconds";
        let name = "hyperfleet_api_resource_pending_reconciliation_stuck_duration_seconds";
        registry.register(name, help, metrics.stuck_seconds.clone());
        let help = "Duration of database statements, in seconds";
        registry.register("hyperfleet_db_query_duration_seconds", help, queries.durations.clone());
        registry.register("hyperfleet_db_errors", "Failed database statements", queries.errors.clone());
        let help = "Open connections to the database";
        registry.register("hyperfleet_db_connections_open", help, metrics.connections_open.clone());
        let help = "Connections to the database that are in use";
        registry.register("hyperfleet_db_connections_in_use", help, metrics.connections_in_use.clone());
        metrics
    }

    /// Counts a request.
    pub(crate) fn answered(&self, method: &Method, path: &str, status: StatusCode, duration: Duration) {
        // Unknown methods share one label, so that clients cannot create series.
        let known = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        let labels = RequestLabels {
            component: "api",
            version: self.version,
            method: if known.contains(method) { method.to_string() } else { "other".to_owned() },
            path: path.to_owned(),
            code: status.as_u16(),
        };
        self.requests.get_or_create(&labels).inc();
        self.durations.get_or_create(&labels).observe(duration.as_secs_f64());
    }

    /// Counts a change of desired state.
    pub(crate) fn reconciliation_started(&self, resource: &Resource, registry: &Registry) {
        if registry.kind(&resource.kind).is_some_and(crate::entity::Descriptor::has_adapters) {
            self.started.get_or_create(&labels(&resource.kind, resource.is_terminating())).inc();
        }
    }

    /// Sets the gauges of resources that are not reconciled; kinds without any lose theirs.
    pub(crate) fn set_pending(&self, pending: &[Pending]) {
        for gauges in [&self.pending, &self.stuck, &self.stuck_seconds] {
            gauges.clear();
        }
        for one in pending {
            let labels = labels(&one.kind, one.is_delete);
            self.pending.get_or_create(&labels).set(one.waiting);
            self.stuck.get_or_create(&labels).set(one.stuck);
            self.stuck_seconds.get_or_create(&labels).set(one.longest_seconds);
        }
    }

    /// Counts a discarded report.
    pub(crate) fn discarded(&self, reason: DiscardReason) {
        self.discarded.get_or_create(&DiscardLabels { reason: reason.as_str() }).inc();
    }
}

fn labels(kind: &str, is_delete: bool) -> ReconciliationLabels {
    ReconciliationLabels { resource_type: kind.to_owned(), is_delete: is_delete.to_string() }
}
