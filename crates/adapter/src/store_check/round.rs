//! One round of the check: the lists of all places, then single reads in rotation, then repairs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use daemon::retry::Budget;
use fleet_model::StoredCopy;
use hyperfleet_client::{Client, ListQuery, Resource};
use jiff::Timestamp;
use secret_store::{ListedSecrets, SecretId, StoreError};
use tokio_util::sync::CancellationToken;

use super::record::Rotation;
use crate::decide::{Reported, StoreFinding};
use crate::store::Stores;

/// Maximum time to list the clusters.
const LIST_TIMEOUT: Duration = Duration::from_mins(30);
/// The members of a cluster that the check needs; its spec is not among them.
const FIELDS: [&str; 6] = ["id", "kind", "generation", "created_time", "deleted_time", "status"];

/// The result of the lists of all places.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Number of clusters whose secrets were compared.
    pub(super) clusters: u64,
    /// Number of pages.
    pub(super) pages: u64,
    /// The differences.
    pub(super) found: Vec<Repair>,
    /// Places that could not be listed, and why.
    pub(super) failures: BTreeMap<String, String>,
    /// The secrets that no list had, to be read one by one.
    pub(super) unlisted: Vec<Reported>,
    /// All others, in order of their clusters.
    pub(super) listed: Vec<Reported>,
}

/// A difference that a run is to repair.
#[derive(Debug)]
pub(super) struct Repair {
    /// The pull secret as it was reported.
    pub(super) reported: Reported,
    pub(super) finding: StoreFinding,
    /// The time just before the store was read. A run that ended later may have repaired the difference already.
    pub(super) read: Timestamp,
}

/// A single read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// The secret, which was missing in a list.
    Secret,
    /// Its newest version.
    Version,
}

/// The reads and repairs that are left of the last check.
#[derive(Debug, Default)]
pub(super) struct Round {
    unlisted: VecDeque<Reported>,
    /// By their keys.
    listed: BTreeMap<String, Reported>,
    repairs: VecDeque<Repair>,
    queued: BTreeSet<String>,
}

/// A place's secrets, by name.
type Place = BTreeMap<SecretId, Reported>;

/// Lists the clusters of the API, and returns what is reported of each.
pub(super) async fn reported(
    client: &Client,
    resource_type: &str,
    of: impl Fn(&Resource) -> Vec<Reported>,
) -> Result<Vec<Reported>, hyperfleet_client::Error> {
    let budget = Budget::new(LIST_TIMEOUT, CancellationToken::new());
    let query = ListQuery { fields: FIELDS.map(str::to_owned).to_vec(), ..ListQuery::default() };
    let mut pages = client.within(&budget).list_all(resource_type, query);
    let mut all = Vec::new();
    while let Some(page) = pages.next().await? {
        all.extend(page.iter().flat_map(&of));
    }
    Ok(all)
}

/// Compares the reported secrets with the lists of their places.
pub(super) async fn compare(stores: &Stores, reported: Vec<Reported>) -> Checked {
    let mut places: BTreeMap<StoredCopy, Place> = BTreeMap::new();
    for reported in reported {
        let place = places.entry(reported.copy.clone().without_name()).or_default();
        place.insert(reported.secret.clone(), reported);
    }
    let mut checked = Checked::default();
    for (copy, place) in places {
        let of_first_store = place.values().filter(|reported| !reported.is_mirror).count();
        let (clusters, mut result) = (of_first_store as u64, Checked::default());
        match compare_place(stores, &copy, place, &mut result).await {
            Ok(()) => {
                checked.clusters += clusters;
                checked.found.append(&mut result.found);
                checked.unlisted.append(&mut result.unlisted);
                checked.listed.append(&mut result.listed);
            }
            // A part of a list proves nothing about the rest.
            Err(error) => drop(checked.failures.insert(copy.place(), error.to_string())),
        }
        checked.pages += result.pages;
    }
    checked
}

async fn compare_place(
    stores: &Stores,
    copy: &StoredCopy,
    mut place: Place,
    result: &mut Checked,
) -> Result<(), StoreError> {
    let store = stores.open(copy).await?;
    let mut page: Option<String> = None;
    loop {
        result.pages += 1;
        let read = Timestamp::now();
        let ListedSecrets { secrets, next } = store.list(page.as_deref()).await?;
        for (secret, metadata) in &secrets {
            let Some(reported) = place.remove(secret) else { continue };
            match reported.compare(Some(metadata)) {
                Some(finding) => result.found.push(Repair { reported, finding, read }),
                None => result.listed.push(reported),
            }
        }
        page = next;
        if page.is_none() {
            result.unlisted.extend(place.into_values());
            return Ok(());
        }
    }
}

