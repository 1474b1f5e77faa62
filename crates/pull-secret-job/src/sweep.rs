//! Finds stored secrets whose cluster is gone, and deletes them.
//!
//! A forced deletion, or the loss of the API's database, leaves secrets behind that no adapter knows any more. Each stored
//! secret is compared with the clusters that the API has. The secrets are listed before the clusters, so that a new cluster is
//! never missed; before a deletion the caller asks the API for that one cluster again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fleet_model::{ClusterId, Incarnation, StoredCopy, names};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// The labels of the secrets that are considered.
pub const LABELS: [(&str, &str); 2] = names::STORED_SECRETS;

/// The clusters that the API has.
pub type Clusters = BTreeMap<ClusterId, Living>;

/// A cluster that the API has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Living {
    /// Its incarnation.
    pub incarnation: Option<Incarnation>,
    /// The copies that the adapter's report lists; `None` if it lists none, or is not known.
    pub copies: Option<BTreeSet<StoredCopy>>,
}

/// The record that the API keeps of a cluster that was deleted by force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The id of the tombstone.
    pub id: String,
    /// The cluster's id.
    pub cluster: String,
    /// The cluster's incarnation.
    pub incarnation: Option<Incarnation>,
    /// The copies that its adapters had reported.
    pub copies: Vec<StoredCopy>,
    /// The time of the forced deletion.
    pub removed: Timestamp,
}

/// Time after a forced deletion in which a run of the cluster's last Job may still write a copy.
const LAST_RUN: SignedDuration = SignedDuration::from_hours(1);

/// The secrets that a sweep has listed and not deleted, and where it has listed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Copies of the places in which secrets were listed, one of each, whatever their names.
    pub places: Vec<StoredCopy>,
    /// The secrets of deleted clusters that are still there.
    pub left: BTreeSet<StoredCopy>,
}

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

/// The secrets that are deleted on request only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// Those of clusters that the API does not know.
    pub unknown: bool,
    /// Those of living clusters that the adapter's report does not list.
    pub not_listed: bool,
}

/// State of a stored secret's cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// The API has the cluster.
    InUse,
    /// The API has the cluster, and the adapter's report lists other copies: the cluster's pull secret is elsewhere now.
    NotListed,
    /// The API has another cluster with this id: the secret is an earlier one's.
    DifferentIncarnation,
    /// The API has no such cluster any more, and a tombstone of it: it was deleted by force.
    ForceDeleted,
    /// The API has no cluster with this id, and no tombstone of it. The secret may also belong to another fleet that uses the project.
    Unknown,
    /// The label names no cluster.
    Unlabelled,
}

/// Compares secrets with the API's clusters and tombstones.
pub fn compare(
    listed: impl IntoIterator<Item = Listed>,
    clusters: &Clusters,
    tombstones: &[Tombstone],
) -> Vec<Finding> {
    let finding = |listed: Listed| {
        let Listed { copy, mut labels, mut annotations, revision } = listed;
        let cluster = labels.remove(names::LABEL_CLUSTER_ID);
        let name = match &copy {
            StoredCopy::KubernetesSecret { .. } => names::ANNOTATION_KUBERNETES_SECRET_INCARNATION,
            _ => names::ANNOTATION_INCARNATION,
        };
        let incarnation = annotations.remove(name);
        let recorded = incarnation.as_deref().and_then(|text| text.parse().ok());
        let is_buried = |tombstone: &Tombstone| {
            Some(&tombstone.cluster) == cluster.as_ref()
                && match (&recorded, &tombstone.incarnation) {
                    (Some(recorded), Some(buried)) => recorded == buried,
                    // A secret without a record of its incarnation is the tombstone's if that names it.
                    _ => tombstone.copies.contains(&copy),
                }
        };
        let state = match state(cluster.as_deref(), recorded.as_ref(), &copy, clusters) {
            State::Unknown if tombstones.iter().any(is_buried) => State::ForceDeleted,
            state => state,
        };
        Finding { copy, cluster, incarnation, state, revision }
    };
    listed.into_iter().map(finding).collect()
}

fn state(cluster: Option<&str>, recorded: Option<&Incarnation>, copy: &StoredCopy, clusters: &Clusters) -> State {
    let Some(id) = cluster.and_then(|cluster| cluster.parse::<ClusterId>().ok()) else { return State::Unlabelled };
    match clusters.get(&id) {
        None => State::Unknown,
        Some(living) => living.state(recorded, copy),
    }
}

