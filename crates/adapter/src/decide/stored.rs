//! Compares a stored pull secret with what the adapter has reported about it.

use fleet_model::{ClusterId, Generation, Owner, StoredCopy, copy, names};
use hyperfleet_client::{ReportView, Resource, View};
use jiff::{SignedDuration, Timestamp};
use secret_store::{Location, Metadata, ProjectId, SecretId, VersionNumber, VersionState, VersionSummary};
use serde_json::{Map, Value};

/// A stored pull secret as the adapter's last report describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The cluster that it belongs to.
    pub cluster: ClusterId,
    /// The copy in the store.
    pub copy: StoredCopy,
    /// The secret's name.
    pub secret: SecretId,
    /// The version that holds the pull secret.
    pub version: VersionNumber,
    /// True for the copy in the mirror.
    pub is_mirror: bool,
    generation: Generation,
    incarnation: Option<String>,
    digest: Option<String>,
}

/// A difference between the store and the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFinding {
    /// The kind of the difference.
    pub kind: FindingKind,
    /// The difference in a sentence.
    pub message: String,
}

/// The kind of a difference between the store and the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// The secret does not exist.
    SecretMissing,
    /// Labels or record of the secret were changed.
    SecretChanged,
    /// The secret is not managed for this cluster, or belongs to an earlier one with the id. A run does not change it either, but
    /// reports it with what to do next.
    Unmanaged,
    /// The secret has no version.
    VersionMissing,
    /// The newest version is disabled.
    VersionDisabled,
    /// The newest version is destroyed.
    VersionDestroyed,
    /// The newest version is not the reported one.
    VersionDiffers,
}

// === impl FindingKind ===

impl FindingKind {
    /// The kind as metrics and logs have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SecretMissing => "secret_missing",
            Self::SecretChanged => "secret_changed",
            Self::Unmanaged => "unmanaged",
            Self::VersionMissing => "version_missing",
            Self::VersionDisabled => "version_disabled",
            Self::VersionDestroyed => "version_destroyed",
            Self::VersionDiffers => "version_differs",
        }
    }
}

// === impl Reported ===

impl Reported {
    /// Returns the stored pull secrets that a resource's report describes, the first store's and the mirror's. Empty unless reported
    /// available for the current generation for at least `settle`: lists and metadata of a store may lag behind a run.
    pub fn of(resource: &Resource, adapter: &str, now: Timestamp, settle: SignedDuration) -> Vec<Self> {
        let view = View::of(resource);
        let data = view.report(adapter).and_then(|report| settled_data(resource, report, now, settle));
        let Some(data) = data else { return Vec::new() };
        let first = StoredCopy::written(data).and_then(|copy| Self::in_data(resource, copy, data));
        let mirror =
            copy::mirror(data).and_then(|mirror| Self::in_data(resource, StoredCopy::of_mirror(data)?, mirror));
        first.into_iter().chain(mirror.map(|mirror| Self { is_mirror: true, ..mirror })).collect()
    }

    /// Returns the stored pull secret that these members describe.
    fn in_data(resource: &Resource, copy: StoredCopy, data: &Map<String, Value>) -> Option<Self> {
        if let StoredCopy::Secret { project, location, .. } = &copy {
            project.parse::<ProjectId>().ok()?;
            location.as_deref().map(str::parse::<Location>).transpose().ok()?;
        }
        Some(Self {
            cluster: resource.id.parse().ok()?,
            secret: copy.name().parse().ok()?,
            copy,
            version: data.get(copy::VERSION)?.as_u64().and_then(VersionNumber::new)?,
            is_mirror: false,
            generation: resource.generation,
            incarnation: resource.created_time.map(|time| time.to_string()),
            digest: data.get("digest").and_then(Value::as_str).map(str::to_owned),
        })
    }

    /// Returns a unique key.
    pub fn key(&self) -> String {
        format!("{}{}", self.cluster, if self.is_mirror { "/mirror" } else { "" })
    }