// === impl Round ===

impl Round {
    /// Takes over what a check leaves to single reads. The rotation goes on where it was.
    pub(super) fn begin(&mut self, checked: Checked, rotation: &mut Rotation, now: Timestamp) {
        self.unlisted = checked.unlisted.into();
        let listed = checked.listed.into_iter();
        self.listed = listed.map(|reported| (reported.key(), reported)).collect();
        rotation.started.get_or_insert(now);
        for repair in checked.found {
            self.add_repair(repair);
        }
    }

    /// Returns true if something is left to read.
    pub(super) fn has_reads(&self) -> bool {
        !self.unlisted.is_empty() || !self.listed.is_empty()
    }

    /// Returns the next read: first what no list had, then the rotation.
    pub(super) fn next_read(&mut self, rotation: &mut Rotation, now: Timestamp) -> Option<(Read, Reported)> {
        if let Some(reported) = self.unlisted.pop_front() {
            return Some((Read::Secret, reported));
        }
        let after = rotation.position.take().unwrap_or_default();
        let next = self.listed.range(after.clone()..).find(|(key, _)| **key != after);
        if next.is_none() {
            (rotation.finished, rotation.started) = (Some(now), Some(now));
        }
        let (key, reported) = next.or_else(|| self.listed.first_key_value())?;
        rotation.position = Some(key.clone());
        Some((Read::Version, reported.clone()))
    }

    /// Returns true if a repair is left to begin.
    pub(super) fn has_repairs(&self) -> bool {
        !self.repairs.is_empty()
    }

    /// Queues the repair of a cluster, once: a run repairs both stores.
    pub(super) fn add_repair(&mut self, repair: Repair) {
        if self.queued.insert(repair.reported.cluster.to_string()) {
            self.repairs.push_back(repair);
        }
    }

    /// Returns the next repair, in order of discovery.
    pub(super) fn next_repair(&mut self) -> Option<Repair> {
        let next = self.repairs.pop_front()?;
        self.queued.remove(next.reported.cluster.as_str());
        Some(next)
    }

