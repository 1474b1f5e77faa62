//! An additional Secret after validation.

use docker_config::merge::{Admitted, admit};
use docker_config::{Document, Limits};
use fleet_model::names;
use secrecy::ExposeSecret as _;

use super::deployed::{Deployed, MAX_PROBLEMS};
use crate::facts::ObservedSecret;
use crate::policy::Policy;
use crate::reason::Reason;

/// An additional Secret after validation.
pub(super) struct ValidatedSecret {
    pub(super) name: String,
    pub(super) uid: Option<String>,
    pub(super) priority: i64,
    /// The entries of it that are used.
    pub(super) used: Option<Document>,
    /// Its fault, if it was rejected or has rejected entries.
    pub(super) fault: Option<(Reason, String)>,
    pub(super) notes: Vec<String>,
}

impl ValidatedSecret {
    pub(super) fn of(
        secret: &ObservedSecret,
        policy: &Policy,
        deployed: Option<&Deployed>,
        original: Option<&Document>,
    ) -> Self {
        let mut notes = Vec::new();
        let annotation = secret.annotation(names::ANNOTATION_PRIORITY);
        let priority = annotation.map_or(Ok(0), str::parse).unwrap_or_else(|_no_number| {
            notes.push(format!("annotation {} must be a whole number; 0 is taken", names::ANNOTATION_PRIORITY));
            0
        });
        let validated = Self {
            name: secret.name().to_owned(),
            uid: secret.metadata.uid.clone(),
            priority,
            used: None,
            fault: None,
            notes,
        };
        let refused = |validated: Self, message: String| Self {
            used: deployed.and_then(|deployed| deployed.entries_of(&validated.name, original)),
            fault: Some((Reason::InvalidSecret, message)),
            ..validated
        };
        let Some(content) = &secret.content else {
            return refused(validated, "has no key .dockerconfigjson".to_owned());
        };
        match admit(content.expose_secret(), &Limits::SECRET, policy.invalid) {
            Err(problems) => refused(validated, problems.summary(MAX_PROBLEMS)),
            Ok(admitted) => validated.admitted(admitted),
        }
    }

    fn admitted(mut self, admitted: Admitted) -> Self {
        let Admitted { document, left_out, warnings } = admitted;
        let summary = |problems: &[docker_config::Problem]| {
            let more = problems.len().saturating_sub(MAX_PROBLEMS);
            let mut parts: Vec<String> = problems.iter().take(MAX_PROBLEMS).map(ToString::to_string).collect();
            parts.extend((more > 0).then(|| format!("and {more} more")));
            parts.join("; ")
        };
        if !left_out.is_empty() {
            self.fault = Some((Reason::EntriesLeftOut, summary(&left_out)));
        }
        if !warnings.is_empty() {
            self.notes.push(summary(&warnings));
        }
        // By the keys that a merge writes, so that entries, decisions and records have the same.
        self.used = Some(document.normalized());
        self
    }

    /// Returns true if it was rejected as a whole and earlier entries stand in for it.
    pub(super) fn has_stand_in(&self) -> bool {
        self.used.is_some() && self.fault.as_ref().is_some_and(|(reason, _)| *reason != Reason::EntriesLeftOut)
    }
}
