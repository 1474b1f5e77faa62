//! The plan of a decision: actions, reason, cause.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fleet_model::job::Reason;
use fleet_model::{Generation, Incarnation, Owner, names};
use secret_store::{Metadata, Permission, VersionNumber};

use crate::record::Record;

/// Actions in order. Each leaves the secret in a state from which a new run continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The actions; none if nothing is to be done.
    pub actions: Vec<Action>,
    /// Reason of the run once every action is done.
    pub reason: Reason,
    /// Version that then holds the desired content.
    pub version: Option<VersionNumber>,
    /// Cause of the plan.
    pub cause: Cause,
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the secret.
    Create {
        /// All its labels.
        labels: BTreeMap<String, String>,
        /// All its annotations.
        annotations: BTreeMap<String, String>,
    },
    /// Replace all labels and annotations.
    Update {
        /// All its labels.
        labels: BTreeMap<String, String>,
        /// All its annotations.
        annotations: BTreeMap<String, String>,
    },
    /// Add a version and read it back.
    Add {
        /// Content of the version.
        content: Content,
        /// Number that it must get; another one shows that another run writes too.
        number: VersionNumber,
        /// The record that is written with it; empty where the annotations have it.
        record: BTreeMap<String, String>,
    },
    /// Destroy a version.
    Destroy(VersionNumber),
    /// Delete the secret as of this etag.
    Delete {
        /// See [`Metadata::etag`].
        etag: String,
    },
}

/// Content of a new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The pull secret of this run.
    Desired,
    /// The content of that version.
    CopyOf(VersionNumber),
}

/// Cause of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The secret does not exist.
    Missing,
    /// The secret has no version.
    NoVersion,
    /// The newest version holds other content.
    OtherContent(VersionNumber),
    /// The newest version is disabled.
    Disabled(VersionNumber),
    /// The newest version is destroyed.
    Destroyed(VersionNumber),
    /// A version is always added (`ALWAYS_ADD_VERSION`).
    AlwaysAdd,
    /// The newest version holds the desired content.
    Holds(VersionNumber),
    /// The newest version holds the desired content, with the record of another generation or incarnation, or none.
    RecordedForAnother(VersionNumber),
    /// A newer generation has claimed the secret.
    NewerGeneration(Generation),
    /// The secret is not managed for this cluster.
    Unmanaged(Owner),
    /// The secret belongs to another incarnation of the cluster.
    OtherIncarnation(Incarnation),
    /// Another run has added this version with other content after this run had added its own.
    Overtaken(VersionNumber),
    /// The secret is to be deleted.
    DeletionRequested,
}

// === impl Plan ===

impl Plan {
    pub(super) fn new(reason: Reason, cause: Cause) -> Self {
        Self { actions: Vec::new(), reason, version: None, cause }
    }

    pub(super) fn holding(self, version: VersionNumber) -> Self {
        Self { version: Some(version), ..self }
    }

    pub(super) fn then(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// With actions that destroy these versions, one after the other.
    pub(super) fn destroying(self, surplus: BTreeSet<VersionNumber>) -> Self {
        surplus.into_iter().fold(self, |plan, number| plan.then(Action::Destroy(number)))
    }

    /// With an update of record and labels, unless the secret has them by then.
    pub(super) fn recording(
        self,
        secret: &Metadata,
        record: &Record,
        desired_labels: Option<&BTreeMap<String, String>>,
    ) -> Self {
        let planned = self.actions.iter().rev().find_map(|action| match action {
            Action::Update { labels, annotations } => Some((labels, annotations)),
            _ => None,
        });
        let (labels_then, annotations_then) = planned.unwrap_or((&secret.labels, &secret.annotations));
        let mut annotations = annotations_then.clone();
        record.write(&mut annotations);
        let mut labels = labels_then.clone();
        labels.extend(desired_labels.cloned().unwrap_or_default());
        let is_there = labels == *labels_then && annotations == *annotations_then;
        if is_there { self } else { self.then(Action::Update { labels, annotations }) }
    }

    /// Permissions that carrying the plan out needs.
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
            Self::Add { .. } => &[Permission::AddVersion, Permission::ReadVersion],
            Self::Destroy(_) => &[Permission::DestroyVersion],
            Self::Delete { .. } => &[Permission::Delete],
        }
    }
}

impl fmt::Display for Action {
    /// The action as a dry run logs it.
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
            Self::Add { content, number, record } => {
                write!(formatter, "add version {number}")?;
                if let Content::CopyOf(source) = content {
                    write!(formatter, " as a copy of version {source}")?;
                }
                let with_record = if record.is_empty() { "" } else { " with its record" };
                write!(formatter, "{with_record} and read it back")
            }
            Self::Destroy(number) => write!(formatter, "destroy version {number}"),
            Self::Delete { .. } => formatter.write_str("delete the secret with all its versions"),
        }
    }
}

// === impl Cause ===

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => formatter.write_str("the secret does not exist"),
            Self::NoVersion => formatter.write_str("the secret has no version"),
            Self::OtherContent(number) => write!(formatter, "version {number}, the newest, holds other content"),
            Self::Disabled(number) => write!(formatter, "version {number}, the newest, is disabled"),
            Self::Destroyed(number) => write!(formatter, "version {number}, the newest, is destroyed"),
            Self::AlwaysAdd => formatter.write_str("a version is always added (ALWAYS_ADD_VERSION)"),
            Self::Holds(number) => write!(formatter, "version {number}, the newest, holds this pull secret"),
            Self::RecordedForAnother(number) => {
                write!(formatter, "version {number}, the newest, holds this pull secret, but not for this generation")
            }
            Self::NewerGeneration(newer) => write!(formatter, "generation {newer}, a newer one, holds the secret"),
            Self::Unmanaged(owner) => write!(formatter, "the secret is not managed for this cluster: it has {owner}"),
            Self::OtherIncarnation(other) => {
                write!(formatter, "the secret belongs to an earlier cluster with this id, which was created at {other}")
            }
            Self::Overtaken(number) => {
                write!(formatter, "another run has added version {number} with other content since")
            }
            Self::DeletionRequested => formatter.write_str("the secret is to be deleted"),
        }
    }
}
