//! One adapter for clusters of three providers, whose pull secrets are in OpenBao, in Azure Key Vault and in Secret Manager; for the
//! last two emulators stand in.

use std::collections::BTreeMap;

use emulators::kubernetes::{self as emulated, Kubernetes};
use emulators::secret_manager::{self, SecretManager};
use hyperfleet_client::Resource;
use kubernetes::Cluster;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::broker::{self, Broker, fetch};
use testkit::environment::{missing, variable};
use testkit::fleet::{self, Player, attempt, condition, document, is_available, spec_of, view};
use testkit::key_vault::{SUBJECT, Server};
use testkit::program;
use tokio::process::Child;

use super::metadata;
use crate::processes;

const IMAGE: &str = "pull-secret";
/// The beginnings of the variables of each store.
const FAMILIES: [&str; 4] = ["VAULT_", "AZURE_", "SECRET_MANAGER_", "GCP_"];

/// A fleet plane with one adapter, each part a process, and the stores of its clusters.
struct Fleet {
    player: Player,
    vault: Server,
    google: SecretManager,
    kubernetes: Kubernetes,
    cluster: Cluster,
    topic: String,
    folder: TempDir,
    /// They end when they are dropped.
    parts: Vec<Child>,
}

impl Fleet {
    /// `None`, with a line that says what is missing, without OpenBao or RabbitMQ.
    async fn start() -> Option<Self> {
        let Some(openbao) = variable("REAL_OPENBAO_ADDR") else {
            return missing("REAL_OPENBAO_ADDR is not set: no OpenBao; `make real-parts` starts one");
        };
        let broker = broker::rabbitmq()?;
        let topic = format!("by-provider-{}", std::process::id());
        let settings = emulated::Settings {
            namespaces: vec![topic.clone()],
            run_pods: BTreeMap::from([(IMAGE.to_owned(), program::path("pull-secret"))]),
            ..emulated::Settings::default()
        };
        let folder = fleet::folder();
        let kubernetes = Kubernetes::start(settings).await.unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        daemon::file::replace(&kubeconfig, kubernetes.kubeconfig().as_bytes()).unwrap();
        let cluster = fleet::cluster(&kubeconfig).await;
        cluster.ensure_service_account(&topic, "pullsecret-adapter-job").await.unwrap();
        let (vault, google) =
            (Server::plain().await, SecretManager::start(secret_manager::Settings::default()).await.unwrap());
        let (api, address) = processes::api(folder.path(), &[]).await;
        let mut fleet =
            Self { player: Player::of(&address), vault, google, kubernetes, cluster, topic, folder, parts: vec![api] };
        let parts = [fleet.adapter(&address, &openbao, &broker).await, fleet.sentinel(&address, &broker).await];
        fleet.parts.extend(parts);
        Some(fleet)
    }

    /// The variables with which a program identifies itself at each store.
    fn identities(&self) -> Vec<(&'static str, String)> {
        let path = |name: &str, content: &str| {
            let path = self.folder.path().join(name);
            daemon::file::replace(&path, content.as_bytes()).unwrap();
            path.display().to_string()
        };
        let Server { vault, settings, .. } = &self.vault;
        vec![
            ("VAULT_AUTH", "token".to_owned()),
            ("VAULT_TOKEN_FILE", variable("REAL_OPENBAO_TOKEN_FILE").unwrap()),
            ("AZURE_AUTHORITY_HOST", vault.url()),
            ("AZURE_TENANT_ID", settings.tenant.clone()),
            ("AZURE_CLIENT_ID", settings.identities[0].client_id.clone()),
            ("AZURE_FEDERATED_TOKEN_FILE", path("assertion", &vault.assertion(SUBJECT))),
            ("AZURE_CA_FILE", path("vault-ca.crt", vault.authority())),
            ("AZURE_PURGE", "true".to_owned()),
            ("SECRET_MANAGER_EMULATOR_HOST", self.google.address().to_string()),
        ]
    }

    async fn adapter(&self, api: &str, openbao: &str, broker: &Broker) -> Child {
        let kubeconfig = self.folder.path().join("kubeconfig");
        let management = ("MANAGEMENT_KUBECONFIG", kubeconfig.display().to_string());
        let variables = self.identities().into_iter().chain([management]);
        let variables: Vec<_> = variables.map(|(name, value)| json!({"name": name, "value": value})).collect();
        let config = json!({
            "apiVersion": "hyperfleet.redhat.com/v1alpha1", "kind": "AdapterConfig",
            "metadata": {"name": "pullsecret-adapter", "namespace": self.topic},
            "spec": {
                "adapterType": "pullsecret",
                "hyperfleetAPI": {"url": api, "tokenPath": self.folder.path().join("token")},
                "broker": {"topic": self.topic},
                "kubernetes": {"kubeconfig": kubeconfig},
                "secretStore": {
                    "byProvider": {"gcp": "google", "azure": "azure", "onprem": "vault"},
                    "vault": {"address": openbao},
                    "azure": {"vaultUrl": self.vault.vault.url()},
                },
                "storeCheck": {"interval": "5s", "settle": "0s", "readsPerMinute": 600},
                "limits": {"writesPerMinute": 0},
                "destinations": [{"projects": ["*"], "folders": ["pull-secrets"], "namespaces": ["clusters-*"]}],
                "jobTemplate": {"image": IMAGE, "env": variables},
            },
            "health": {"port": 0}, "metrics": {"port": 0},
        });
        let path = self.folder.path().join("adapter.yaml");
        daemon::file::replace(&path, config.to_string().as_bytes()).unwrap();
        let mut command = broker::command(broker, &["adapter"]);
        command.arg("--config").arg(&path).envs(self.identities());
        processes::started(command, "pullsecret-adapter of clusters").await.0
    }

