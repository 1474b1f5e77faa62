//! The record of the last check, in a `ConfigMap` that all replicas and `pull-secret explain` read.

use std::collections::BTreeMap;

use fleet_model::names;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::{Cluster, ErrorKind, KubernetesError, Verb};
use serde::{Deserialize, Serialize};

/// The last check of the secret stores: one for the fleet, so that a check costs one write whatever the number of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// Start of the last check that was completed.
    pub started: Option<Timestamp>,
    /// End of the last check that was completed, in all places or in some.
    pub finished: Option<Timestamp>,
    /// Number of clusters whose secrets were compared.
    pub clusters: u64,
    /// Number of pages that were read.
    pub pages: u64,
    /// The newest findings, the newest first.
    pub findings: Vec<RecordedFinding>,
    /// Places that could not be read, projects at Google, and why.
    pub failures: BTreeMap<String, String>,
    /// The rotation through all versions, whose states no list shows.
    pub rotation: Rotation,
}

/// A difference that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFinding {
    /// The cluster.
    pub cluster: String,
    /// The time.
    pub found: Timestamp,
    /// The difference in a sentence.
    pub message: String,
}

/// The position of the rotation through the newest versions of all secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rotation {
    /// The cluster whose version was read last.
    pub position: Option<String>,
    /// Start of the present round.
    pub started: Option<Timestamp>,
    /// End of the last round.
    pub finished: Option<Timestamp>,
}

/// The key of the record in the `ConfigMap`.
const KEY: &str = "record.json";
/// Maximum number of findings in the record.
const MAX_FINDINGS: usize = 50;
/// Maximum number of failures in the record.
const MAX_FAILURES: usize = 20;
/// Maximum length of a message in the record.
const MAX_MESSAGE: usize = 300;

// === impl Record ===

impl Record {
    /// Reads the record of an adapter; an unreadable one counts as none.
    pub async fn read(cluster: &Cluster, namespace: &str, adapter: &str) -> Result<Option<Self>, KubernetesError> {
        let found = cluster.find::<ConfigMap>(namespace, &names::store_check_name(adapter)).await?;
        let text = found.and_then(|found| found.data?.remove(KEY));
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Writes the record. A `ConfigMap` of the name that is not the adapter's is not changed.
    pub(crate) async fn write(&self, cluster: &Cluster, namespace: &str, adapter: &str) -> Result<(), KubernetesError> {
        let name = names::store_check_name(adapter);
        let found = cluster.find::<ConfigMap>(namespace, &name).await?;
        let is_own = |found: &ConfigMap| {
            let labels = found.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(names::LABEL_RUN_ADAPTER)).is_some_and(|owner| owner == adapter)
        };
        if found.as_ref().is_some_and(|found| !is_own(found)) {
            let error = KubernetesError::new(Verb::Apply, format!("configmap {namespace}/{name}"), ErrorKind::Invalid);
            return Err(error.with_detail("it is unmanaged; delete or rename it"));
        }
        let labels = [(names::LABEL_RUN_ADAPTER, adapter), (names::LABEL_MANAGED_BY, names::MANAGED_BY)];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
        let metadata = ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels),
            ..found.map(|found| found.metadata).unwrap_or_default()
        };
        let text = serde_json::to_string(self).unwrap_or_default();
        let data = Some(BTreeMap::from([(KEY.to_owned(), text)]));
        let object = ConfigMap { metadata, data, ..ConfigMap::default() };
        cluster.apply(&object, &["data"]).await.map(drop)
    }

    /// Adds a finding, and drops the oldest beyond the maximum and an earlier one of the same cluster.
    pub(crate) fn add(&mut self, cluster: &str, found: Timestamp, message: &str) {
        self.findings.retain(|finding| finding.cluster != cluster);
        let finding = RecordedFinding { cluster: cluster.to_owned(), found, message: cut(message) };
        self.findings.insert(0, finding);
        self.findings.truncate(MAX_FINDINGS);
    }

    /// Records that a place could not be read; the number of failures is bounded.
    pub(crate) fn fail(&mut self, place: &str, why: &str) {
        if self.failures.len() < MAX_FAILURES {
            self.failures.insert(place.to_owned(), cut(why));
        }
    }
}

fn cut(text: &str) -> String {
    text.get(..text.floor_char_boundary(MAX_MESSAGE)).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_bounded_and_has_one_finding_a_cluster() {
        let mut record = Record::default();
        for number in 0..200 {
            record.add(&format!("cls-{number}"), Timestamp::UNIX_EPOCH, &"é".repeat(1_000));
            record.fail(&format!("p-{number}"), &"é".repeat(1_000));
        }
        record.add("cls-199", Timestamp::UNIX_EPOCH, "again");
        assert_eq!((record.findings.len(), record.failures.len()), (MAX_FINDINGS, MAX_FAILURES));
        assert_eq!(record.findings[0].message, "again");
        assert!(serde_json::to_string(&record).unwrap().len() < 64 * 1_024);
    }

    #[test]
    fn a_record_of_another_version_is_read_as_far_as_it_goes() {
        let read: Record = serde_json::from_str(r#"{"finished": "2026-01-01T00:00:00Z", "more": 1}"#).unwrap();
        assert!(read.finished.is_some() && read.findings.is_empty());
    }
}
