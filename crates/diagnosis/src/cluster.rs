//! Observation of one cluster: API, reports, preconditions, and the Job, its pods and the Secret in Kubernetes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use adapter::decide::unmet;
use adapter::store_check::record::Record;
use adapter::{Checked, Config, manifest};
use daemon::retry::Budget;
use fleet_model::copy::StoredCopy;
use fleet_model::names;
use hyperfleet_client::{Calls, Client, Error, Generation, ListQuery, MAX_PAGE_SIZE, Report, View};
use jiff::{SignedDuration, Timestamp};
use kubernetes::{Cluster, SecretKey};

use crate::facts::{Facts, Heartbeat, Observation, Observed};
use crate::pods;

/// Maximum time of a call to Kubernetes.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The name of the Lease of the adapter's replicas in charts/pull-secret.
pub(crate) const LEASE: &str = "pullsecret-adapter";

/// Access to a Kubernetes cluster.
#[derive(Clone, Debug, Default)]
pub struct KubernetesAccess {
    /// The kubeconfig.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, if not its current one.
    pub context: Option<String>,
}

/// A cluster to observe.
#[derive(Clone, Debug)]
pub struct Target {
    /// The cluster's id.
    pub id: String,
    /// The namespace of Jobs, where the report does not name it.
    pub job_namespace: String,
    /// The Kubernetes cluster that Jobs run in; without a kubeconfig Kubernetes is left out.
    pub kubernetes: KubernetesAccess,
    /// The time that the adapter has to report a change before it counts as stalled.
    pub stale_after: SignedDuration,
}

// === impl KubernetesAccess ===

impl KubernetesAccess {
    /// Settings of a client, each of whose calls takes at most `call_timeout`.
    pub fn settings(&self, call_timeout: Duration) -> kubernetes::Settings {
        let Self { kubeconfig, context } = self.clone();
        let context_setting = context.is_some().then_some("kubernetesContext of the context");
        kubernetes::Settings { kubeconfig, context, call_timeout, context_setting, ..kubernetes::Settings::default() }
    }
}

/// Reads everything that is known about a cluster. Fails only if the API cannot be read.
pub async fn observe(client: &Client, target: &Target, budget: &Budget) -> Result<Facts, Error> {
    let id = target.id.as_str();
    let calls = client.within(budget);
    let cluster = match calls.get("clusters", id).await? {
        Some(cluster) => Some(calls.with_adapters("clusters", cluster).await?),
        None => None,
    };
    let (now, stale_after) = (Timestamp::now(), target.stale_after);
    let mut facts = Facts { id: id.to_owned(), cluster, now, stale_after, ..Facts::default() };
    let Some(cluster) = &facts.cluster else { return Ok(facts) };
    let mut dependencies = Vec::new();
    if let Some(config) = built_in_adapter() {
        facts.preconditions = preconditions(&config);
        facts.unmet = unmet(&config, &View::of(cluster)).into_iter().map(|unmet| unmet.line).collect();
        dependencies = config.dependencies;
    }
    let reports = calls.statuses("clusters", id).await?;
    facts.heartbeats = heartbeats(&calls, &reports, &dependencies).await;
    facts.report = reports.into_iter().find(|report| report.adapter == names::ADAPTER);
    let current = facts.report.as_ref().filter(|report| report.observed_generation >= cluster.generation);
    let is_foreign = |line: &String| current.is_some_and(|report| is_of_another_store(line, report));
    let foreign: Vec<String> = facts.unmet.extract_if(.., |line| is_foreign(line)).collect();
    facts.preconditions.retain(|expression| !foreign.iter().any(|line| line.starts_with(&format!("`{expression}` "))));
    // HyperFleet's own server keeps no history, so its absence is not an error.
    facts.history = calls.history("clusters", id).await.unwrap_or_default();
    facts.history.retain(|transition| transition.adapter == names::ADAPTER);
    if target.kubernetes.kubeconfig.is_some() {
        observe_kubernetes(target, &mut facts).await;
    }
    Ok(facts)
}

/// Returns true for a built-in precondition about the spec that the report about the same spec does not name: the fleet's adapter stores
/// this cluster elsewhere than at Google, and has other preconditions.
pub(crate) fn is_of_another_store(unmet: &str, report: &Report) -> bool {
    let available = report.condition(names::condition::AVAILABLE);
    let message = available.and_then(|available| available.message.as_deref()).unwrap_or_default();
    unmet.starts_with("`spec.") && !message.contains(unmet)
}

/// Returns when each adapter has reported, about this cluster and about any of the first page of the API's list.
async fn heartbeats(calls: &Calls<'_>, reports: &[Report], dependencies: &[String]) -> Vec<Heartbeat> {
    let fields = ["id", "status"].map(str::to_owned).to_vec();
    let query = ListQuery { size: Some(MAX_PAGE_SIZE), fields, ..ListQuery::default() };
    // Who may read one cluster need not be allowed to list them.
    let listed = calls.list("clusters", &query).await.map(|page| page.items).unwrap_or_default();
    let newest = |adapter: &str| {
        let reports = listed.iter().flat_map(|cluster| cluster.status.reports());
        reports.filter(|(name, _)| *name == adapter).filter_map(|(_, report)| report.time()).max()
    };
    let silent = |adapter: &str| Heartbeat {
        adapter: adapter.to_owned(),
        available: None,
        reason: None,
        message: None,
        changed: None,
        reported: None,
        reported_any: None,
    };
    let mut heartbeats: Vec<Heartbeat> = reports.iter().map(Heartbeat::of).collect();
    // What matters for this cluster and has not reported about it is there too.
    for adapter in dependencies.iter().map(String::as_str).chain([names::ADAPTER]) {
        if heartbeats.iter().all(|heartbeat| heartbeat.adapter != adapter) {
            heartbeats.push(silent(adapter));
        }
    }
    for heartbeat in &mut heartbeats {
        heartbeat.reported_any = newest(&heartbeat.adapter).max(heartbeat.reported);
    }
    heartbeats
}

