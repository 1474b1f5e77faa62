//! Observation of the parts that the service depends on. Nothing is changed: what can only be found out by a write is requested of
//! a cluster that does not exist.

mod credentials;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use adapter::rights::{self, Right};
use daemon::retry::Budget;
use daemon::serve::certificate_expiry;
use fleet_model::names;
use futures_util::future::join_all;
use hyperfleet_client::{Client, Error, Generation, ListQuery, NewCondition, NewReport, Status};
use jiff::Timestamp;
use kubernetes::{Cluster, KubernetesError, Operation, PodSummary, SecretKey};
use message_broker::{Broker, Subscription};
use secret_store::{ErrorKind as StoreErrorKind, Operation as StoreOperation, SecretId, SecretStore, StoreError};
use serde_json::Map;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::decide::store::{ADAPTERS_PERMISSIONS, JOBS_PERMISSIONS};
use super::facts::{
    ApiFacts, BrokerFacts, FileFacts, KubernetesFacts, PermissionFacts, Refusal, RightFacts, StoreFacts, StorePlace,
};
use crate::cluster::{KubernetesAccess, LEASE, built_in_adapter};

pub use credentials::credentials;

/// Maximum time of a check.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// The name of a secret that need not exist.
const ANY_SECRET: &str = "doctor";

/// The conditions without which the API accepts no report.
const REQUIRED_CONDITIONS: [&str; 3] =
    [names::condition::AVAILABLE, names::condition::APPLIED, names::condition::HEALTH];

/// Observes the API as the adapter uses it.
pub async fn api(client: &Client) -> ApiFacts {
    let budget = Budget::new(CHECK_TIMEOUT, CancellationToken::new());
    let calls = client.within(&budget);
    let absent = format!("doctor-{}", Timestamp::now().as_nanosecond());
    let query = ListQuery { size: Some(1), fields: vec!["id".to_owned()], ..ListQuery::default() };
    let report = report();
    let (probe, list, read, report, identity) = tokio::join!(
        client.probe(),
        calls.list("clusters", &query),
        calls.get_with_pull_secret("clusters", &absent),
        calls.report("clusters", &absent, &report),
        client.identity(),
    );
    ApiFacts {
        address: client.address().to_owned(),
        identity: identity.map_err(|error| format!("the token file cannot be read: {error}")),
        probe: probe.map_err(|error| Refusal::from(&error)),
        list: answer(list),
        read: answer(read),
        report: answer(report),
    }
}

/// A report without content.
fn report() -> NewReport {
    let condition = |kind: &str| NewCondition {
        kind: kind.to_owned(),
        status: Status::Unknown,
        reason: None,
        message: None,
        last_transition_time: None,
    };
    NewReport {
        adapter: names::ADAPTER.to_owned(),
        observed_generation: Generation::from(1),
        conditions: REQUIRED_CONDITIONS.map(condition).to_vec(),
        data: Map::new(),
        observed_time: None,
        metadata: None,
    }
}

fn answer<T>(result: Result<T, Error>) -> Result<(), Refusal> {
    result.map(drop).map_err(|error| Refusal::from(&error))
}

/// Observes the Kubernetes cluster as the adapter uses it; without a kubeconfig as this Pod's service account.
pub async fn kubernetes(access: &KubernetesAccess, namespace: &str) -> KubernetesFacts {
    let cluster = match Cluster::connect(&access.settings(CHECK_TIMEOUT)).await {
        Ok(cluster) => cluster,
        Err(error) => return unusable(namespace, error),
    };
    let selector = format!("{}={}", names::LABEL_RUN_ADAPTER, names::ADAPTER);
    let in_namespace = rights::in_namespace(names::ADAPTER, LEASE).into_iter().map(|right| (right, true));
    let needed = in_namespace.chain(rights::to_grant_access().into_iter().map(|right| (right, false)));
    let reviewed = needed.map(|(right, is_in_namespace)| review(&cluster, right, is_in_namespace.then_some(namespace)));
    let (user, found, rights, pods) = tokio::join!(
        cluster.user(),
        cluster.namespace_summary(namespace),
        join_all(reviewed),
        cluster.pods_with(namespace, &selector),
    );
    let missing_pull_secrets = missing_pull_secrets(&cluster, namespace, pods.as_deref().unwrap_or_default()).await;
    KubernetesFacts {
        server: cluster.server().to_owned(),
        namespace: namespace.to_owned(),
        user,
        found,
        rights,
        pods,
        missing_pull_secrets,
    }
}

fn unusable(namespace: &str, error: KubernetesError) -> KubernetesFacts {
    KubernetesFacts {
        server: String::new(),
        namespace: namespace.to_owned(),
        user: Err(error.clone()),
        found: Err(error.clone()),
        rights: Vec::new(),
        pods: Err(error),
        missing_pull_secrets: Vec::new(),
    }
}