    /// Compares the metadata of the secret with the report.
    pub fn compare(&self, found: Option<&Metadata>) -> Option<StoreFinding> {
        let named = &self.copy;
        let finding = |kind, message: String| Some(StoreFinding { kind, message });
        let Some(found) = found else {
            return finding(FindingKind::SecretMissing, format!("{named} does not exist any more"));
        };
        let owner = Owner::of(&found.labels);
        if !owner.is(&self.cluster) {
            return finding(FindingKind::Unmanaged, format!("{named} is unmanaged: it has {owner}; it is not changed"));
        }
        let annotation = |name: &str| found.annotations.get(name);
        let recorded = annotation(names::ANNOTATION_INCARNATION);
        if recorded.zip(self.incarnation.as_ref()).is_some_and(|(recorded, own)| recorded != own) {
            let message = format!("{named} belongs to an earlier cluster with this id; it is not changed");
            return finding(FindingKind::Unmanaged, message);
        }
        let generation = annotation(names::ANNOTATION_GENERATION).and_then(|text| text.parse::<Generation>().ok());
        if generation.is_some_and(|generation| generation > self.generation) {
            return None;
        }
        let has_label = found.labels.get(names::LABEL_ADAPTER).is_some_and(|adapter| adapter == names::ADAPTER);
        let version = annotation(names::ANNOTATION_VERSION).and_then(|text| text.parse::<VersionNumber>().ok());
        let digest = annotation(names::ANNOTATION_DIGEST).zip(self.digest.as_ref());
        let changed = [
            (!has_label, names::LABEL_ADAPTER),
            (generation != Some(self.generation), names::ANNOTATION_GENERATION),
            (recorded.is_none() && self.incarnation.is_some(), names::ANNOTATION_INCARNATION),
            (version != Some(self.version), names::ANNOTATION_VERSION),
            (digest.is_some_and(|(recorded, reported)| recorded != reported), names::ANNOTATION_DIGEST),
        ];
        let changed: Vec<_> = changed.into_iter().filter_map(|(is_changed, name)| is_changed.then_some(name)).collect();
        if changed.is_empty() {
            return None;
        }
        finding(FindingKind::SecretChanged, format!("{named} was changed by another program: {}", changed.join(", ")))
    }

    /// Compares the newest version of the secret with the report.
    pub fn compare_version(&self, newest: Option<&VersionSummary>) -> Option<StoreFinding> {
        let named = &self.copy;
        let Some(VersionSummary { number, state }) = newest else {
            let message = format!("{named} has no version any more");
            return Some(StoreFinding { kind: FindingKind::VersionMissing, message });
        };
        let (kind, state) = match state {
            VersionState::Disabled => (FindingKind::VersionDisabled, "disabled"),
            VersionState::Destroyed => (FindingKind::VersionDestroyed, "destroyed"),
            VersionState::Live if *number == self.version => return None,
            VersionState::Live => {
                let message = format!("{named} has version {number} as its newest, reported was {}", self.version);
                return Some(StoreFinding { kind: FindingKind::VersionDiffers, message });
            }
        };
        Some(StoreFinding { kind, message: format!("version {number} of {named}, the newest, is {state}") })
    }
}

/// Returns the data of a report that says that the pull secret is available for the current generation, and has been for `settle`.
fn settled_data<'a>(
    resource: &Resource,
    report: ReportView<'a>,
    now: Timestamp,
    settle: SignedDuration,
) -> Option<&'a Map<String, Value>> {
    let is_current = report.is_available() && report.generation()? >= resource.generation;
    let available = report.condition(names::condition::AVAILABLE)?;
    let since: Timestamp = available.get("last_transition_time")?.as_str()?.parse().ok()?;
    let is_settled = is_current && !resource.is_deleting() && now.duration_since(since) >= settle;
    report.data().filter(|_| is_settled)
}

#[cfg(test)]
mod tests;
