//! The state of a node's credentials, for people, the readiness probe and Prometheus.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fleet_model::metrics::{Metric, syncer as catalogue};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::reason::Reason;

/// The state of a node's credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// True while the kubelet runs with the newest credentials, of the revision that this pod is for. Without such a
    /// revision, false while the source is unavailable: there may be newer ones.
    pub ready: bool,
    /// The reason for the state; the reference lists all.
    pub reason: String,
    /// The meaning of the reason, and the next step.
    pub message: String,
    /// The last fault since the last success.
    pub fault: Option<String>,
    /// The reason why the source is unavailable, if it is; its last state stands.
    pub source_unavailable: Option<String>,
    /// Time since which the reason holds.
    pub since: Timestamp,
    /// Time at which this process last applied credentials.
    pub applied_at: Option<Timestamp>,
    /// The applied revision, as the publisher of the Secret names it.
    pub revision: Option<String>,
    /// The revision that this pod is for, if it is for one.
    pub expected_revision: Option<String>,
    /// Counts since this process started.
    pub counts: Counts,
}

/// Counts of effects and faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The file was replaced.
    pub writes: u64,
    /// The kubelet was restarted.
    pub restarts: u64,
    /// A restart failed, or the kubelet did not stay up.
    pub failed_restarts: u64,
    /// systemd could not be reached.
    pub systemd_unreachable: u64,
    /// A change was rolled back.
    pub rollbacks: u64,
    /// The disk refused a step.
    pub disk_faults: u64,
}

/// The status, shared between the task that writes it and those that read it.
#[derive(Clone, Debug)]
pub struct SharedStatus {
    status: Arc<Mutex<Status>>,
    applied: watch::Sender<Option<String>>,
}

// === impl Status ===

impl Status {
    /// The status of a process that has just started.
    pub fn new(expected_revision: Option<String>, now: Timestamp) -> Self {
        let reason = Reason::Starting;
        Self {
            ready: false,
            reason: reason.as_str().to_owned(),
            message: reason.meaning().to_owned(),
            fault: None,
            source_unavailable: None,
            since: now,
            applied_at: None,
            revision: None,
            expected_revision,
            counts: Counts::default(),
        }
    }

    /// Renders the status in a few lines, for people.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}: {}\n", self.reason, self.message);
        let mut row = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                // Writing to a String cannot fail, here and below.
                let _infallible = writeln!(text, "  {name:<18} {value}");
            }
        };
        row("ready", Some(if self.ready { "yes" } else { "no" }.to_owned()));
        row("since", Some(self.since.to_string()));
        row("last fault", self.fault.clone());
        row("source unavailable", self.source_unavailable.clone());
        row("applied at", self.applied_at.map(|at| at.to_string()));
        row("revision", self.revision.clone());
        row("expected revision", self.expected_revision.clone());
        let Counts { writes, restarts, failed_restarts, systemd_unreachable, rollbacks, disk_faults } = self.counts;
        row(
            "since start",
            Some(format!(
                "{writes} writes, {restarts} restarts ({failed_restarts} failed), \
                 {systemd_unreachable} calls without systemd, {rollbacks} rollbacks, {disk_faults} disk faults"
            )),
        );
        text
    }

    /// Renders the status in the Prometheus text format.
    pub fn to_metrics(&self) -> String {
        let mut text = String::new();
        let mut metric = |metric: &Metric, samples: &[(String, i64)]| {
            let (series, kind, help) = (metric.series(), metric.kind.as_str(), metric.help());
            let _infallible = write!(text, "# HELP {series} {help}\n# TYPE {series} {kind}\n");
            for (labels, value) in samples {
                let _infallible = writeln!(text, "{series}{labels} {value}");
            }
        };
        let one = |value: i64| [(String::new(), value)];
        let reasons =
            Reason::ALL.map(|reason| (format!("{{reason=\"{reason}\"}}"), i64::from(reason.as_str() == self.reason)));
        metric(&catalogue::READY, &one(self.ready.into()));
        metric(&catalogue::REASON, &reasons);
        metric(&catalogue::SOURCE_UNAVAILABLE, &one(self.source_unavailable.is_some().into()));
        metric(&catalogue::APPLIED_TIMESTAMP, &one(self.applied_at.map_or(0, Timestamp::as_second)));
        let Counts { writes, restarts, failed_restarts, systemd_unreachable, rollbacks, disk_faults } = self.counts;
        for (counter, count) in [
            (&catalogue::WRITES, writes),
            (&catalogue::RESTARTS, restarts),
            (&catalogue::FAILED_RESTARTS, failed_restarts),
            (&catalogue::SYSTEMD_UNREACHABLE, systemd_unreachable),
            (&catalogue::ROLLBACKS, rollbacks),
            (&catalogue::DISK_FAULTS, disk_faults),
        ] {
            metric(counter, &one(i64::try_from(count).unwrap_or(i64::MAX)));
        }
        text
    }
}

// === impl SharedStatus ===

impl SharedStatus {
    /// Shares this status.
    pub fn new(status: Status) -> Self {
        let applied = watch::Sender::new(status.revision.clone());
        Self { status: Arc::new(Mutex::new(status)), applied }
    }

    /// Returns a copy of the status.
    pub fn read(&self) -> Status {
        self.lock().clone()
    }

    /// Updates the status.
    pub fn update(&self, change: impl FnOnce(&mut Status)) {
        let revision = {
            let mut status = self.lock();
            change(&mut status);
            status.revision.clone()
        };
        self.applied.send_if_modified(|applied| {
            let changes = *applied != revision;
            *applied = revision;
            changes
        });
    }

    /// Returns a receiver of the applied revision.
    pub fn applied(&self) -> watch::Receiver<Option<String>> {
        self.applied.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
