//! Findings of registry probes: the rules, the requests, the results, and their report.

use std::fmt;

use docker_config::Digest;
use jiff::Timestamp;
use secrecy::SecretSlice;
use serde::{Deserialize, Serialize};

pub use registry_account::probe::is_denied;

/// The mode of probing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// No registry is probed.
    #[default]
    Off,
    /// Findings are reported.
    Warn,
    /// Findings are reported, and refused entries are not rolled out.
    Block,
}

/// The rules of probing.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The mode.
    pub mode: Mode,
    /// Hosts, with all subdomains, that are never probed.
    pub deny: Vec<String>,
}

/// The verdict on a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The registry accepts it.
    Accepted,
    /// The registry refuses it.
    Refused,
    /// The registry gives no conclusive answer.
    Unreachable,
    /// The registry is not probed.
    NotProbed,
}

/// The result of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// A message for people; it quotes nothing of the registry's answer.
    pub message: String,
}

/// The last result of probing an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// The finding.
    pub finding: Finding,
    /// Time since which the verdict is this one.
    pub since: Timestamp,
    /// Time of the last probe.
    pub at: Timestamp,
    /// Number of probes in a row with this verdict.
    pub times: usize,
}

/// A probe to start. Holds a credential: its `Debug` shows nothing.
pub struct ProbeRequest {
    /// The digest of the entry's meaning.
    pub digest: Digest,
    /// Host and port.
    pub host: String,
    /// `USER:PASSWORD`.
    pub credential: SecretSlice<u8>,
}

/// A finding about one entry as it is reported in the status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedFinding {
    /// The entry's key, fit to be shown.
    pub registry: String,
    /// The Secret that the entry is from.
    pub from: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The message.
    pub message: String,
    /// Time since which this holds.
    pub since: Timestamp,
    /// True if the entry is held back because of it.
    pub held_back: bool,
}

// === impl Finding ===

impl Finding {
    /// A finding with its message.
    pub fn new(verdict: Verdict, message: impl Into<String>) -> Self {
        Self { verdict, message: message.into() }
    }
}

// === impl ProbeResult ===

impl ProbeResult {
    /// The result of a probe that has just ended, after the previous one.
    pub fn of(finding: Finding, before: Option<&Self>, now: Timestamp) -> Self {
        match before.filter(|before| before.finding.verdict == finding.verdict) {
            Some(before) => Self { finding, since: before.since, at: now, times: before.times.saturating_add(1) },
            None => Self { finding, since: now, at: now, times: 1 },
        }
    }
}

// === impl Verdict ===

impl Verdict {
    /// The verdict in one word, as metric label and log field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::NotProbed => "not-probed",
        }
    }
}

// === impl ProbeRequest ===

impl fmt::Debug for ProbeRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ProbeRequest(redacted)")
    }
}
