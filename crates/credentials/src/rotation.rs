//! A rotation: new credentials for many clusters, in groups, a few at a time.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use registry_account::name::CredentialId;
use serde::{Deserialize, Serialize};

use crate::credential::RegistryName;

/// The longest name of a rotation, in bytes.
const LONGEST_NAME: usize = 63;

/// The name of a rotation: a DNS label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RotationName(String);

/// A text that is no name of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 63 characters of a-z, 0-9 and '-', beginning and ending with a letter or digit")]
pub struct InvalidRotationName;

/// The rules of a rotation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RotationPlan {
    /// The searches of the first groups, in order, and the name of the last group: the rest. No cluster of a first group may fail,
    /// and each group is done before the next one begins.
    pub groups: Vec<String>,
    /// Maximum number of clusters that are rotated at the same time.
    pub max_concurrency: u32,
    /// Number of clusters of the last group that may fail; one more stops the rotation.
    pub max_failures: u64,
    /// Time for which a cluster must use its new credential before the next one takes its place.
    pub min_success_time: SignedDuration,
    /// Time in which a cluster must use its new credential, or else it has failed.
    pub progress_deadline: SignedDuration,
    /// The hours in which rotations of clusters begin; always without it.
    #[serde(default)]
    pub window: Option<Window>,
    /// No more clusters begin than these calls of the registry a minute pay for, on average; as the rate allows without it.
    #[serde(default)]
    pub max_calls_per_minute: Option<NonZeroU32>,
    /// True if it publishes credentials that wait beside those of AMS, in place of new ones.
    #[serde(default)]
    pub from_ams: bool,
}

/// Hours of each day in UTC, written as `22:00-06:00`; they may go past midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Window {
    from: Time,
    to: Time,
}

/// A text that is no window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be two times of a day in UTC, such as 22:00-06:00")]
pub struct InvalidWindow;

fleet_model::reasons! {
    /// The phase of a rotation.
    pub enum RotationPhase {
        /// The service works on it.
        Running,
        /// It begins no further cluster until it is resumed.
        Paused,
        /// It has stopped by itself, and begins no further cluster until it is resumed.
        Stopped,
        /// It is given up.
        Aborted,
        /// Every cluster is done.
        Done,
    }
}

fleet_model::reasons! {
    /// The reason for which a rotation is where it is.
    pub enum RotationReason {
        /// Clusters are being rotated, as many as may be at the same time.
        Rotating,
        /// The clusters of the group must use their new credentials for some time before the next group begins.
        Soaking,
        /// It is not the time of the day in which rotations of clusters begin.
        OutsideWindow,
        /// The calls of the registry that it may make are used up for now.
        AwaitingBudget,
        /// A cluster of a first group has failed: see it with `rotation status`, then resume or abort.
        FirstGroupFailed,
        /// More clusters have failed than are tolerated: see them with `rotation status`, then resume or abort.
        TooManyFailures,
        /// A person has asked for it.
        Requested,
        /// Every cluster is done.
        Finished,
    }
}

fleet_model::reasons! {
    /// The progress of a cluster in a rotation.
    pub enum ClusterProgress {
        /// It has not begun yet.
        Waiting,
        /// Its new credential is reserved, and not adopted yet.
        InProgress,
        /// It has used its new credential for the demanded time.
        Succeeded,
        /// It did not use its new credential in time. Its old one stays.
        Failed,
        /// It is left as it is.
        Skipped,
    }
}

/// The credential of a cluster that is to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The credential.
    pub credential: CredentialId,
    /// The cluster's id.
    pub cluster: String,
}

/// A cluster of a rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The credential that is replaced.
    pub credential: CredentialId,
    /// The cluster's id.
    pub cluster: String,
    /// Index of its group.
    pub group: usize,
    /// Its progress.
    pub progress: ClusterProgress,
    /// The reason of a failure, or of being left alone.
    pub cause: Option<String>,
    /// Time at which its new credential was reserved.
    pub started: Option<Timestamp>,
    /// Time at which it has ended.
    pub ended: Option<Timestamp>,
}

