//! Observation of the parts that the service depends on. Nothing is changed: what can only be found out by a write is requested of
//! a cluster that does not exist.

use std::path::Path;
use std::time::Duration;

use adapter::rights::{self, Right};
use daemon::retry::Budget;
use fleet_model::names;
use futures_util::future::join_all;
use hyperfleet_client::{Client, Error, Generation, ListQuery, NewCondition, NewReport, Status};
use jiff::Timestamp;
use kubernetes::{Cluster, KubernetesError, Operation, PodSummary, SecretKey};
use serde_json::Map;
use tokio_util::sync::CancellationToken;

use super::facts::{ApiFacts, KubernetesFacts, Refusal, RightFacts};
use crate::cluster::LEASE;

/// Maximum time of a check.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

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

/// Observes the Kubernetes cluster as the adapter uses it.
pub async fn kubernetes(kubeconfig: &Path, namespace: &str) -> KubernetesFacts {
    let settings = kubernetes::Settings {
        kubeconfig: Some(kubeconfig.to_path_buf()),
        call_timeout: CHECK_TIMEOUT,
        ..kubernetes::Settings::default()
    };
    let cluster = match Cluster::connect(&settings).await {
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
        let operation = Operation { verb, group, resource, name: name.as_deref(), namespace };
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
