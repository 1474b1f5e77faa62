//! The check of the secret stores: one replica makes it, what differs is repaired, a few at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use adapter::Stores;
use adapter::store_check::record::Record;
use emulators::secret_manager::{SecretManager, Settings};
use hyperfleet_client::Resource;
use secret_store::{Endpoint, GoogleProjects, NewSecret, NewVersion, Replication, SecretStore as _, VersionNumber};

use crate::environment::Kind;
use crate::world::{World, eventually};

/// Checks all the time, at a store whose lists do not lag.
const OFTEN: &str = "storeCheck: {interval: 1s, settle: 0s, readsPerMinute: 6000, repairsPerMinute: 6000}";

/// A world whose adapters check an emulator of Secret Manager.
struct Checked {
    world: World,
    projects: Arc<GoogleProjects>,
    _emulator: SecretManager,
}

/// An emulator of Secret Manager, and the clients of its projects.
pub(crate) async fn secret_manager(settings: Settings) -> (SecretManager, Arc<GoogleProjects>) {
    let emulator = SecretManager::start(settings).await.unwrap();
    let endpoint = Endpoint::emulator(emulator.address().to_string());
    (emulator, Arc::new(GoogleProjects::new(endpoint, Duration::from_secs(10))))
}

pub(crate) fn stores(projects: &Arc<GoogleProjects>) -> Stores {
    let projects = Arc::clone(projects);
    Stores::of_projects(move |project, location| {
        let projects = Arc::clone(&projects);
        async move { projects.client(project, location).await }
    })
}

impl Checked {
    async fn new(settings: Settings) -> Self {
        let (emulator, projects) = secret_manager(settings).await;
        let world = World::new(Kind::Emulator).await.unwrap();
        Self { world: World { stores: Some(stores(&projects)), ..world }, projects, _emulator: emulator }
    }

    /// Stores what the simulated Job of a cluster says that it has stored.
    async fn store(&self, cluster: &Resource) {
        let project = cluster.spec["gcp"]["projectId"].as_str().unwrap().parse().unwrap();
        let store = self.projects.client(project, None).await.unwrap();
        let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let created = cluster.created_time.unwrap().to_string();
        let new = NewSecret {
            labels: text(&[("managed-by", "hyperfleet"), ("adapter", "pullsecret"), ("cluster-id", &cluster.id)]),
            annotations: text(&[
                ("hyperfleet-generation", "1"),
                ("hyperfleet-version", "1"),
                ("hyperfleet-incarnation", &created),
            ]),
            replication: Replication::Automatic { kms_key: None },
        };
        let secret = format!("hyperfleet-{}-pull-secret", cluster.id).parse().unwrap();
        store.create(&secret, &new).await.unwrap();
        let content = b"{}".to_vec().into();
        store.add_version(&secret, &NewVersion::without_record(VersionNumber::FIRST, &content)).await.unwrap();
    }

    async fn ready(&self, id: &str) -> Resource {
        let cluster = self.world.ready(id).await;
        self.world.publish_event(id).await;
        cluster
    }

    async fn record(&self) -> Option<Record> {
        let cluster = self.world.environment.cluster().await;
        Record::read(&cluster, &self.world.environment.namespace, "pullsecret").await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_secret_is_repaired_and_a_stored_one_is_left_alone() {
    let checked = Checked::new(Settings::default()).await;
    let adapter = checked.world.adapter(OFTEN).await;
    // The check looks for a secret from the first event on.
    let stored = checked.world.ready("cls-1").await;
    checked.store(&stored).await;
    checked.world.publish_event("cls-1").await;
    let _lost = checked.ready("cls-2").await;
    checked.world.until_available("cls-1", 1).await;
    eventually(async || checked.world.node.started("cls-2", 1) >= 2).await;
    assert!(adapter.count("hyperfleet_adapter_store_findings", "secret_missing").await > 0);
    let job = checked.world.environment.job("pullsecret-cls-2-gen1").await.unwrap();
    let because = job["metadata"]["annotations"]["hyperfleet.io/because"].as_str().unwrap();
    assert!(because.contains("secret hyperfleet-cls-2-pull-secret of project"), "{because}");
    eventually(async || adapter.count("hyperfleet_adapter_store_calls", "newest_version").await > 0).await;
    assert_eq!(checked.world.node.started("cls-1", 1), 1);
    let is_found = |record: Record| record.findings.first().is_some_and(|finding| finding.cluster == "cls-2");
    eventually(async || checked.record().await.is_some_and(is_found)).await;
    let record = checked.record().await.unwrap();
    assert!(record.finished.is_some() && record.failures.is_empty(), "{record:?}");
    adapter.stop().await;
}

/// A store that does not let the adapter list says nothing about its secrets.
#[tokio::test(flavor = "multi_thread")]
async fn a_project_that_cannot_be_listed_is_named_and_nothing_is_repaired() {
    let denied = ["secretmanager.secrets.list".to_owned()].into();
    let checked = Checked::new(Settings { denied_permissions: denied, ..Settings::default() }).await;
    let adapter = checked.world.adapter(OFTEN).await;
    let _lost = checked.ready("cls-1").await;
    checked.world.until_available("cls-1", 1).await;
    eventually(async || checked.record().await.is_some_and(|record| !record.failures.is_empty())).await;
    let record = checked.record().await.unwrap();
    let why = record.failures.values().next().unwrap();
    assert!(why.contains("secretmanager.secrets.list"), "{why}");
    assert!(adapter.count("hyperfleet_adapter_store_checks", "failed").await > 0);
    assert_eq!(checked.world.node.started("cls-1", 1), 1);
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_replica_checks_and_the_next_one_goes_on() {
    let checked = Checked::new(Settings::default()).await;
    let first = checked.world.replica(OFTEN, Some("first")).await;
    eventually(async || first.count("hyperfleet_adapter_store_checks", "").await > 0).await;
    let second = checked.world.replica(OFTEN, Some("second")).await;
    let checks = first.count("hyperfleet_adapter_store_checks", "").await;
    eventually(async || first.count("hyperfleet_adapter_store_checks", "").await > checks).await;
    assert_eq!(second.count("hyperfleet_adapter_store_checks", "").await, 0);
    first.stop().await;
    eventually(async || second.count("hyperfleet_adapter_store_checks", "").await > 0).await;
    second.stop().await;
}

/// Not even the record of the last check is written over a `ConfigMap` of another program.
#[tokio::test(flavor = "multi_thread")]
async fn an_unmanaged_config_map_is_left_alone() {
    use k8s_openapi::api::core::v1::ConfigMap;
    let checked = Checked::new(Settings::default()).await;
    let (environment, name) = (&checked.world.environment, "pullsecret-store-check");
    let theirs = serde_json::json!({"metadata": {"name": name}, "data": {"note": "theirs"}});
    environment.server.create::<ConfigMap>(&environment.namespace, theirs).await;
    let adapter = checked.world.adapter(OFTEN).await;
    eventually(async || adapter.count("hyperfleet_adapter_store_checks", "success").await > 1).await;
    let found: ConfigMap = environment.cluster().await.find(&environment.namespace, name).await.unwrap().unwrap();
    assert_eq!(found.data.unwrap().into_iter().collect::<Vec<_>>(), [("note".to_owned(), "theirs".to_owned())]);
    adapter.stop().await;
}
