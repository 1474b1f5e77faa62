//! Failures of the operations.

use crate::decide::change::ChangeError;
use crate::decide::deletion::DeletionError;
use crate::decide::destination::NotChosen;
use crate::decide::misplaced::Misplaced;
use crate::decide::report::ReportError;
use crate::decide::rules::RuleError;
use crate::excerpt::excerpt;
use crate::mapping::MappingError;
use crate::resource::Resource;
use crate::sealed::{Refused, Unopened};
use crate::spec_schema::SpecError;
use crate::store::StoreError;

/// An operation that was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No such resource exists.
    #[error("{kind} with id='{}' not found", excerpt(.id))]
    NotFound {
        /// The kind that the address names.
        kind: String,
        /// The id that the address names.
        id: String,
    },
    /// The resource to delete does not exist.
    #[error("{kind} not found")]
    Absent {
        /// The kind that the address names.
        kind: String,
    },
    /// A creation or a change is not allowed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// A name, labels or references break a rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A report breaks a rule.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A deletion is not allowed.
    #[error(transparent)]
    Deletion(#[from] DeletionError),
    /// The spec does not match its schema.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The spec has credentials where they would be stored in clear.
    #[error(transparent)]
    Misplaced(#[from] Misplaced),
    /// The inline pull secret cannot be stored or returned.
    #[error(transparent)]
    PullSecret(#[from] PullSecretError),
    /// Another resource has the id.
    #[error("the id '{id}' is already in use")]
    IdTaken {
        /// The id.
        id: String,
    },
    /// Another resource has the name.
    #[error("This {kind} already exists")]
    NameTaken {
        /// The kind.
        kind: String,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A condition mapping of the configuration cannot be evaluated on the reports.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// The resources changed whenever their mapped conditions had been evaluated, so the result was never current.
    #[error("the resource changed while its conditions were computed")]
    Unevaluated(Vec<Resource>),
    /// A defect: a deletion without a resource.
    #[error("an empty tree was deleted")]
    EmptyTree,
    /// A defect: a write ended without a result.
    #[error("a write ended without a result")]
    Abandoned,
}

/// An inline pull secret that cannot be stored or returned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PullSecretError {
    /// The server has no key to encrypt with.
    #[error(
        "inline pull secrets are not accepted, as this server has no key to encrypt them with (pull_secret.keys); use \
         spec.pullSecret.secretRef"
    )]
    NoKey,
    /// The document is not a pull secret.
    #[error(transparent)]
    Invalid(#[from] Refused),
    /// The request has the redacted placeholder, but no pull secret is stored.
    #[error("is the redacted placeholder of a stored pull secret, but none is stored: give the pull secret itself")]
    NothingToKeep,
    /// The caller may not choose where the content goes.
    #[error(transparent)]
    NotChosen(#[from] NotChosen),
    /// Encryption failed.
    #[error("the pull secret could not be encrypted")]
    NotEncrypted,
    /// The stored pull secret cannot be decrypted.
    #[error("the pull secret cannot be opened: {0}")]
    NotOpened(#[from] Unopened),
    /// A pull secret is stored, but the server has no keys any more.
    #[error("the pull secret cannot be opened: no key is configured (pull_secret.keys)")]
    KeyMissing,
}
