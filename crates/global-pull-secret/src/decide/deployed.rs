//! The deployed merged Secret, from which a decision continues.

use std::collections::BTreeSet;

use docker_config::{Digest, Document, Limits};
use secrecy::ExposeSecret as _;

use crate::facts::{Facts, ObservedSecret, is_managed};
use crate::finding::ReportedFinding;
use crate::keys::Keys;
use crate::record::Record;
use crate::status;

/// Maximum number of problems reported of one Secret.
pub(super) const MAX_PROBLEMS: usize = 3;

/// The deployed merged Secret.
pub(super) struct Deployed {
    pub(super) record: Record,
    /// `None` if it is no longer a valid document.
    pub(super) document: Option<Document>,
}

impl Deployed {
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        let global = facts.global.as_deref().filter(|global| is_managed(&global.metadata))?;
        Some(Self { record: Record::of(global), document: document_of(global).ok() })
    }

    /// Its keys; `None` if it is no longer a valid document.
    pub(super) fn keys(&self) -> Option<Keys> {
        Some(Keys::of(self.document.as_ref()?, &self.record.sources.clone().unwrap_or_default()))
    }

    /// The entries that a Secret has contributed. Without a record: all that are not the original's.
    pub(super) fn entries_of(&self, name: &str, original: Option<&Document>) -> Option<Document> {
        let deployed = self.document.as_ref()?;
        let mut document = deployed.clone();
        let others: Vec<String> = document.other_members().map(str::to_owned).collect();
        for other in others {
            document.remove_other_member(&other);
        }
        let of_original = original.map(|original| digests(&[original, &original.normalized()]));
        let is_its = |key: &str| match &self.record.sources {
            Some(sources) => sources.get(key).map(String::as_str) == Some(name),
            None => !of_original.iter().flatten().any(|digest| Some(*digest) == deployed.entry_digest(key)),
        };
        let others: Vec<String> = document.keys().filter(|key| !is_its(key)).map(str::to_owned).collect();
        for key in others {
            document.remove(&key);
        }
        Some(document.normalized()).filter(|document| !document.is_empty())
    }

    /// The last reported findings on credentials, if they are about the deployed revision.
    pub(super) fn findings(facts: &Facts, deployed: Option<&Self>) -> Vec<ReportedFinding> {
        let status = facts.status.as_deref().filter(|status| is_managed(&status.metadata));
        let revision = deployed.map(|deployed| deployed.record.revision.as_str());
        let current = status.filter(|status| status::revision_of(status) == revision);
        current.map(status::findings_of).unwrap_or_default()
    }
}

fn digests(documents: &[&Document]) -> BTreeSet<Digest> {
    documents.iter().flat_map(|document| document.keys().filter_map(|key| document.entry_digest(key))).collect()
}

/// The document of a Secret, or its problems.
pub(super) fn document_of(secret: &ObservedSecret) -> Result<Document, String> {
    let content = secret.content.as_ref().ok_or("has no .dockerconfigjson")?;
    Document::parse(content.expose_secret(), &Limits::SECRET).map_err(|problems| problems.summary(MAX_PROBLEMS))
}