// === impl Living ===

impl Living {
    /// Returns the state of a secret of this cluster, by the incarnation that its record names.
    ///
    /// Each copy is in the report before it is written, so one that is not belongs to a destination that was given up, or to
    /// a newer state of the API's database than the restored one.
    pub fn state(&self, recorded: Option<&Incarnation>, copy: &StoredCopy) -> State {
        match (&self.incarnation, recorded) {
            (Some(current), Some(recorded)) if current != recorded => State::DifferentIncarnation,
            _ if self.copies.as_ref().is_some_and(|listed| !listed.iter().any(|one| one.may_be(copy))) => {
                State::NotListed
            }
            _ => State::InUse,
        }
    }
}

// === impl Covered ===

impl Covered {
    /// Returns true if the secrets were listed where this copy is.
    pub fn has_place_of(&self, copy: &StoredCopy) -> bool {
        self.places.iter().any(|place| place.is_beside(copy))
    }
}

// === impl Tombstone ===

impl Tombstone {
    /// Returns the copies of which a sweep has shown that they are gone.
    pub fn gone(&self, covered: &Covered, now: Timestamp) -> Vec<StoredCopy> {
        if now.duration_since(self.removed) < LAST_RUN {
            return Vec::new();
        }
        let is_gone =
            |copy: &&StoredCopy| covered.has_place_of(copy) && !covered.left.iter().any(|left| left.may_be(copy));
        self.copies.iter().filter(is_gone).cloned().collect()
    }
}

