//! A decision as a value: what to do, how it will have ended, and why.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fleet_model::job::Reason;
use fleet_model::{Generation, Owner, names};
use secret_store::{Metadata, Permission, VersionNumber};

use crate::record::Record;

/// What to do, in this order. Each action leaves the secret in a state from which a new run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The steps; none when nothing is to be done.
    pub actions: Vec<Action>,
    /// How the run will have ended when every action is done.
    pub reason: Reason,
    /// The version that will then hold the wanted content.
    pub version: Option<VersionNumber>,
    /// Why this and nothing else.
    pub because: Because,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the secret.
    Create {
        /// All its labels.
        labels: BTreeMap<String, String>,
        /// All its annotations.
        annotations: BTreeMap<String, String>,
    },
    /// Put these labels and annotations in place of those that are there.
    Update {
        /// All its labels.
        labels: BTreeMap<String, String>,
        /// All its annotations.
        annotations: BTreeMap<String, String>,
    },
    /// Add a version and read it back.
    Add {
        /// What it holds.
        content: Content,
        /// The number that it must get; another number means that somebody else writes too.
        number: VersionNumber,
    },
    /// Destroy a version.
    Destroy(VersionNumber),
    /// Delete the secret as of this etag.
    Delete {
        /// See [`Metadata::etag`].
        etag: String,
    },
}

/// What a version is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The pull secret of this run.
    Wanted,
    /// What that version holds.
    CopyOf(VersionNumber),
}

/// Why a plan is as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// The secret does not exist.
    Missing,
    /// The secret has no version.
    NoVersion,
    /// The newest version holds something else.
    OtherContent(VersionNumber),
    /// The newest version is disabled.
    Disabled(VersionNumber),
    /// The newest version is destroyed.
    Destroyed(VersionNumber),
    /// It was asked to add a version in any case.
    AlwaysAdd,
    /// The newest version holds the wanted content.
    Holds(VersionNumber),
    /// A newer generation has claimed the secret.
    NewerGeneration(Generation),
    /// The secret is not this cluster's.
    Foreign(Owner),
    /// Another run has added this version with other content after this run had added its own.
    Overtaken(VersionNumber),
    /// The secret is to go.
    Unwanted,
}

// === impl Plan ===

impl Plan {
    pub(super) fn new(reason: Reason, because: Because) -> Self {
        Self { actions: Vec::new(), reason, version: None, because }
    }

    pub(super) fn holding(self, version: VersionNumber) -> Self {
        Self { version: Some(version), ..self }
    }

    pub(super) fn then(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// Destroys these, one after the other.
    pub(super) fn destroying(self, surplus: BTreeSet<VersionNumber>) -> Self {
        surplus.into_iter().fold(self, |plan, number| plan.then(Action::Destroy(number)))
    }

    /// Updates record and labels, unless the secret will have them by then.
    pub(super) fn recording(
        self,
        secret: &Metadata,
        record: &Record,
        wanted_labels: Option<&BTreeMap<String, String>>,
    ) -> Self {
        let planned = self.actions.iter().rev().find_map(|action| match action {
            Action::Update { labels, annotations } => Some((labels, annotations)),
            _ => None,
        });
        let (labels_then, annotations_then) = planned.unwrap_or((&secret.labels, &secret.annotations));
        let mut annotations = annotations_then.clone();
        record.write(&mut annotations);
        let mut labels = labels_then.clone();
        labels.extend(wanted_labels.cloned().unwrap_or_default());
        let is_there = labels == *labels_then && annotations == *annotations_then;
        if is_there { self } else { self.then(Action::Update { labels, annotations }) }
    }

    /// The permissions that carrying the plan out needs.
    pub fn permissions(&self) -> BTreeSet<Permission> {
        self.actions.iter().flat_map(|action| action.permissions().iter().copied()).collect()
    }
}

// === impl Action ===

impl Action {
    fn permissions(&self) -> &'static [Permission] {
        match self {
            Self::Create { .. } => &[Permission::Create],
            Self::Update { .. } => &[Permission::Update],
            Self::Add { .. } => &[Permission::AddVersion, Permission::AccessVersion],
            Self::Destroy(_) => &[Permission::DestroyVersion],
            Self::Delete { .. } => &[Permission::Delete],
        }
    }
}

impl fmt::Display for Action {
    /// The step as a dry run shows it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { labels, .. } => write!(formatter, "create the secret with {} labels", labels.len()),
            Self::Update { annotations, .. } => {
                let number = |name: &str| annotations.get(name).map(String::as_str);
                match (number(names::ANNOTATION_ANNOUNCED), number(names::ANNOTATION_VERSION)) {
                    (Some(announced), _) => write!(formatter, "announce version {announced}"),
                    (None, current) => {
                        write!(formatter, "record version {} as the current one", current.unwrap_or("none"))
                    }
                }
            }
            Self::Add { content: Content::Wanted, number } => {
                write!(formatter, "add version {number} and read it back")
            }
            Self::Add { content: Content::CopyOf(source), number } => {
                write!(formatter, "add version {number} as a copy of version {source} and read it back")
            }
            Self::Destroy(number) => write!(formatter, "destroy version {number}"),
            Self::Delete { .. } => formatter.write_str("delete the secret with all its versions"),
        }
    }
}

// === impl Because ===

impl fmt::Display for Because {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => formatter.write_str("the secret does not exist"),
            Self::NoVersion => formatter.write_str("the secret has no version"),
            Self::OtherContent(number) => write!(formatter, "version {number}, the newest, holds other content"),
            Self::Disabled(number) => write!(formatter, "version {number}, the newest, is disabled"),
            Self::Destroyed(number) => write!(formatter, "version {number}, the newest, is destroyed"),
            Self::AlwaysAdd => formatter.write_str("a version is added in any case (ALWAYS_ADD_VERSION)"),
            Self::Holds(number) => write!(formatter, "version {number}, the newest, holds this pull secret"),
            Self::NewerGeneration(newer) => write!(formatter, "generation {newer}, a newer one, holds the secret"),
            Self::Foreign(owner) => write!(formatter, "the secret is not this cluster's: it has {owner}"),
            Self::Overtaken(number) => {
                write!(formatter, "another run has added version {number} with other content since")
            }
            Self::Unwanted => formatter.write_str("the secret is to be deleted"),
        }
    }
}
