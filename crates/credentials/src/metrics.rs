//! Metrics of the running service, declared in `fleet_model::metrics::credentials`.

mod entries;
mod requests;

use std::collections::BTreeMap;

use daemon::metrics::register;
use daemon::traces;
use database::QueryMeter;
use fleet_model::metrics::credentials as catalogue;
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::credential::RegistryName;
use crate::decide::Work;
use crate::decide::ams::Phase;
use crate::entries::EntryCounts;
use crate::ledger::Count;
use crate::rotation::{ClusterProgress, GroupCounts, RotationPhase};
use crate::state::State;
use entries::{EntryGauges, gauge};
use requests::Requests;

pub use requests::AnsweredRequest;

/// Metrics of one service. Clones share their values.
#[derive(Clone, Debug)]
pub struct Metrics {
    credentials: Family<ByState, Gauge>,
    standing: Family<ByReason, Gauge>,
    oldest_unadopted: Family<OfRegistry, Gauge>,
    pool_ready: Family<OfRegistry, Gauge>,
    pool_target: Family<OfRegistry, Gauge>,
    calls: Family<ByOutcome, Counter>,
    waiting_calls: Family<ByLane, Gauge>,
    registry_failing: Family<OfRegistry, Gauge>,
    rotations: Family<ByPhase, Gauge>,
    rotation_clusters: Family<ByProgress, Gauge>,
    last_resync: Family<OfRegistry, Gauge>,
    entries: EntryGauges,
    leaving: Family<ByAmsPhase, Gauge>,
    old_keys: Gauge,
    requests: Requests,
}

/// A finished call of a registry.
#[derive(Clone, Copy, Debug)]
pub struct FinishedCall<'a> {
    /// The registry.
    pub registry: &'a RegistryName,
    /// The operation, a word.
    pub operation: &'static str,
    /// The outcome, a word.
    pub outcome: &'static str,
}

/// The pool of a registry.
#[derive(Clone, Copy, Debug)]
pub struct PoolLevel<'a> {
    /// The registry.
    pub registry: &'a RegistryName,
    /// Credentials that should wait for a cluster.
    pub target: u64,
}