async fn review(cluster: &Cluster, right: Right, namespace: Option<&str>) -> RightFacts {
    let may = |verb: &'static str| {
        let Right { group, resource, name, .. } = &right;
        let operation = Operation { verb, group, resource, subresource: None, name: name.as_deref(), namespace };
        async move { cluster.may_do(&operation).await.map(|access| (!access.allowed).then_some(verb)) }
    };
    let answers: Result<Vec<_>, _> = join_all(right.verbs.iter().map(|verb| may(verb))).await.into_iter().collect();
    let missing = answers.map(|missing| missing.into_iter().flatten().collect());
    RightFacts { right, is_in_namespace: namespace.is_some(), missing }
}

/// The Secrets that Pods are pulled with and that do not exist. One that this identity may not read is left out.
async fn missing_pull_secrets(cluster: &Cluster, namespace: &str, pods: &[PodSummary]) -> Vec<String> {
    let mut names: Vec<&String> = pods.iter().flat_map(|pod| &pod.image_pull_secrets).collect();
    names.sort();
    names.dedup();
    let is_missing = async |name: &String| {
        let key = SecretKey { namespace: namespace.to_owned(), name: name.clone() };
        matches!(cluster.secret_metadata(&key).await, Ok(None)).then(|| name.clone())
    };
    join_all(names.into_iter().map(is_missing)).await.into_iter().flatten().collect()
}

/// Inspects the broker as the subscription uses it; an error says that its settings cannot be used.
pub async fn broker(broker: &Broker, subscription: Subscription) -> Result<BrokerFacts, String> {
    match broker.inspect(&subscription).await {
        Some(Ok(inspection)) => Ok(BrokerFacts { subscription, inspection }),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the broker is in another process".to_owned()),
    }
}

/// The id of the subscription of the built-in adapter.
pub fn subscription_id() -> Option<String> {
    built_in_adapter().map(|config| config.subscription.id.to_string())
}

/// Observes the secret store: lists secrets of this service, and requests the permissions on one of them.
pub async fn store<S: SecretStore>(store: &S, place: StorePlace) -> StoreFacts {
    let listed = timeout(CHECK_TIMEOUT, store.list(&names::STORED_SECRETS, None)).await;
    let listed = listed.unwrap_or_else(|_elapsed| {
        Err(StoreError::new(StoreOperation::List, place.to_string(), StoreErrorKind::TimedOut))
    });
    let listed_one = listed.as_ref().ok().and_then(|listed| listed.secrets.first_key_value()).map(|(id, _)| id.clone());
    // Google answers about a secret that exists only.
    let any = if matches!(place, StorePlace::Google { .. }) { None } else { ANY_SECRET.parse().ok() };
    let permissions = match listed_one.or(any) {
        Some(id) => Some(permissions(store, &id).await),
        None => None,
    };
    StoreFacts { place, listed: listed.map(|listed| listed.secrets.len()), permissions }
}

async fn permissions<S: SecretStore>(store: &S, secret: &SecretId) -> Result<Vec<PermissionFacts>, StoreError> {
    let wanted = ADAPTERS_PERMISSIONS.into_iter().chain(JOBS_PERMISSIONS).collect();
    let answer = store.permissions(secret, &wanted).await?;
    let is_held = |permission| match (answer.missing.contains(&permission), answer.unknown.contains(&permission)) {
        (true, _) => Some(false),
        (false, true) => None,
        (false, false) => Some(true),
    };
    let facts = |permission| PermissionFacts {
        permission,
        name: store.permission_name(permission),
        is_held: is_held(permission),
    };
    Ok(wanted.iter().copied().map(facts).collect())
}

/// Observes a file with a credential that a setting names.
pub fn credential_file(setting: &'static str, path: PathBuf) -> FileFacts {
    let certificate_end = readable(&path).map(|()| None).map_err(|error| error.to_string());
    FileFacts { setting, path, certificate_end }
}

/// Observes a file of certificates that a setting names.
pub fn certificate_file(setting: &'static str, path: PathBuf) -> FileFacts {
    let end = || certificate_expiry(&path).and_then(|end| Timestamp::from_second(end).ok());
    let certificate_end = readable(&path).map(|()| end()).map_err(|error| error.to_string());
    FileFacts { setting, path, certificate_end }
}

/// Reads one byte, as the file may hold a credential.
fn readable(path: &Path) -> io::Result<()> {
    match File::open(path)?.read(&mut [0])? {
        0 => Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No memory holds the file.
    #[test]
    fn of_a_credential_one_byte_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let end = || credential_file("--token-file", path.clone()).certificate_end;
        assert!(end().unwrap_err().starts_with("No such file"));
        let file = File::create(&path).unwrap();
        assert_eq!(end(), Err("the file is empty".to_owned()));
        file.set_len(1 << 42).unwrap();
        assert_eq!(end(), Ok(None));
    }
}