/// Observes Job, pods, Secret, namespace and Lease. A failure becomes part of the facts.
async fn observe_kubernetes(target: &Target, facts: &mut Facts) {
    let cluster = match Cluster::connect(&target.kubernetes.settings(CALL_TIMEOUT)).await {
        Ok(cluster) => cluster,
        Err(error) => {
            facts.observed = Observed { job: Observation::Failed(error.to_string()), ..Observed::default() };
            return;
        }
    };
    let generation = facts.cluster.as_ref().map_or(Generation::NONE, |cluster| cluster.generation);
    let run = facts.report.as_ref().and_then(|report| report.metadata.as_ref());
    let namespace = run.and_then(|run| run.job_namespace.clone()).unwrap_or_else(|| target.job_namespace.clone());
    let reported_name = run.and_then(|run| run.job_name.clone());
    let name = reported_name.unwrap_or_else(|| names::run_name(names::ADAPTER, &facts.id, generation));
    let secret = secret_key(facts);
    facts.store_check = Record::read(&cluster, &namespace, names::ADAPTER).await.into();
    let pods = cluster.pod_summaries(&namespace, &name).await;
    let newest = pods.as_ref().ok().and_then(|pods| pods.first());
    let container = built_in_adapter().map(|config| manifest::container_name(&config).to_owned());
    let said = pods::observe(&cluster, &namespace, &name, newest, container).await;
    facts.observed = Observed {
        has_namespace: cluster.namespace_exists(&namespace).await.into(),
        lease: cluster.lease_summary(&namespace, LEASE).await.into(),
        namespace: namespace.clone(),
        job: cluster.job_summary(&namespace, &name).await.into(),
        pods: pods.into(),
        last_line: said.last_line,
        warnings: said.warnings,
        secret: match &secret {
            Some(key) => cluster.secret_metadata(key).await.into(),
            None => Observation::NotObserved,
        },
        has_secret_namespace: match &secret {
            Some(key) => cluster.namespace_exists(&key.namespace).await.into(),
            None => Observation::NotObserved,
        },
        job_key: Some((namespace, name)),
        secret_key: secret,
    };
}

/// Namespace and name of the Kubernetes Secret: where the adapter reports it, or else where it records that the Job will apply it.
fn secret_key(facts: &Facts) -> Option<SecretKey> {
    let data = &facts.report.as_ref()?.data;
    let text = |name: &str| data.get(name)?.as_str().map(str::to_owned);
    if let (Some(namespace), Some(name)) = (text("namespace"), text("k8sSecretName")) {
        return Some(SecretKey { namespace, name });
    }
    facts.copies().into_iter().find_map(|copy| match copy {
        StoredCopy::KubernetesSecret { namespace, name } => Some(SecretKey { namespace, name }),
        _ => None,
    })
}

/// The adapter's built-in configuration; preconditions that a fleet's own configuration adds are not known here.
pub(crate) fn built_in_adapter() -> Option<Checked> {
    let environment = BTreeMap::from([("HYPERFLEET_API_BASE_URL", "http://localhost")]);
    Config::read(None, BTreeMap::new(), &environment).and_then(Config::check).ok()
}

/// The preconditions of the adapter, as expressions.
fn preconditions(config: &Checked) -> Vec<String> {
    let expressions = config.preconditions.iter().map(|precondition| precondition.source().to_owned());
    let available = |name: &String| format!("status.adapters[{name}].available == \"True\"");
    expressions.chain(config.dependencies.iter().map(available)).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const PROVIDER: &str = "`spec.provider == \"gcp\"` is false: left side is \"aws\"";

    #[rstest]
    #[case::another_store(PROVIDER, "PermissionDenied: needs secretsmanager:CreateSecret", true)]
    #[case::the_adapters_own(PROVIDER, &format!("waiting for dns: not reported yet; {PROVIDER}"), false)]
    #[case::another_adapter("waiting for dns: not reported yet", "a Job was created", false)]
    fn what_the_adapter_does_not_name_about_the_spec_is_of_another_store(
        #[case] unmet: &str,
        #[case] message: &str,
        #[case] expected: bool,
    ) {
        let conditions = json!([{"type": "Available", "status": "False", "reason": "r", "message": message}]);
        let report = json!({"adapter": "pullsecret", "observed_generation": 1, "data": {}, "conditions": conditions});
        assert_eq!(is_of_another_store(unmet, &serde_json::from_value(report).unwrap()), expected);
    }

    #[test]
    fn the_built_in_adapter_has_the_preconditions_of_the_specification() {
        let expressions = preconditions(&built_in_adapter().unwrap());
        assert_eq!(expressions.len(), 6);
        assert!(expressions.contains(&r#"status.adapters[dns].available == "True""#.to_owned()), "{expressions:?}");
    }
}