impl State {
    /// Returns true if a secret in this state is deleted. One of an unknown cluster, or of a living one, only on request.
    pub const fn is_swept(self, requested: Requested) -> bool {
        match self {
            Self::DifferentIncarnation | Self::ForceDeleted => true,
            Self::Unknown => requested.unknown,
            Self::NotListed => requested.not_listed,
            Self::InUse | Self::Unlabelled => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::InUse => "in use",
            Self::NotListed => "not listed by the cluster's report",
            Self::DifferentIncarnation => "earlier cluster with the id",
            Self::ForceDeleted => "cluster deleted by force",
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
        let clusters = Clusters::from([("cls-1".parse().unwrap(), living(NOW))]);
        let findings = compare([listed(cluster, incarnation)], &clusters, &[]);
        assert_eq!(findings.iter().map(|finding| finding.state).collect::<Vec<_>>(), [expected]);
    }

    fn living(incarnation: &str) -> Living {
        Living { incarnation: Some(incarnation.parse().unwrap()), copies: None }
    }

    #[rstest]
    #[case::without_a_report(None, NOW, State::InUse)]
    #[case::listed(Some(&["p-0", "p-1"][..]), NOW, State::InUse)]
    #[case::not_listed(Some(&["p-0"][..]), NOW, State::NotListed)]
    #[case::of_an_earlier_one(Some(&["p-0"][..]), "2026-01-01T00:00:00Z", State::DifferentIncarnation)]
    fn a_copy_of_a_living_cluster_is_in_use_unless_its_report_lists_others(
        #[case] projects: Option<&[&str]>,
        #[case] recorded: &str,
        #[case] expected: State,
    ) {
        let copies = projects.map(|projects| projects.iter().map(|project| copy(project)).collect());
        let clusters = Clusters::from([("cls-1".parse().unwrap(), Living { copies, ..living(NOW) })]);
        assert_eq!(compare([listed(Some("cls-1"), Some(recorded))], &clusters, &[])[0].state, expected);
    }

    #[test]
    fn only_what_is_certainly_left_behind_is_deleted_without_a_request() {
        let swept = |unknown, not_listed| {
            use State::{DifferentIncarnation, ForceDeleted, InUse, NotListed, Unknown, Unlabelled};
            let states = [InUse, NotListed, DifferentIncarnation, ForceDeleted, Unknown, Unlabelled];
            states.map(|state| state.is_swept(Requested { unknown, not_listed }))
        };
        assert_eq!(swept(false, false), [false, false, true, true, false, false]);
        assert_eq!(swept(true, false), [false, false, true, true, true, false]);
        assert_eq!(swept(false, true), [false, true, true, true, false, false]);
    }

    fn copy(project: &str) -> StoredCopy {
        StoredCopy::Secret { project: project.to_owned(), location: None, name: "s".to_owned() }
    }

    fn tombstone(incarnation: Option<&str>, copies: &[StoredCopy]) -> Tombstone {
        Tombstone {
            id: "t".to_owned(),
            cluster: "cls-9".to_owned(),
            incarnation: incarnation.map(|text| text.parse().unwrap()),
            copies: copies.to_vec(),
            removed: NOW.parse().unwrap(),
        }
    }

    #[rstest]
    #[case::the_incarnation(Some(NOW), tombstone(Some(NOW), &[]), State::ForceDeleted)]
    #[case::an_earlier_one(Some("2026-01-01T00:00:00Z"), tombstone(Some(NOW), &[copy("p-1")]), State::Unknown)]
    #[case::no_record_but_the_copy(None, tombstone(Some(NOW), &[copy("p-1")]), State::ForceDeleted)]
    #[case::no_record_and_another_copy(None, tombstone(Some(NOW), &[copy("p-2")]), State::Unknown)]
    fn a_tombstone_tells_what_is_left_behind(
        #[case] recorded: Option<&str>,
        #[case] tombstone: Tombstone,
        #[case] expected: State,
    ) {
        let state = |clusters: &Clusters| {
            compare([listed(Some("cls-9"), recorded)], clusters, std::slice::from_ref(&tombstone))[0].state
        };
        assert_eq!(state(&Clusters::new()), expected);
        // A restored database may have both: the cluster wins.
        let living = living(recorded.unwrap_or(NOW));
        assert_eq!(state(&Clusters::from([("cls-9".parse().unwrap(), living)])), State::InUse);
    }

    #[test]
    fn a_copy_is_gone_when_a_sweep_has_covered_it_after_the_last_run() {
        let applied = StoredCopy::KubernetesSecret { namespace: "n".to_owned(), name: "s".to_owned() };
        let tombstone = tombstone(Some(NOW), &[copy("p-1"), copy("p-2"), applied.clone()]);
        let removed: Timestamp = NOW.parse().unwrap();
        let after = |minutes: i64| removed + SignedDuration::from_mins(minutes);
        let mut covered = Covered { places: vec![copy("p-1")], left: BTreeSet::new() };
        assert_eq!(tombstone.gone(&covered, after(59)), []);
        assert_eq!(tombstone.gone(&covered, after(60)), [copy("p-1")]);
        covered.places.push(StoredCopy::KubernetesSecret { namespace: "another".to_owned(), name: "x".to_owned() });
        assert_eq!(tombstone.gone(&covered, after(60)), [copy("p-1"), applied.clone()]);
        covered.left.insert(copy("p-1"));
        assert_eq!(tombstone.gone(&covered, after(60)), [applied]);
    }

    fn in_vault(server: &str, namespace: Option<&str>, name: &str) -> StoredCopy {
        let [server, mount, folder, name] = [server, "kv", "f", name].map(str::to_owned);
        StoredCopy::VaultSecret { server, namespace: namespace.map(str::to_owned), mount, folder, name }
    }

    /// One server has several addresses, and `root` is the namespace without a name.
    #[test]
    fn a_copy_under_another_name_of_its_place_is_in_use_and_not_gone() {
        let copies = Some(BTreeSet::from([in_vault("https://v", Some("root"), "s")]));
        let living = Living { copies, ..living(NOW) };
        let recorded = living.incarnation.clone();
        let state = |copy: &StoredCopy| living.state(recorded.as_ref(), copy);
        assert_eq!(state(&in_vault("https://other-address", None, "s")), State::InUse);
        assert_eq!(state(&in_vault("https://v", None, "t")), State::NotListed);
        let tombstone =
            tombstone(Some(NOW), &[in_vault("https://v", Some("root"), "s"), in_vault("https://w", None, "s")]);
        let later = NOW.parse::<Timestamp>().unwrap() + SignedDuration::from_hours(2);
        let mut covered = Covered { places: vec![in_vault("https://v", None, "x")], left: BTreeSet::new() };
        assert_eq!(tombstone.gone(&covered, later), [in_vault("https://v", Some("root"), "s")], "of this server only");
        covered.left.insert(in_vault("https://v", None, "s"));
        assert_eq!(tombstone.gone(&covered, later), []);
    }
}
