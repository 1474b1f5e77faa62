//! How things are, for whoever asks: people, the readiness probe, Prometheus.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::reason::Reason;

/// What every metric begins with.
pub const PREFIX: &str = "sync_global_pullsecret";

/// How a node's credentials are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Whether the kubelet runs with the newest credentials, and with those of the revision that this pod is for.
    pub ready: bool,
    /// How things are, in one word; the list is in the reference.
    pub reason: String,
    /// What the word means, and what happens next.
    pub message: String,
    /// What went wrong last, if anything has since the last success.
    pub fault: Option<String>,
    /// Why the source cannot be asked, if it cannot; what it said before stands.
    pub source_away: Option<String>,
    /// Since when it is so.
    pub since: Timestamp,
    /// When credentials were last applied by this process.
    pub applied_at: Option<Timestamp>,
    /// The revision that is applied, as its publisher calls it.
    pub revision: Option<String>,
    /// The revision that this pod is for, if it is for one.
    pub expected_revision: Option<String>,
    /// What was done, since this process began.
    pub counts: Counts,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The file was replaced.
    pub writes: u64,
    /// The kubelet was restarted.
    pub restarts: u64,
    /// A restart failed, or the kubelet did not stay up.
    pub failed_restarts: u64,
    /// systemd could not be asked.
    pub unreachable: u64,
    /// A change was taken back.
    pub roll_backs: u64,
    /// The disk refused.
    pub disk_faults: u64,
}

/// The status, as one task writes it and others read it.
#[derive(Clone, Debug)]
pub struct Board(Arc<Mutex<Status>>);

// === impl Status ===

impl Status {
    /// The status of a process that has just begun.
    pub fn new(expected_revision: Option<String>, now: Timestamp) -> Self {
        let reason = Reason::Starting;
        Self {
            ready: false,
            reason: reason.name().to_owned(),
            message: reason.meaning().to_owned(),
            fault: None,
            source_away: None,
            since: now,
            applied_at: None,
            revision: None,
            expected_revision,
            counts: Counts::default(),
        }
    }

    /// In a few lines, for people.
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
        row("source away", self.source_away.clone());
        row("applied at", self.applied_at.map(|at| at.to_string()));
        row("revision", self.revision.clone());
        row("expected revision", self.expected_revision.clone());
        let Counts { writes, restarts, failed_restarts, unreachable, roll_backs, disk_faults } = self.counts;
        row(
            "since start",
            Some(format!(
                "{writes} writes, {restarts} restarts ({failed_restarts} failed, {unreachable} not possible), \
                 {roll_backs} roll-backs, {disk_faults} disk faults"
            )),
        );
        text
    }

    /// As Prometheus reads it.
    pub fn to_metrics(&self) -> String {
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, samples: &[(String, i64)]| {
            let _infallible = write!(text, "# HELP {PREFIX}_{name} {help}\n# TYPE {PREFIX}_{name} {kind}\n");
            for (labels, value) in samples {
                let _infallible = writeln!(text, "{PREFIX}_{name}{labels} {value}");
            }
        };
        let one = |value: i64| [(String::new(), value)];
        metric("ready", "gauge", "1 while the kubelet runs with the expected credentials.", &one(self.ready.into()));
        let reasons =
            Reason::ALL.map(|reason| (format!("{{reason=\"{reason}\"}}"), i64::from(reason.name() == self.reason)));
        metric("reason", "gauge", "1 for the word that says how things are, 0 for the others.", &reasons);
        metric("source_away", "gauge", "1 while the source cannot be asked.", &one(self.source_away.is_some().into()));
        let applied = self.applied_at.map_or(0, Timestamp::as_second);
        metric(
            "applied_timestamp_seconds",
            "gauge",
            "When credentials were last applied, 0 if not yet.",
            &one(applied),
        );
        let counts = [
            ("writes", "The kubelet's file was replaced.", self.counts.writes),
            ("restarts", "The kubelet was restarted.", self.counts.restarts),
            ("failed_restarts", "A restart failed, or the kubelet did not stay up.", self.counts.failed_restarts),
            ("unreachable", "systemd could not be asked.", self.counts.unreachable),
            ("roll_backs", "A change was taken back.", self.counts.roll_backs),
            ("disk_faults", "The disk refused.", self.counts.disk_faults),
        ];
        for (name, help, value) in counts {
            metric(&format!("{name}_total"), "counter", help, &one(i64::try_from(value).unwrap_or(i64::MAX)));
        }
        text
    }
}

// === impl Board ===

impl Board {
    /// A board with this status.
    pub fn new(status: Status) -> Self {
        Self(Arc::new(Mutex::new(status)))
    }

    /// What is on it.
    pub fn read(&self) -> Status {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what is on it.
    pub fn change(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
