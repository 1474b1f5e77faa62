//! The keys that nodes have, or would get, for the command `plan`.

use jiff::Timestamp;

use super::content::{Content, Desired, sources_of_original};
use super::deployed::{Deployed, document_of};
use crate::facts::{Facts, ObservedSecret};
use crate::keys::Keys;
use crate::policy::Policy;
use crate::reason::Reason;
use crate::record::Record;

/// The keys that the controller would bring to the nodes, as if nothing were deployed.
#[derive(Debug, Default)]
pub struct Planned {
    /// The keys; `None` if there is nothing that it could bring.
    pub keys: Option<Keys>,
    /// The Secrets that it would refuse, each with its problems.
    pub problems: Vec<String>,
    /// Further remarks on them.
    pub notes: Vec<String>,
}

/// The keys of a merged Secret; `None` if it is no document.
pub fn deployed_keys(global: &ObservedSecret) -> Option<Keys> {
    Deployed { record: Record::of(global), document: document_of(global).ok() }.keys()
}

/// The keys that the controller would make of these facts.
pub fn planned_keys(facts: &Facts, policy: &Policy, now: Timestamp) -> Planned {
    let Content { validated, desired, problem, notes, .. } = Content::of(facts, policy, None, now);
    let mut planned = Planned::default();
    for secret in &validated {
        let named = |message: &str| format!("{}: {message}", secret.name);
        match &secret.fault {
            Some((Reason::EntriesLeftOut, message)) => planned.notes.push(named(&format!("left out: {message}"))),
            Some((_, message)) => planned.problems.push(named(message)),
            None => {}
        }
        planned.notes.extend(secret.notes.iter().map(|note| named(note)));
    }
    if planned.problems.is_empty() {
        planned.problems.extend(problem.map(|(_, message)| message));
    }
    planned.notes.extend(notes);
    planned.keys = match desired {
        Desired::Merged { document, sources } => Some(Keys::of(&document, &sources)),
        Desired::Gone { original: Some(original) } => Some(Keys::of(&original, &sources_of_original(&original))),
        Desired::Nothing | Desired::AsItIs | Desired::Gone { original: None } => None,
    };
    planned
}
