//! Simulates a scenario: creates its clusters, reports as the other adapters, and plants faults in both stores.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fleet_model::names;
use hyperfleet_client::{Generation, Report, Status};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::DeleteParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kubernetes::{AppliedSecret, Form, SecretKey};
use secret_store::{
    Endpoint, GoogleSecretManager, NewSecret, NewVersion, Replication, SecretStore as _, VersionNumber,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::fleet::Clients;
use crate::peer_state::{AFTER, BEFORE, PeerState, namespace};
use crate::peers::Peers;
use crate::scenario::clusters::{self, Planned, Plant, REFERENCED};

/// `demo-user` with an invented password.
const DOCUMENT: &str = r#"{"auths":{"quay.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="}}}"#;
/// A placeholder, as documentation shows it.
const PLACEHOLDER: &str = r#"{"auths":{"quay.io":{"auth":"base64-encoded-credentials"}}}"#;

const FIRST: Generation = Generation::FIRST;
/// Maximum time until a healthy cluster is available, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(5);
/// Interval between two observations.
const INTERVAL: Duration = Duration::from_millis(50);
/// Interval at which the process that prunes looks for what it deletes.
const PRUNE_INTERVAL: Duration = Duration::from_millis(200);
/// One call may take so long.
const CALL: Duration = Duration::from_secs(5);

/// Creates all clusters and plants their faults; nothing is done where they exist already.
pub(crate) async fn all(clients: &Clients, secret_manager: &Endpoint) -> anyhow::Result<()> {
    let peers = Peers::new(clients);
    let clusters: Vec<Planned> = clusters::all().collect();
    if let Some(first) = clusters.first()
        && peers.calls().get("clusters", &first.id).await?.is_some()
    {
        return Ok(());
    }
    clients.cluster.ensure_namespace(REFERENCED).await?;
    for cluster in &clusters {
        let id = cluster.id.as_str();
        clients.cluster.ensure_namespace(&namespace(id)).await?;
        plant_before(cluster, clients, secret_manager).await.with_context(|| format!("the fault of {id}"))?;
        peers.create(id, &cluster.name, &spec(cluster)).await?;
        for (adapter, state) in cluster.before() {
            peers.report(adapter, id, FIRST, state).await?;
        }
    }
    for cluster in &clusters {
        plant_after(cluster, &peers).await.with_context(|| format!("the fault of {}", cluster.id))?;
    }
    Ok(())
}

/// A cluster as the specification has it.
fn spec(cluster: &Planned) -> Value {
    let pull_secret = match cluster.plant {
        Plant::InvalidPullSecret | Plant::NoReferencedSecret | Plant::NoReferencedKey | Plant::NoConsent => {
            json!({ "secretRef": { "namespace": REFERENCED, "name": cluster.name, "key": "pull-secret.json" } })
        }
        _ => json!({ "data": DOCUMENT }),
    };
    let gcp = json!({ "projectId": cluster.project, "region": cluster.region });
    json!({ "provider": "gcp", "gcp": gcp, "pullSecret": pull_secret })
}

/// Plants what must be there before the first Job.
async fn plant_before(cluster: &Planned, clients: &Clients, secret_manager: &Endpoint) -> anyhow::Result<()> {
    let id = &cluster.id;
    let referenced = async |key: &str, content: &str, allows: bool| {
        let allowed = allows.then(|| (names::ANNOTATION_CONSENT.to_owned(), id.clone()));
        let secret = secret(Form::Opaque(key.to_owned()), allowed.into_iter().collect(), content);
        let name = SecretKey { namespace: REFERENCED.to_owned(), name: cluster.name.clone() };
        clients.cluster.create_secret(&name, &secret, false).await
    };
    match cluster.plant {
        Plant::UnmanagedStored => unmanaged_stored(cluster, secret_manager).await?,
        Plant::UnmanagedSecret => {
            let secret = secret(Form::DockerConfigJson, BTreeMap::new(), DOCUMENT);
            clients.cluster.create_secret(&secret_key(id)?, &secret, false).await?;
        }
        Plant::InvalidPullSecret => referenced("pull-secret.json", PLACEHOLDER, true).await?,
        Plant::NoReferencedKey => referenced("pullsecret.json", DOCUMENT, true).await?,
        Plant::NoConsent => referenced("pull-secret.json", DOCUMENT, false).await?,
        _ => {}
    }
    Ok(())
}

/// Plants what happens to a cluster that was available.
async fn plant_after(cluster: &Planned, peers: &Peers<'_>) -> anyhow::Result<()> {
    let id = cluster.id.as_str();
    match cluster.plant {
        Plant::Healthy => peers.report(AFTER, id, FIRST, PeerState::Done).await?,
        Plant::NamespaceDeleted => {
            until_available(peers, id).await?;
            delete_namespace(peers.clients, &namespace(id)).await?;
            peers.publish(id, FIRST).await?;
        }
        Plant::DeletionDenied => {
            until_available(peers, id).await?;
            let deleted = peers.calls().delete("clusters", id).await?.context("it does not exist")?;
            for adapter in BEFORE.into_iter().chain([AFTER]) {
                peers.report(adapter, id, deleted.generation, PeerState::Finalized).await?;
            }
        }
        _ => {}
    }
    Ok(())
}

async fn until_available(peers: &Peers<'_>, id: &str) -> anyhow::Result<()> {
    let is_available = |report: &Report| {
        report.adapter == names::ADAPTER
            && report.condition(names::condition::AVAILABLE).is_some_and(|found| found.status == Status::True)
    };
    let deadline = Instant::now() + TIMEOUT;
    while !peers.calls().statuses("clusters", id).await?.iter().any(is_available) {
        if Instant::now() > deadline {
            bail!("its pull secret is not available after {} s", TIMEOUT.as_secs());
        }
        sleep(INTERVAL).await;
    }
    Ok(())
}

/// Stores a secret without labels under the cluster's name.
async fn unmanaged_stored(cluster: &Planned, secret_manager: &Endpoint) -> anyhow::Result<()> {
    let settings = secret_store::Settings {
        project: cluster.project.parse()?,
        location: None,
        endpoint: secret_manager.clone(),
        call_timeout: CALL,
        calls: None,
    };
    let store = GoogleSecretManager::connect(&settings).await?;
    let replication = Replication::Automatic { kms_key: None };
    let new = NewSecret { labels: BTreeMap::new(), annotations: BTreeMap::new(), replication };
    let secret = names::secret_name(&cluster.id.parse()?).parse()?;
    store.create(&secret, &new).await?;
    let content = DOCUMENT.as_bytes().to_vec().into();
    store.add_version(&secret, &NewVersion::without_record(VersionNumber::FIRST, &content)).await?;
    Ok(())
}

/// A Secret that no adapter manages.
fn secret(form: Form, annotations: BTreeMap<String, String>, content: &str) -> AppliedSecret {
    let content = content.as_bytes().to_vec().into();
    AppliedSecret { labels: BTreeMap::new(), annotations, content, form, owner: None }
}

fn secret_key(id: &str) -> anyhow::Result<SecretKey> {
    Ok(SecretKey { namespace: namespace(id), name: names::kubernetes_secret_name(&id.parse()?) })
}

/// Deletes a namespace with everything in it, as a user with kubectl would.
async fn delete_namespace(clients: &Clients, name: &str) -> anyhow::Result<()> {
    let file = Kubeconfig::read_from(&clients.kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let namespaces: kube::Api<Namespace> = kube::Api::all(kube::Client::try_from(config)?);
    namespaces.delete(name, &DeleteParams::default()).await?;
    while clients.cluster.namespace_exists(name).await? == Some(true) {
        sleep(INTERVAL).await;
    }
    Ok(())
}

/// Deletes the Secrets of clusters for which another process does so, whenever they exist; does not end.
pub(crate) async fn prune(clients: &Clients) -> Infallible {
    let peers = Peers::new(clients);
    let is_pruned = |cluster: &Planned| matches!(cluster.plant, Plant::SecretPruned);
    let pruned: Vec<String> = clusters::all().filter(is_pruned).map(|cluster| cluster.id).collect();
    loop {
        for id in &pruned {
            // A Secret that changes meanwhile is deleted the next time.
            if let Err(error) = prune_one(&peers, id).await {
                tracing::debug!(operation = "prune", cluster_id = id, %error, "cannot delete the Secret; trying again");
            }
        }
        sleep(PRUNE_INTERVAL).await;
    }
}

async fn prune_one(peers: &Peers<'_>, id: &str) -> anyhow::Result<()> {
    let key = secret_key(id)?;
    let Some(seen) = peers.clients.cluster.find_secret(&key).await? else { return Ok(()) };
    if peers.clients.cluster.delete_secret(&key, &seen, false).await? {
        peers.publish(id, FIRST).await?;
    }
    Ok(())
}