/// A rotation that is not over.
#[derive(Clone, Debug)]
pub struct OpenRotation {
    /// The registry.
    pub registry: RegistryName,
    /// Its phase.
    pub phase: RotationPhase,
    /// The numbers of its clusters by group.
    pub counts: Vec<GroupCounts>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRegistry {
    registry: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByState {
    registry: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    registry: String,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByLane {
    registry: String,
    lane: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPhase {
    registry: String,
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAmsPhase {
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByProgress {
    registry: String,
    progress: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    registry: String,
    operation: &'static str,
    outcome: &'static str,
}

// === impl Metrics ===

impl Metrics {
    /// Registers the metrics of a service.
    pub fn register(registry: &mut Registry, queries: &QueryMeter) -> Self {
        let metrics = Self {
            credentials: Family::default(),
            standing: Family::default(),
            oldest_unadopted: Family::default(),
            pool_ready: Family::default(),
            pool_target: Family::default(),
            calls: Family::default(),
            waiting_calls: Family::default(),
            registry_failing: Family::default(),
            rotations: Family::default(),
            rotation_clusters: Family::default(),
            last_resync: Family::default(),
            entries: EntryGauges::default(),
            leaving: Family::default(),
            old_keys: Gauge::default(),
            requests: Requests::register(registry),
        };
        register(registry, &catalogue::CREDENTIALS, metrics.credentials.clone());
        register(registry, &catalogue::STANDING, metrics.standing.clone());
        register(registry, &catalogue::OLDEST_UNADOPTED, metrics.oldest_unadopted.clone());
        register(registry, &catalogue::POOL_READY, metrics.pool_ready.clone());
        register(registry, &catalogue::POOL_TARGET, metrics.pool_target.clone());
        register(registry, &catalogue::CALLS, metrics.calls.clone());
        register(registry, &catalogue::WAITING_CALLS, metrics.waiting_calls.clone());
        register(registry, &catalogue::REGISTRY_FAILING, metrics.registry_failing.clone());
        register(registry, &catalogue::ROTATIONS, metrics.rotations.clone());
        register(registry, &catalogue::ROTATION_CLUSTERS, metrics.rotation_clusters.clone());
        register(registry, &catalogue::LAST_RESYNC, metrics.last_resync.clone());
        metrics.entries.register(registry);
        register(registry, &catalogue::AMS_CLUSTERS, metrics.leaving.clone());
        register(registry, &catalogue::OLD_KEYS, metrics.old_keys.clone());
        register(registry, &catalogue::DB_QUERY_DURATION, queries.durations.clone());
        register(registry, &catalogue::DB_ERRORS, queries.errors.clone());
        register(registry, &catalogue::TRACE_SPANS_DROPPED, traces::dropped());
        metrics
    }

    /// Counts a call of a registry.
    pub fn called(&self, call: &FinishedCall<'_>) {
        let FinishedCall { registry, operation, outcome } = *call;
        self.calls.get_or_create(&ByOutcome { registry: registry.to_string(), operation, outcome }).inc();
    }

    /// Sets the numbers of credentials and the levels of the pools. States and reasons that have none any more disappear.
    pub fn show_ledger(&self, counts: &[Count], pools: &[PoolLevel<'_>]) {
        let (mut states, mut reasons) = (BTreeMap::new(), BTreeMap::new());
        for Count { registry, state, reason, number } in counts {
            *states.entry((registry, *state)).or_insert(0) += *number;
            if !state.is_final() {
                *reasons.entry((registry, *reason)).or_insert(0) += *number;
            }
        }
        self.credentials.clear();
        self.standing.clear();
        for ((registry, state), number) in &states {
            let labels = ByState { registry: registry.to_string(), state: state.as_str() };
            self.credentials.get_or_create(&labels).set(gauge(*number));
        }
        for ((registry, reason), number) in reasons {
            let labels = ByReason { registry: registry.to_string(), reason: reason.as_str() };
            self.standing.get_or_create(&labels).set(gauge(number));
        }
        for PoolLevel { registry, target } in pools {
            let ready = states.get(&(*registry, State::Pooled)).copied().unwrap_or_default();
            self.pool_ready.get_or_create(&of(registry)).set(gauge(ready));
            self.pool_target.get_or_create(&of(registry)).set(gauge(*target));
        }
    }

    /// Sets the age of the oldest publication among the credentials of a registry that are not adopted.
    pub fn show_unadopted(&self, registry: &RegistryName, oldest: Option<Timestamp>, now: Timestamp) {
        let age = oldest.map_or(0, |oldest| now.duration_since(oldest).as_secs().max(0));
        self.oldest_unadopted.get_or_create(&of(registry)).set(age);
    }

    /// Sets the calls of a registry that wait.
    pub fn show_waiting(&self, registry: &RegistryName, work: &[Work]) {
        for lane in crate::state::Lane::ALL {
            let calls = work.iter().filter(|work| work.lane == lane).map(|work| work.calls).sum();
            let labels = ByLane { registry: registry.to_string(), lane: lane.as_str() };
            self.waiting_calls.get_or_create(&labels).set(gauge(calls));
        }
    }

    /// Shows that a registry fails, or that it does not.
    pub fn show_failing(&self, registry: &RegistryName, fails: bool) {
        self.registry_failing.get_or_create(&of(registry)).set(fails.into());
    }

    /// Sets the phase and the clusters of the rotations that are not over; those that are over disappear.
    pub fn show_rotations(&self, open: &[OpenRotation]) {
        self.rotations.clear();
        self.rotation_clusters.clear();
        for OpenRotation { registry, phase, counts } in open {
            let registry = registry.to_string();
            self.rotations.get_or_create(&ByPhase { registry: registry.clone(), phase: phase.as_str() }).set(1);
            for progress in ClusterProgress::ALL {
                let number = counts.iter().map(|counts| counts.of(progress)).sum();
                let labels = ByProgress { registry: registry.clone(), progress: progress.as_str() };
                self.rotation_clusters.get_or_create(&labels).set(gauge(number));
            }
        }
    }

    /// Sets the time of a complete list of clusters.
    pub fn resynced(&self, registry: &RegistryName, now: Timestamp) {
        self.last_resync.get_or_create(&of(registry)).set(now.as_second());
    }

    /// Sets the numbers and ages of the entries of all pull secrets.
    pub fn show_entries(&self, counts: &EntryCounts, now: Timestamp) {
        self.entries.show(counts, now);
    }

    /// Sets the numbers of clusters on their way from AMS.
    pub fn show_leaving(&self, phases: &BTreeMap<Phase, u64>) {
        for phase in Phase::ALL {
            let number = phases.get(&phase).copied().unwrap_or_default();
            self.leaving.get_or_create(&ByAmsPhase { phase: phase.as_str() }).set(gauge(number));
        }
    }

    /// Counts an answered request of the HTTP API.
    pub fn answered(&self, answered: &AnsweredRequest<'_>) {
        self.requests.answered(answered);
    }

    /// Sets the number of passwords that another key than the first seals.
    pub fn show_old_keys(&self, number: u64) {
        self.old_keys.set(gauge(number));
    }
}

fn of(registry: &RegistryName) -> OfRegistry {
    OfRegistry { registry: registry.to_string() }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;
    use crate::reason::Reason;

    fn count(state: State, reason: Reason, number: u64) -> Count {
        Count { registry: "quay".parse().unwrap(), state, reason, number }
    }

    #[test]
    fn every_metric_is_in_the_catalogue() {
        let (mut registered, queries) = (Registry::default(), QueryMeter::new(&["credentials"]));
        let metrics = Metrics::register(&mut registered, &queries);
        let registry = "quay".parse().unwrap();
        metrics.called(&FinishedCall { registry: &registry, operation: "create", outcome: "success" });
        metrics
            .show_ledger(&[count(State::Pooled, Reason::InPool, 2)], &[PoolLevel { registry: &registry, target: 3 }]);
        metrics.show_unadopted(&registry, None, Timestamp::UNIX_EPOCH);
        metrics.show_waiting(&registry, &[]);
        metrics.show_failing(&registry, true);
        let counts = vec![GroupCounts { failed: 1, ..GroupCounts::default() }; 2];
        metrics.show_rotations(&[OpenRotation { registry: registry.clone(), phase: RotationPhase::Stopped, counts }]);
        metrics.resynced(&registry, Timestamp::UNIX_EPOCH);
        metrics.show_entries(&EntryCounts::default(), Timestamp::UNIX_EPOCH);
        metrics.show_leaving(&BTreeMap::new());
        let (route, duration) = ("/v1/openapi", std::time::Duration::ZERO);
        metrics.answered(&AnsweredRequest { method: "GET", route, status: 200, duration });
        let without_statements = |line: &String| !line.starts_with(catalogue::DB_QUERY_DURATION.name);
        let differences = daemon::metrics::differences(&registered, &[catalogue::METRICS], "");
        assert_eq!(differences.into_iter().filter(without_statements).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn a_rotation_that_is_over_disappears() {
        let (mut registered, queries) = (Registry::default(), QueryMeter::new(&[]));
        let metrics = Metrics::register(&mut registered, &queries);
        let text = || {
            let mut text = String::new();
            encode(&mut text, &registered).unwrap();
            text
        };
        let counts =
            [[1, 2], [0, 3]].map(|[waiting, failed]| GroupCounts { waiting, failed, ..GroupCounts::default() });
        let phase = RotationPhase::Stopped;
        metrics.show_rotations(&[OpenRotation { registry: "quay".parse().unwrap(), phase, counts: counts.to_vec() }]);
        for line in [
            r#"hyperfleet_credentials_rotations{registry="quay",phase="Stopped"} 1"#,
            r#"hyperfleet_credentials_rotation_clusters{registry="quay",progress="Failed"} 5"#,
            r#"hyperfleet_credentials_rotation_clusters{registry="quay",progress="Succeeded"} 0"#,
        ] {
            assert!(text().contains(line), "{line}: {}", text());
        }
        metrics.show_rotations(&[]);
        assert!(!text().contains(r#"registry="quay""#), "{}", text());
    }

    #[test]
    fn states_and_reasons_without_credentials_disappear() {
        let (mut registered, queries) = (Registry::default(), QueryMeter::new(&[]));
        let metrics = Metrics::register(&mut registered, &queries);
        let shown = |name: &str| {
            let mut text = String::new();
            encode(&mut text, &registered).unwrap();
            let lines = text.lines().filter(|line| line.starts_with(name));
            lines.map(|line| line.trim_start_matches(name).to_owned()).collect::<Vec<_>>()
        };
        let never = count(State::Published, Reason::NeverReported, 2);
        metrics.show_ledger(&[never, count(State::WaitedOut, Reason::Done, 9)], &[]);
        assert_eq!(shown("hyperfleet_credentials_standing{"), [r#"registry="quay",reason="NeverReported"} 2"#]);
        metrics.show_ledger(&[count(State::Adopted, Reason::InUse, 1)], &[]);
        assert_eq!(shown("hyperfleet_credentials_standing{"), [r#"registry="quay",reason="InUse"} 1"#]);
        assert_eq!(shown("hyperfleet_credentials{"), [r#"registry="quay",state="Adopted"} 1"#]);
    }
}