    async fn sentinel(&self, api: &str, broker: &Broker) -> Child {
        let mut command = broker::command(broker, &["sentinel", "--resource-type=clusters"]);
        command.args(["--health-port=0", "--metrics-port=0", "--broker-topic", &self.topic]);
        command.args(["--hyperfleet-api-base-url", api]);
        processes::started(command, "Sentinel of clusters").await.0
    }

    async fn create(&self, provider: &str) -> String {
        let id = format!("cls-of-{provider}");
        self.player.try_create_with(&id, &id, spec_of(provider, &document("a"))).await.unwrap();
        self.player.make_ready(&self.cluster, &id, 1).await;
        id
    }

    /// True if the cluster's secret is in OpenBao, in Azure's vault, and at Google.
    async fn is_stored(&self, id: &str) -> [bool; 3] {
        let secret = format!("hyperfleet-{id}-pull-secret");
        let versions = fleet::versions(&self.google.address().to_string(), None, id).await;
        [
            !metadata(&format!("pull-secrets/{secret}")).await.is_null(),
            self.vault.get(&format!("/secrets/{secret}")).await.status == 200,
            !versions.is_empty(),
        ]
    }

    /// The families of the variables that each Job of the cluster has, by the Job's purpose.
    async fn families(&self, id: &str) -> Vec<(String, Vec<&'static str>)> {
        let url = format!("http://{}/apis/batch/v1/namespaces/{}/jobs", self.kubernetes.address(), self.topic);
        let jobs: Value = serde_json::from_str(&fetch(&url).await.unwrap()).unwrap();
        let of_cluster = |job: &&Value| job["metadata"]["labels"]["cluster-id"] == id;
        let families = |job: &Value| {
            let variables = job["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap().clone();
            let has = |family: &str| variables.iter().any(|it| it["name"].as_str().unwrap().starts_with(family));
            let purpose = job["metadata"]["labels"]["hyperfleet.io/purpose"].as_str().unwrap().to_owned();
            (purpose, FAMILIES.into_iter().filter(|family| has(family)).collect())
        };
        jobs["items"].as_array().unwrap().iter().filter(of_cluster).map(families).collect()
    }
}

/// True if the adapter's report lists one copy in a store, of this kind.
fn is_in(cluster: &Resource, kind: &str) -> bool {
    let copies = view(cluster)["data"]["copies"].as_array().cloned().unwrap_or_default();
    let kinds: Vec<_> = copies.iter().filter_map(|copy| copy["kind"].as_str()).collect();
    kinds == [kind, "kubernetesSecret"]
}

const CLUSTERS: [(&str, &str, [bool; 3], &[&str]); 3] = [
    ("onprem", "vaultSecret", [true, false, false], &["VAULT_"]),
    ("azure", "azureSecret", [false, true, false], &["AZURE_"]),
    ("gcp", "secret", [false, false, true], &["SECRET_MANAGER_", "GCP_"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn one_adapter_serves_each_cluster_at_the_store_of_its_provider() {
    let Some(fleet) = Fleet::start().await else { return };
    let player = &fleet.player;
    let unserved = fleet.create("oracle").await;
    for (provider, kind, stored, families) in CLUSTERS {
        let id = fleet.create(provider).await;
        player.until(&id, |cluster| is_available(cluster, 1) && is_in(cluster, kind)).await;
        assert_eq!(fleet.is_stored(&id).await, stored, "{id}");
        assert_eq!(fleet.families(&id).await, [("apply".to_owned(), families.to_vec())], "{id}");
        assert_eq!(fleet::applied_secret(&fleet.cluster, &id).await, Some(document("a")), "{id}");
    }
    let message = "the adapter's spec.secretStore.byProvider has no store for spec.provider \"oracle\"";
    let waiting = player.until(&unserved, |cluster| condition(cluster, "Available")["message"] == message).await;
    assert_eq!(condition(&waiting, "Available")["reason"], "PreconditionsNotMet");

    // One check reads all stores.
    super::bao(&["kv", "metadata", "delete", "-mount=secret", "pull-secrets/hyperfleet-cls-of-onprem-pull-secret"])
        .await;
    for path in ["/secrets", "/deletedsecrets"] {
        fleet.vault.delete(&format!("{path}/hyperfleet-cls-of-azure-pull-secret")).await;
    }
    for (id, stored) in [("cls-of-onprem", [true, false, false]), ("cls-of-azure", [false, true, false])] {
        // The second one may be repaired before it is looked at. The number of the attempt stays.
        player.until(id, |cluster| is_available(cluster, 1) && attempt(cluster) > Some(1)).await;
        assert_eq!(fleet.is_stored(id).await, stored, "{id}");
    }

    let id = "cls-of-onprem";
    player.patch(id, spec_of("azure", &document("b"))).await;
    player.make_ready(&fleet.cluster, id, 2).await;
    player.until(id, |cluster| is_available(cluster, 2) && is_in(cluster, "azureSecret")).await;
    assert_eq!(fleet.is_stored(id).await, [false, true, false]);
    assert_eq!(fleet::applied_secret(&fleet.cluster, id).await, Some(document("b")));

    for id in ["cls-of-onprem", "cls-of-azure", "cls-of-gcp", "cls-of-oracle"] {
        let terminating = player.delete(id).await;
        player.finalize(id, terminating.generation).await;
        player.until_gone(id).await;
        assert_eq!(fleet.is_stored(id).await, [false; 3], "{id}");
    }
}
