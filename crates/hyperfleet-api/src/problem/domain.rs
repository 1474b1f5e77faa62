//! Maps domain errors to problems: the only place that knows both.

use super::{Code, FieldError, Problem};
use crate::authorization::Denied;
use crate::decide::body::BodyError;
use crate::decide::change::ChangeError;
use crate::decide::deletion::DeletionError;
use crate::decide::misplaced::Misplaced;
use crate::decide::report::ReportError;
use crate::decide::rules::{LabelError, NameError, RuleError};
use crate::service::{Failure, PullSecretError};
use crate::spec_schema::SpecError;
use crate::store::StoreError;

/// The member that errors of an inline pull secret name.
const PULL_SECRET: &str = "spec.pullSecret.data";

impl From<&Failure> for Problem {
    fn from(failure: &Failure) -> Self {
        match failure {
            Failure::NotFound { kind, id } => Self::not_found(kind, id),
            Failure::Report(error) => error.into(),
            Failure::Change(error) => error.into(),
            Failure::Rule(error) => error.into(),
            Failure::Deletion(error) => error.into(),
            Failure::Spec(error) => error.into(),
            Failure::Misplaced(error) => error.into(),
            Failure::PullSecret(error) => error.into(),
            Failure::Absent { .. } => Self::new(Code::NotFound, failure.to_string()),
            Failure::IdTaken { .. } | Failure::NameTaken { .. } => Self::new(Code::Conflict, failure.to_string()),
            Failure::Store(StoreError::Unavailable(_)) => {
                Self::new(Code::Unavailable, "Database connection unavailable")
            }
            Failure::Store(StoreError::Contended(_)) | Failure::Unevaluated(_) => {
                Self::new(Code::Unavailable, "too many writers at once: try again")
            }
            Failure::Store(_) => Self::new(Code::Internal, "an internal error; the server's log says more"),
            Failure::Mapping(_) | Failure::EmptyTree | Failure::Abandoned => {
                Self::new(Code::Internal, failure.to_string())
            }
        }
    }
}

impl From<&BodyError> for Problem {
    fn from(error: &BodyError) -> Self {
        match error {
            BodyError::Inexact(members) => {
                let error_of = |member: &crate::decide::body::InexactMember| {
                    FieldError::new(member.path.clone(), "format", member.cause.to_string())
                };
                Self::validation(error.to_string()).at(members.iter().map(error_of).collect())
            }
            BodyError::EmptyPatch => Self::new(Code::BadRequest, error.to_string()),
            // The empty path is the body itself.
            BodyError::WrongType { path: "", .. } => Self::validation(error.to_string()),
            BodyError::WrongType { path, .. } => of_field(*path, "format", error),
            BodyError::ReasonMissing => of_field("reason", "required", error),
            BodyError::ReasonTooLong => of_field("reason", "max_length", error),
            _ => Self::malformed(error.to_string()),
        }
    }
}

impl From<&ReportError> for Problem {
    fn from(error: &ReportError) -> Self {
        let (field, constraint) = match error {
            ReportError::AdapterMissing => ("adapter".to_owned(), "required"),
            ReportError::AdapterTooLong => ("adapter".to_owned(), "max_length"),
            ReportError::TooManyAdapters => ("adapter".to_owned(), "max"),
            ReportError::TooMuch => ("data".to_owned(), "max"),
            ReportError::GenerationTooSmall => ("observed_generation".to_owned(), "min"),
            ReportError::TypeMissing { index } => (format!("conditions[{index}].type"), "required"),
            ReportError::DuplicateType { index, .. } => (format!("conditions[{index}].type"), "unique"),
            ReportError::InvalidStatus { index, .. } => (format!("conditions[{index}].status"), "enum"),
            ReportError::TooFarAhead => ("observed_time".to_owned(), "max"),
            ReportError::TooOld => ("observed_time".to_owned(), "min"),
            ReportError::ConditionMissing(_) => ("conditions".to_owned(), "required"),
        };
        of_field(field, constraint, error)
    }
}

impl From<&ChangeError> for Problem {
    fn from(error: &ChangeError) -> Self {
        match error {
            ChangeError::KindMissing => of_field("kind", "required", error),
            ChangeError::WrongKind(_) => of_field("kind", "enum", error),
            ChangeError::SpecMissing => of_field("spec", "required", error),
            ChangeError::Rule(error) => error.into(),
            ChangeError::Outdated { .. } => Self::new(Code::PreconditionFailed, error.to_string()),
            ChangeError::Terminating { .. } => Self::state(error.to_string()),
        }
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        Self::new(Code::PermissionDenied, denied.to_string())
    }
}

impl From<&RuleError> for Problem {
    fn from(error: &RuleError) -> Self {
        match error {
            RuleError::Id => of_field("id", "pattern", error),
            RuleError::Name(NameError::Missing) => of_field("name", "required", error),
            RuleError::Name(NameError::TooShort(_)) => of_field("name", "min_length", error),
            RuleError::Name(NameError::TooLong(_)) => of_field("name", "max_length", error),
            RuleError::Name(NameError::Pattern) => of_field("name", "pattern", error),
            RuleError::Labels(labels) => Self::validation(error.to_string()).at(labels.iter().map(of_label).collect()),
            RuleError::Reference(_) => {
                let message = error.to_string();
                let field = "references".to_owned();
                let error = FieldError { field, value: None, constraint: None, message: message.clone() };
                Self::validation(message).at(vec![error])
            }
        }
    }
}

impl From<&DeletionError> for Problem {
    fn from(error: &DeletionError) -> Self {
        Self::state(error.to_string())
    }
}

impl From<&SpecError> for Problem {
    fn from(error: &SpecError) -> Self {
        let SpecError { path, message, .. } = error;
        let field = FieldError { field: path.clone(), value: None, constraint: None, message: message.clone() };
        Self::validation(error.to_string()).at(vec![field])
    }
}

impl From<&Misplaced> for Problem {
    fn from(error: &Misplaced) -> Self {
        let field = match error {
            Misplaced::NotAnObject | Misplaced::UnknownMember => "spec.pullSecret",
            Misplaced::WrongType { path, .. } | Misplaced::Credentials { path } => path,
        };
        let message = error.to_string();
        Self::validation(format!("{field} {message}")).at(vec![FieldError::new(field, "format", message)])
    }
}

impl From<&PullSecretError> for Problem {
    fn from(error: &PullSecretError) -> Self {
        match error {
            PullSecretError::NotChosen(_) => Self::new(Code::PermissionDenied, error.to_string()),
            PullSecretError::NoKey => of_field(PULL_SECRET, "format", error),
            PullSecretError::Invalid(_) | PullSecretError::NothingToKeep => Self::validation(
                "the inline pull secret is not valid",
            )
            .at(vec![FieldError::new(PULL_SECRET, "format", error.to_string())]),
            PullSecretError::NotEncrypted | PullSecretError::NotOpened(_) | PullSecretError::KeyMissing => {
                Self::new(Code::Internal, error.to_string())
            }
        }
    }
}

fn of_field(field: impl Into<String>, constraint: &'static str, error: &impl ToString) -> Problem {
    let message = error.to_string();
    Problem::validation(message.clone()).at(vec![FieldError::new(field, constraint, message)])
}

fn of_label(error: &LabelError) -> FieldError {
    match error {
        LabelError::Key(key) => FieldError::new("labels", "pattern", error.to_string()).with_value(key.as_str()),
        LabelError::Value { key, value } => {
            FieldError::new(format!("labels[{key}]"), "pattern", error.to_string()).with_value(value.as_str())
        }
    }
}
