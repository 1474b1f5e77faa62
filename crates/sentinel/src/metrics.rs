//! Metrics of a running Sentinel, declared in `fleet_model::metrics::sentinel`.

use std::time::Duration;

use daemon::metrics::register;
use daemon::traces;
use fleet_model::metrics::sentinel as catalogue;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::moment::Moment;
use crate::reason::Reason;

/// Metrics of one Sentinel. Clones share their values.
#[derive(Clone, Debug)]
pub struct Metrics {
    own: Own,
    pending: Family<Own, Gauge>,
    published: Family<WithReason, Counter>,
    skipped: Family<WithReason, Counter>,
    sweep: Family<Own, Histogram>,
    api_errors: Family<WithError, Counter>,
    broker_errors: Family<WithError, Counter>,
    last_sweep: Family<Own, Gauge>,
    lag: Family<Own, Histogram>,
    known: Family<Own, Gauge>,
    leading: Family<Own, Gauge>,
    streaming: Family<Own, Gauge>,
}

/// The Sentinel that metrics belong to.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The program's version.
    pub version: &'static str,
    /// The resource type that it watches.
    pub resource_type: String,
    /// Its resource selector, as a label.
    pub resource_selector: String,
    /// Its shard.
    pub shard: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Own {
    component: &'static str,
    version: &'static str,
    resource_type: String,
    resource_selector: String,
    shard: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WithReason {
    component: &'static str,
    version: &'static str,
    resource_type: String,
    resource_selector: String,
    shard: String,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WithError {
    component: &'static str,
    version: &'static str,
    resource_type: String,
    resource_selector: String,
    shard: String,
    error_type: &'static str,
}

/// Buckets of HyperFleet's Sentinel, in seconds.
const POLL_BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Buckets from the lag of a change stream to that of an outage, in seconds.
const LAG_BOUNDS: [f64; 14] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0];

// === impl Metrics ===

impl Metrics {
    /// Registers the metrics of a Sentinel.
    pub fn register(registry: &mut Registry, identity: Identity) -> Self {
        let Identity { version, resource_type, resource_selector, shard } = identity;
        let own = Own { component: "sentinel", version, resource_type, resource_selector, shard };
        let metrics = Self {
            own,
            pending: Family::default(),
            published: Family::default(),
            skipped: Family::default(),
            sweep: Family::new_with_constructor(|| Histogram::new(POLL_BOUNDS)),
            api_errors: Family::default(),
            broker_errors: Family::default(),
            last_sweep: Family::default(),
            lag: Family::new_with_constructor(|| Histogram::new(LAG_BOUNDS)),
            known: Family::default(),
            leading: Family::default(),
            streaming: Family::default(),
        };
        register(registry, &catalogue::PENDING_RESOURCES, metrics.pending.clone());
        register(registry, &catalogue::EVENTS_PUBLISHED, metrics.published.clone());
        register(registry, &catalogue::RESOURCES_SKIPPED, metrics.skipped.clone());
        register(registry, &catalogue::POLL_DURATION, metrics.sweep.clone());
        register(registry, &catalogue::API_ERRORS, metrics.api_errors.clone());
        register(registry, &catalogue::BROKER_ERRORS, metrics.broker_errors.clone());
        register(registry, &catalogue::LAST_SUCCESSFUL_POLL, metrics.last_sweep.clone());
        register(registry, &catalogue::PUBLISH_LAG, metrics.lag.clone());
        register(registry, &catalogue::KNOWN_RESOURCES, metrics.known.clone());
        register(registry, &catalogue::LEADER, metrics.leading.clone());
        register(registry, &catalogue::CHANGE_STREAM, metrics.streaming.clone());
        register(registry, &catalogue::TRACE_SPANS_DROPPED, traces::dropped());
        metrics.show_fleet(0, 0);
        metrics.show_leading(false);
        metrics.show_streaming(false);
        metrics
    }

    /// Counts an event that the broker has confirmed.
    pub fn published(&self, reason: Reason, lag: Option<Duration>) {
        self.published.get_or_create(&self.with_reason(reason)).inc();
        if let Some(lag) = lag {
            self.lag.get_or_create(&self.own).observe(lag.as_secs_f64());
        }
    }

    /// Counts an observation that caused no event.
    pub fn skipped(&self, reason: Reason) {
        self.skipped.get_or_create(&self.with_reason(reason)).inc();
    }

    /// Counts an event that the broker has refused.
    pub fn refused(&self) {
        self.broker_errors.get_or_create(&self.with_error("publish_error")).inc();
    }

    /// Counts a failed read of the API.
    pub fn api_failed(&self, is_auth_error: bool) {
        let error_type = if is_auth_error { "auth_error" } else { "fetch_error" };
        self.api_errors.get_or_create(&self.with_error(error_type)).inc();
    }

    /// Records that the whole fleet is known; `took` is the time of reading it.
    pub fn synced(&self, took: Option<Duration>, now: Moment) {
        if let Some(took) = took {
            self.sweep.get_or_create(&self.own).observe(took.as_secs_f64());
        }
        self.last_sweep.get_or_create(&self.own).set(now.0.div_euclid(1_000));
    }

    /// Sets the number of resources, and of those with unpublished changes.
    pub fn show_fleet(&self, known: usize, pending: usize) {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.known.get_or_create(&self.own).set(count(known));
        self.pending.get_or_create(&self.own).set(count(pending));
    }

    /// Removes the leader's metrics on a standby. A sync time that does not advance would cause an alert.
    pub fn stand_by(&self) {
        self.show_leading(false);
        self.show_streaming(false);
        self.show_fleet(0, 0);
        self.last_sweep.remove(&self.own);
    }

    /// Sets the leadership of this process.
    pub fn show_leading(&self, leads: bool) {
        self.leading.get_or_create(&self.own).set(leads.into());
    }

    /// Sets whether changes are received by the change stream.
    pub fn show_streaming(&self, streams: bool) {
        self.streaming.get_or_create(&self.own).set(streams.into());
    }

    fn with_reason(&self, reason: Reason) -> WithReason {
        let Own { component, version, resource_type, resource_selector, shard } = self.own.clone();
        WithReason { component, version, resource_type, resource_selector, shard, reason: reason.as_str() }
    }

    fn with_error(&self, error_type: &'static str) -> WithError {
        let Own { component, version, resource_type, resource_selector, shard } = self.own.clone();
        WithError { component, version, resource_type, resource_selector, shard, error_type }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn identity() -> Identity {
        let [resource_type, resource_selector, shard] = ["clusters", "all", "1/1"].map(str::to_owned);
        Identity { version: "test", resource_type, resource_selector, shard }
    }

    #[test]
    fn every_metric_is_in_the_catalogue() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry, identity());
        metrics.published(Reason::OtherShard, Some(Duration::ZERO));
        metrics.skipped(Reason::OtherShard);
        metrics.refused();
        metrics.api_failed(false);
        metrics.synced(Some(Duration::ZERO), Moment(0));
        assert_eq!(daemon::metrics::differences(&registry, &[catalogue::METRICS], ""), [""; 0]);
    }

    #[test]
    fn a_standby_has_no_sync_time() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry, identity());
        let shown = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            let line = |name: &str| text.lines().find(|line| line.starts_with(name)).map(str::to_owned);
            let value = |name: &str| Some(line(name)?.rsplit(' ').next()?.to_owned());
            ["last_successful_poll_timestamp_seconds", "leader", "change_stream", "known_resources"]
                .map(|name| value(&format!("hyperfleet_sentinel_{name}{{")))
        };
        metrics.show_leading(true);
        metrics.show_streaming(true);
        metrics.show_fleet(7, 1);
        metrics.synced(None, Moment(7_000));
        assert_eq!(shown().map(Option::unwrap), ["7", "1", "1", "7"]);
        metrics.stand_by();
        assert_eq!(shown(), [None, Some("0".to_owned()), Some("0".to_owned()), Some("0".to_owned())]);
    }
}
