//! Finds stored secrets whose cluster is gone, and deletes them.
//!
//! A forced deletion, or the loss of the API's database, leaves secrets behind that no adapter knows any more. Each stored
//! secret is compared with the clusters that the API has. The secrets are listed before the clusters, so that a new cluster is
//! never missed; before a deletion the caller asks the API for that one cluster again.

use std::collections::BTreeMap;
use std::fmt;

use fleet_model::{ClusterId, Incarnation, StoredCopy, names};
use serde::Serialize;

/// The labels of the secrets that are considered.
pub const LABELS: [(&str, &str); 2] =
    [(names::LABEL_MANAGED_BY, names::MANAGED_BY), (names::LABEL_ADAPTER, names::ADAPTER)];

/// The clusters that the API has, with their incarnations.
pub type Clusters = BTreeMap<ClusterId, Option<Incarnation>>;

/// A secret as it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Location of the secret.
    pub copy: StoredCopy,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// The revision of its metadata; a deletion is made at this one only.
    pub revision: String,
}

/// A secret and the state of its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Location of the secret.
    pub copy: StoredCopy,
    /// The cluster that its label names.
    pub cluster: Option<String>,
    /// The incarnation that its record names.
    pub incarnation: Option<String>,
    /// State of the cluster.
    pub state: State,
    /// See [`Listed::revision`].
    #[serde(skip)]
    pub revision: String,
}

/// State of a stored secret's cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// The API has the cluster.
    InUse,
    /// The API has another cluster with this id: the secret is an earlier one's.
    DifferentIncarnation,
    /// The API has no cluster with this id. The secret may also belong to another fleet that uses the project.
    Unknown,
    /// The label names no cluster.
    Unlabelled,
}

/// Compares secrets with the API's clusters.
pub fn compare(listed: impl IntoIterator<Item = Listed>, clusters: &Clusters) -> Vec<Finding> {
    let finding = |listed: Listed| {
        let Listed { copy, mut labels, mut annotations, revision } = listed;
        let cluster = labels.remove(names::LABEL_CLUSTER_ID);
        let name = match &copy {
            StoredCopy::Secret { .. } => names::ANNOTATION_INCARNATION,
            StoredCopy::KubernetesSecret { .. } => names::ANNOTATION_KUBERNETES_SECRET_INCARNATION,
        };
        let incarnation = annotations.remove(name);
        let recorded = incarnation.as_deref().and_then(|text| text.parse().ok());
        let state = state(cluster.as_deref(), recorded.as_ref(), clusters);
        Finding { copy, cluster, incarnation, state, revision }
    };
    listed.into_iter().map(finding).collect()
}

fn state(cluster: Option<&str>, recorded: Option<&Incarnation>, clusters: &Clusters) -> State {
    let Some(id) = cluster.and_then(|cluster| cluster.parse::<ClusterId>().ok()) else { return State::Unlabelled };
    match clusters.get(&id) {
        None => State::Unknown,
        Some(current) => match (current, recorded) {
            (Some(current), Some(recorded)) if current != recorded => State::DifferentIncarnation,
            _ => State::InUse,
        },
    }
}

impl State {
    /// Returns true if a secret in this state is deleted. A secret of an unknown cluster is only deleted on request.
    pub const fn is_swept(self, with_unknown: bool) -> bool {
        match self {
            Self::DifferentIncarnation => true,
            Self::Unknown => with_unknown,
            Self::InUse | Self::Unlabelled => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::InUse => "in use",
            Self::DifferentIncarnation => "earlier cluster with the id",
            Self::Unknown => "unknown to the API",
            Self::Unlabelled => "names no cluster",
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const NOW: &str = "2026-02-01T00:00:00Z";

    fn listed(cluster: Option<&str>, incarnation: Option<&str>) -> Listed {
        let text = |name: &str, value: Option<&str>| -> BTreeMap<String, String> {
            value.map(|value| (name.to_owned(), value.to_owned())).into_iter().collect()
        };
        Listed {
            copy: StoredCopy::Secret { project: "p-1".to_owned(), location: None, name: "s".to_owned() },
            labels: text("cluster-id", cluster),
            annotations: text("hyperfleet-incarnation", incarnation),
            revision: "e".to_owned(),
        }
    }

    #[rstest]
    #[case::living(Some("cls-1"), Some(NOW), State::InUse)]
    #[case::stored_before_incarnations_were_recorded(Some("cls-1"), None, State::InUse)]
    #[case::of_an_earlier_one(Some("cls-1"), Some("2026-01-01T00:00:00Z"), State::DifferentIncarnation)]
    #[case::gone(Some("cls-9"), Some(NOW), State::Unknown)]
    #[case::without_a_label(None, Some(NOW), State::Unlabelled)]
    #[case::with_an_invalid_label(Some("CLS_1"), None, State::Unlabelled)]
    fn states(#[case] cluster: Option<&str>, #[case] incarnation: Option<&str>, #[case] expected: State) {
        let clusters = Clusters::from([("cls-1".parse().unwrap(), Some(NOW.parse().unwrap()))]);
        let findings = compare([listed(cluster, incarnation)], &clusters);
        assert_eq!(findings.iter().map(|finding| finding.state).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn only_what_is_certainly_left_behind_is_deleted_without_a_request() {
        let swept = |with_unknown| {
            [State::InUse, State::DifferentIncarnation, State::Unknown, State::Unlabelled]
                .map(|state: State| state.is_swept(with_unknown))
        };
        assert_eq!(swept(false), [false, true, false, false]);
        assert_eq!(swept(true), [false, true, true, false]);
    }
}