/// The numbers of the clusters of one group by their progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupCounts {
    /// Those that have not begun.
    pub waiting: u64,
    /// Those in progress.
    pub in_progress: u64,
    /// Those that are done.
    pub succeeded: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that are left as they are.
    pub skipped: u64,
}

/// A rotation as the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Its name.
    pub name: RotationName,
    /// The registry.
    pub registry: RegistryName,
    /// Its rules.
    pub plan: RotationPlan,
    /// Its phase.
    pub phase: RotationPhase,
    /// The reason for the phase.
    pub reason: RotationReason,
    /// Index of the current group.
    pub group: usize,
    /// Number of failed clusters that a person has accepted by resuming.
    pub tolerated: u64,
    /// The time at which the calls of the clusters that were begun are paid off by its budget.
    pub paid_off: Timestamp,
    /// The time of its start.
    pub started: Timestamp,
    /// The time of its last change.
    pub updated: Timestamp,
    /// Everything that people have asked of it, oldest first.
    pub history: Vec<Request>,
}

/// A request of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The request, a word.
    pub request: String,
    /// The person.
    pub actor: String,
    /// The reason in their words.
    pub reason: String,
    /// The time.
    pub at: Timestamp,
}

// === impl GroupCounts ===

impl GroupCounts {
    /// Adds clusters with this progress.
    pub fn add(&mut self, progress: ClusterProgress, number: u64) {
        let count = match progress {
            ClusterProgress::Waiting => &mut self.waiting,
            ClusterProgress::InProgress => &mut self.in_progress,
            ClusterProgress::Succeeded => &mut self.succeeded,
            ClusterProgress::Failed => &mut self.failed,
            ClusterProgress::Skipped => &mut self.skipped,
        };
        *count = count.saturating_add(number);
    }

    /// Returns the number of those with this progress.
    pub fn of(&self, progress: ClusterProgress) -> u64 {
        match progress {
            ClusterProgress::Waiting => self.waiting,
            ClusterProgress::InProgress => self.in_progress,
            ClusterProgress::Succeeded => self.succeeded,
            ClusterProgress::Failed => self.failed,
            ClusterProgress::Skipped => self.skipped,
        }
    }

    /// Returns the number of all.
    pub fn all(&self) -> u64 {
        ClusterProgress::ALL.map(|progress| self.of(progress)).iter().sum()
    }
}

// === impl RotationPhase ===

impl RotationPhase {
    /// Returns true if it is over for good.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Aborted | Self::Done)
    }
}

// === impl Window ===

impl Window {
    /// Returns true if a time is in it.
    pub fn contains(&self, at: Timestamp) -> bool {
        let time = at.to_zoned(TimeZone::UTC).time();
        if self.from <= self.to { self.from <= time && time < self.to } else { self.from <= time || time < self.to }
    }
}

impl FromStr for Window {
    type Err = InvalidWindow;

    fn from_str(text: &str) -> Result<Self, InvalidWindow> {
        let (from, to) = text.trim().split_once('-').ok_or(InvalidWindow)?;
        let time = |text: &str| Time::strptime("%H:%M", text).map_err(|_invalid| InvalidWindow);
        let window = Self { from: time(from)?, to: time(to)? };
        if window.from == window.to { Err(InvalidWindow) } else { Ok(window) }
    }
}

impl TryFrom<String> for Window {
    type Error = InvalidWindow;

    fn try_from(text: String) -> Result<Self, InvalidWindow> {
        text.parse()
    }
}

impl From<Window> for String {
    fn from(window: Window) -> Self {
        window.to_string()
    }
}

impl fmt::Display for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.from.strftime("%H:%M"), self.to.strftime("%H:%M"))
    }
}

// === impl RotationName ===

impl FromStr for RotationName {
    type Err = InvalidRotationName;

    fn from_str(text: &str) -> Result<Self, InvalidRotationName> {
        let fits = text.len() <= LONGEST_NAME && fleet_model::id::is_dns_label(text);
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidRotationName) }
    }
}

impl fmt::Display for RotationName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
