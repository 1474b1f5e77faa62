//! Metrics of a running API, declared in `fleet_model::metrics::api`.

use std::collections::BTreeMap;
use std::time::Duration;

use daemon::metrics::register;
use daemon::traces;
use database::QueryMeter;
use fleet_model::metrics::api as catalogue;
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

/// Metrics of one server. Clones share their values.
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
    pull_secrets: Family<KeyLabels, Gauge>,
    old_keys: Gauge,
    pub(crate) unwritable: Gauge,
    pub(crate) stale_configuration: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KeyLabels {
    key: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    component: &'static str,
    version: &'static str,
    method: String,
    path: String,
    code: u16,
}

/// Labels of metrics about reconciliation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconciliationLabels {
    resource_type: String,
    is_delete: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DiscardLabels {
    reason: &'static str,
}

/// The name of a method that the API knows; `None` for another one, of which clients can invent any number, of any length.
pub(crate) fn known(method: &Method) -> Option<&str> {
    let known = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    known.contains(method).then(|| method.as_str())
}

// === impl Metrics ===

impl Metrics {
    /// Registers the metrics of a server.
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
            pull_secrets: Family::default(),
            old_keys: Gauge::default(),
            unwritable: Gauge::default(),
            stale_configuration: Gauge::default(),
        };
        register(registry, &catalogue::BUILD, Info::new([("version", version)]));
        register(registry, &catalogue::REQUESTS, metrics.requests.clone());
        register(registry, &catalogue::REQUEST_DURATION, metrics.durations.clone());
        register(registry, &catalogue::RECONCILIATION_STARTED, metrics.started.clone());
        register(registry, &catalogue::REPORTS_DISCARDED, metrics.discarded.clone());
        register(registry, &catalogue::PENDING_RECONCILIATION, metrics.pending.clone());
        register(registry, &catalogue::PENDING_RECONCILIATION_STUCK, metrics.stuck.clone());
        register(registry, &catalogue::PENDING_RECONCILIATION_STUCK_DURATION, metrics.stuck_seconds.clone());
        register(registry, &catalogue::DB_QUERY_DURATION, queries.durations.clone());
        register(registry, &catalogue::DB_ERRORS, queries.errors.clone());
        register(registry, &catalogue::DB_CONNECTIONS_OPEN, metrics.connections_open.clone());
        register(registry, &catalogue::DB_CONNECTIONS_IN_USE, metrics.connections_in_use.clone());
        register(registry, &catalogue::PULL_SECRETS, metrics.pull_secrets.clone());
        register(registry, &catalogue::OLD_KEYS, metrics.old_keys.clone());
        register(registry, &catalogue::UNWRITABLE, metrics.unwritable.clone());
        register(registry, &catalogue::STALE_CONFIGURATION, metrics.stale_configuration.clone());
        register(registry, &catalogue::TRACE_SPANS_DROPPED, traces::dropped());
        metrics
    }

    /// Exposes the stored pull secrets by key. Keys of the previous call that are unused now disappear.
    pub(crate) fn set_keys(&self, keys: &BTreeMap<String, u64>, first: Option<&str>) {
        let gauge = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.pull_secrets.clear();
        let old = keys.iter().filter(|(key, _)| Some(key.as_str()) != first);
        self.old_keys.set(gauge(old.map(|(_, number)| number).sum()));
        for (key, number) in keys {
            self.pull_secrets.get_or_create(&KeyLabels { key: key.clone() }).set(gauge(*number));
        }
    }

    /// Counts a request and records its duration.
    pub(crate) fn answered(&self, method: &Method, path: &str, status: StatusCode, duration: Duration) {
        let labels = RequestLabels {
            component: "api",
            version: self.version,
            method: known(method).unwrap_or("other").to_owned(),
            path: path.to_owned(),
            code: status.as_u16(),
        };
        self.requests.get_or_create(&labels).inc();
        self.durations.get_or_create(&labels).observe(duration.as_secs_f64());
    }

    /// Counts a new generation or a deletion.
    pub(crate) fn reconciliation_started(&self, resource: &Resource, registry: &Registry) {
        if registry.kind(&resource.kind).is_some_and(crate::entity::Descriptor::has_adapters) {
            self.started.get_or_create(&labels(&resource.kind, resource.is_terminating())).inc();
        }
    }

    /// Exposes the resources that are not reconciled. Series of the previous call that are missing now disappear.
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

#[cfg(test)]
mod tests {
    use super::*;
    use database::QueryLabels;

    #[test]
    fn every_metric_is_in_the_catalogue() {
        let mut registry = Metered::default();
        let queries = QueryMeter::new(&[]);
        let metrics = Metrics::register(&mut registry, "test", &queries);
        metrics.answered(&Method::GET, "/", StatusCode::OK, Duration::ZERO);
        metrics.started.get_or_create(&labels("Cluster", false)).inc();
        metrics.discarded(DiscardReason::StaleTime);
        let kind = "Cluster".to_owned();
        metrics.set_pending(&[Pending { kind, is_delete: false, waiting: 1, stuck: 1, longest_seconds: 1 }]);
        metrics.set_keys(&[("one".to_owned(), 1), ("two".to_owned(), 5)].into(), Some("one"));
        assert_eq!(metrics.old_keys.get(), 5);
        queries.durations.get_or_create(&QueryLabels::COMMIT).observe(1.0);
        assert_eq!(daemon::metrics::differences(&registry, &[catalogue::METRICS], ""), [""; 0]);
    }
}