    /// Goes on with what is reported now instead of what was compared.
    pub(super) fn replace(&mut self, compared: &Reported, current: Option<Reported>) {
        match current {
            Some(current) => drop(self.listed.insert(current.key(), current)),
            None => drop(self.listed.remove(&compared.key())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::future::BoxFuture;
    use jiff::SignedDuration;
    use secret_store::{MemoryStore, Metadata, NewSecret, Replication, SecretStore as _, VersionSummary};
    use serde_json::json;

    use super::*;
    use crate::store::{StoreView, unopened};

    /// The report about a cluster whose secret is in a project.
    fn reported(project: &str, cluster: &str) -> Reported {
        let resource = json!({
            "id": cluster, "kind": "Cluster", "name": cluster, "generation": 1, "spec": {},
            "status": {"conditions": [], "adapters": {"pullsecret": {
                "available": "True", "observed_generation": 1,
                "conditions": [{"type": "Available", "status": "True", "last_transition_time": "2026-01-01T00:00:00Z"}],
                "data": {"gcpProject": project, "secretName": cluster, "secretVersion": 1},
            }}},
        });
        let resource = serde_json::from_value(resource).unwrap();
        Reported::of(&resource, "pullsecret", Timestamp::now(), SignedDuration::ZERO).remove(0)
    }

    async fn create(store: &MemoryStore, cluster: &str) {
        let texts = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let new = NewSecret {
            labels: texts(&[("managed-by", "hyperfleet"), ("adapter", "pullsecret"), ("cluster-id", cluster)]),
            annotations: texts(&[("hyperfleet-generation", "1"), ("hyperfleet-version", "1")]),
            replication: Replication::Automatic { kms_key: None },
        };
        store.create(&cluster.parse().unwrap(), &new).await.unwrap();
    }

    /// Stores with one project; every other one fails.
    fn only(project: &'static str, store: &Arc<MemoryStore>) -> Stores {
        let store = Arc::clone(store);
        Stores::new(move |copy| {
            let view: Arc<dyn StoreView> = Arc::<MemoryStore>::clone(&store);
            Box::pin(async move { if copy.place() == project { Ok(view) } else { Err(unopened(&copy, "denied")) } })
        })
    }

    #[tokio::test]
    async fn lists_are_read_page_by_page_and_what_no_list_has_is_read_alone() {
        let store = Arc::new(MemoryStore::new());
        let clusters: Vec<String> = (0..250).map(|number| format!("cls-{number:03}")).collect();
        for cluster in &clusters[..249] {
            create(&store, cluster).await;
        }
        let all = clusters.iter().map(|cluster| reported("project-1", cluster)).chain([reported("project-2", "cls-x")]);
        let checked = compare(&only("project-1", &store), all.collect()).await;
        assert_eq!((checked.clusters, checked.pages), (250, 3), "a page of the store in memory has 100 secrets");
        assert_eq!((checked.listed.len(), checked.found.len()), (249, 0));
        assert_eq!(checked.unlisted, [reported("project-1", "cls-249")], "a list may lag: nothing is concluded yet");
        assert_eq!(checked.failures.keys().collect::<Vec<_>>(), ["project-2"]);
    }

    /// A store that is read at the time in here, and lists a secret without labels.
    #[derive(Default)]
    struct ReadAt(std::sync::OnceLock<Timestamp>);

    impl StoreView for ReadAt {
        fn list<'a>(&'a self, _: Option<&'a str>) -> BoxFuture<'a, Result<ListedSecrets, StoreError>> {
            self.0.get_or_init(Timestamp::now);
            let secrets = BTreeMap::from([("cls-1".parse().unwrap(), Metadata::default())]);
            Box::pin(async { Ok(ListedSecrets { secrets, next: None }) })
        }

        fn find<'a>(&'a self, _: &'a SecretId) -> BoxFuture<'a, Result<Option<Metadata>, StoreError>> {
            unreachable!()
        }

        fn newest_version<'a>(&'a self, _: &'a SecretId) -> BoxFuture<'a, Result<Option<VersionSummary>, StoreError>> {
            unreachable!()
        }
    }

    /// A Job may repair the difference while it is compared: the time before the read tells that it ended later.
    #[tokio::test]
    async fn a_difference_has_the_time_before_the_read() {
        let store = Arc::new(ReadAt::default());
        let view = Arc::clone(&store);
        let stores = Stores::new(move |_| {
            let view: Arc<dyn StoreView> = Arc::<ReadAt>::clone(&view);
            Box::pin(async { Ok(view) })
        });
        let checked = compare(&stores, vec![reported("project-1", "cls-1")]).await;
        assert!(checked.found[0].read <= *store.0.get().unwrap());
    }

    #[test]
    fn the_rotation_goes_on_after_a_restart_and_ends_a_round_at_the_last_cluster() {
        let now = Timestamp::UNIX_EPOCH;
        let checked = || Checked {
            listed: ["cls-1", "cls-2", "cls-3"].map(|cluster| reported("p-12345", cluster)).to_vec(),
            ..Checked::default()
        };
        let mut rotation = Rotation::default();
        let read = |round: &mut Round, rotation: &mut Rotation| {
            round.next_read(rotation, now).map(|(_, reported)| reported.cluster.to_string())
        };
        let mut round = Round::default();
        assert!(!round.has_reads());
        round.begin(checked(), &mut rotation, now);
        assert_eq!(read(&mut round, &mut rotation).as_deref(), Some("cls-1"));
        let mut restarted = Round::default();
        restarted.begin(checked(), &mut rotation, now);
        let rest = [(); 2].map(|()| read(&mut restarted, &mut rotation));
        assert_eq!((rest.map(Option::unwrap), rotation.finished), (["cls-2", "cls-3"].map(str::to_owned), None));
        assert_eq!(read(&mut restarted, &mut rotation).as_deref(), Some("cls-1"));
        assert_eq!(rotation.finished, Some(now));
    }

    #[test]
    fn a_repair_is_queued_once() {
        let mut round = Round::default();
        let missing = |cluster: &str| {
            let reported = reported("project-1", cluster);
            let finding = reported.compare(None).unwrap();
            Repair { reported, finding, read: Timestamp::UNIX_EPOCH }
        };
        for repair in ["b", "a", "b"].map(missing) {
            round.add_repair(repair);
        }
        let repairs = std::iter::from_fn(|| round.next_repair()).map(|repair| repair.reported.cluster.to_string());
        assert_eq!(repairs.collect::<Vec<_>>(), ["b", "a"]);
        round.add_repair(missing("b"));
        assert!(round.has_repairs());
    }
}
