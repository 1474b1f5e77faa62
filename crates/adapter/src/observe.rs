//! Reads the state of one resource's runs from Kubernetes.

use std::collections::BTreeMap;
use std::sync::Arc;

use docker_config::Limits as DocumentLimits;
use fleet_model::{Owner, names};
use hyperfleet_client::{Generation, Report, Resource, View, WithPullSecret};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kubernetes::job::JobEnd;
use kubernetes::{Cluster, ErrorKind, Form, JobCache, KubernetesError, ObservedJob, ObservedSecret, SecretKey};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use serde_json::Value;

use crate::config::{Checked, Input};
use crate::decide::{Facts, InputState, OutputState, PullSecretSource, Purpose, Run, StoredDrift};
use crate::manifest;
use crate::outcome::{Costs, Outcome};

/// The observed state of a resource.
#[derive(Debug)]
pub struct Observed {
    /// The resource; its pull secret is a redacted placeholder.
    pub resource: Resource,
    /// The resource as preconditions see it.
    pub view: View,
    last_report: Option<Report>,
    jobs: Vec<(ObservedJob, Option<Outcome>)>,
    source: PullSecretSource,
    output: OutputState,
    /// A difference in the secret store that a check has found.
    pub stored: Option<StoredDrift>,
    input: Option<InputState>,
    /// The pull secret, if it is available.
    pub content: Option<SecretSlice<u8>>,
}

/// The Kubernetes API server, and the cache of the watch of its Jobs.
#[derive(Clone, Copy, Debug)]
pub struct JobSource<'a> {
    /// The API server.
    pub cluster: &'a Cluster,
    /// The adapter's Jobs, grouped by the id of their resource. It may lag behind the API server.
    pub cache: &'a JobCache,
}

impl JobSource<'_> {
    /// Returns the adapter's Jobs for a resource.
    ///
    /// The Job of the current generation is read from the API server: a report must not be older than its observation time,
    /// and another replica may have created the Job just now. Jobs of other generations come from the cache. A clean-up lists
    /// all Jobs, as it must not overlook one that is running.
    async fn find(&self, config: &Checked, resource: &Resource) -> Result<Vec<ObservedJob>, KubernetesError> {
        let id = resource.id.as_str();
        if resource.is_deleting() || !self.cache.has_synced() {
            return self.cluster.jobs(&config.namespace, &manifest::selector(config, id)).await;
        }
        let name = names::run_name(&config.adapter, id, resource.generation);
        let current = self.cluster.find_job(&config.namespace, &name).await?;
        let current = current.filter(|job| is_of_resource(config, id, &job.labels));
        let cached = self.cache.group(id).into_iter().filter(|job| job.name != name).map(Arc::unwrap_or_clone);
        Ok(cached.chain(current).collect())
    }
}

/// Observes everything except the resource itself, which was fetched from the API.
pub async fn observe(
    config: &Checked,
    source: JobSource<'_>,
    last_report: Option<Report>,
    fetched: WithPullSecret,
) -> Result<Observed, KubernetesError> {
    let cluster = source.cluster;
    let WithPullSecret { resource, pull_secret } = fetched;
    let view = View::of(&resource);
    let jobs = jobs(config, source, &resource).await?;
    let inline = pull_secret.map(|text: SecretString| SecretSlice::from(text.expose_secret().as_bytes().to_vec()));
    let mut observed = Observed {
        source: PullSecretSource::Inline,
        output: OutputState::NotChecked("no run has succeeded yet"),
        stored: None,
        input: None,
        content: inline,
        resource,
        view,
        last_report,
        jobs,
    };
    if let Some(input) = &config.input {
        if !observed.resource.is_deleting() {
            (observed.source, observed.content) = observed.source(cluster, input).await?;
        }
        observed.observe_input(config, cluster, input).await?;
    }
    if observed.has_succeeded() {
        observed.output = observed.output(config, cluster).await?;
    }
    Ok(observed)
}

/// Returns the adapter's Jobs for a resource, and the outcomes of those that have ended or have failed Pods.
async fn jobs(
    config: &Checked,
    source: JobSource<'_>,
    resource: &Resource,
) -> Result<Vec<(ObservedJob, Option<Outcome>)>, KubernetesError> {
    let cluster = source.cluster;
    let mut jobs = Vec::new();
    for job in source.find(config, resource).await? {
        let has_ended_pods = job.end.is_some() || job.failed > 0;
        let outcome = if has_ended_pods { outcome(config, cluster, &job).await? } else { None };
        jobs.push((job, outcome));
    }
    Ok(jobs)
}

/// Returns the termination message of a Job: that of the Pod that succeeded if it is complete, else that of the last one.
async fn outcome(config: &Checked, cluster: &Cluster, job: &ObservedJob) -> Result<Option<Outcome>, KubernetesError> {
    let ended = cluster.terminations(&config.namespace, &job.name, manifest::container_name(config)).await?;
    let is_complete = job.end == Some(JobEnd::Complete);
    let of_success = ended.iter().find(|pod| pod.exit_code == 0).filter(|_| is_complete);
    let relevant = of_success.or_else(|| ended.first().filter(|_| !is_complete));
    let pods = || ended.iter().map(|pod| Outcome::of(pod.exit_code, &pod.message));
    let spent = pods().map(|pod| pod.spent).sum();
    let mirror_spent = pods().map(|pod| pod.mirror_spent).sum();
    let costs = pods().fold(Costs::default(), |sum, pod| sum.and(pod.costs));
    Ok(relevant.map(|pod| Outcome { spent, mirror_spent, costs, ..Outcome::of(pod.exit_code, &pod.message) }))
}

// === impl Observed ===

impl Observed {
    /// Returns the facts for a decision at this time.
    pub fn facts(&self, now: Timestamp) -> Facts<'_> {
        Facts {
            resource: &self.resource,
            view: &self.view,
            last_report: self.last_report.as_ref(),
            runs: self.jobs.iter().map(|(job, outcome)| run(&self.resource, job, outcome.clone())).collect(),
            source: self.source.clone(),
            output: self.output.clone(),
            stored: self.stored.clone(),
            input: self.input.clone(),
            now,
        }
    }

    /// Returns the observed Jobs.
    pub fn jobs(&self) -> impl Iterator<Item = &ObservedJob> {
        self.jobs.iter().map(|(job, _)| job)
    }

    /// Returns the outcome of the Job with this uid.
    pub fn outcome(&self, uid: &str) -> Option<&Outcome> {
        self.jobs.iter().find(|(job, _)| job.uid == uid).and_then(|(_, outcome)| outcome.as_ref())
    }

    /// Returns the Jobs whose Pods have ended, with their outcomes.
    pub fn outcomes(&self) -> impl Iterator<Item = (&ObservedJob, &Outcome)> {
        self.jobs.iter().filter_map(|(job, outcome)| Some((job, outcome.as_ref()?)))
    }

    /// Returns true if a run for this generation has succeeded.
    fn has_succeeded(&self) -> bool {
        let facts = self.facts(Timestamp::UNIX_EPOCH);
        let run = facts.run(Purpose::Apply);
        let is_complete = run.is_some_and(|run| run.job.end == Some(JobEnd::Complete) && !run.job.is_terminating);
        !self.resource.is_deleting() && (is_complete || (run.is_none() && facts.last_success().is_some()))
    }

    /// Reads the pull secret: from the resource, or from the Secret that it refers to.
    async fn source(
        &mut self,
        cluster: &Cluster,
        input: &Input,
    ) -> Result<(PullSecretSource, Option<SecretSlice<u8>>), KubernetesError> {
        if let Some(content) = self.content.take() {
            return Ok((PullSecretSource::Inline, Some(content)));
        }
        let missing = |why: String| Ok((PullSecretSource::Missing(why), None));
        let spec = &self.resource.spec;
        let Some(reference) = spec.pointer("/pullSecret/secretRef").filter(|reference| !reference.is_null()) else {
            let is_set = spec.pointer("/pullSecret/data").is_some_and(|data| !data.is_null());
            let hint = "the API does not return the pull secret to this adapter: grant its identity `reads_pull_secrets` there";
            return missing(if is_set { hint } else { "waiting for a pull secret" }.to_owned());
        };
        let (secret, key) = match referenced(input, reference) {
            Ok(referenced) => referenced,
            Err(why) => return missing(why),
        };
        match cluster.find_secret_of(&secret, &Form::Opaque(key.clone())).await {
            Ok(Some(found)) => {
                if let Some(why) = refusal(&found, &self.resource.id) {
                    return missing(format!("waiting for {secret}: {why}"));
                }
                let ObservedSecret { uid, resource_version, content, .. } = found;
                if let Some(content) = content {
                    return Ok((PullSecretSource::Revision(format!("{uid}/{resource_version}")), Some(content)));
                }
                let keys = keys(cluster, &secret).await?;
                missing(format!("waiting for {secret}: it has no key `{key}`, {keys}"))
            }
            Ok(None) => missing(format!("waiting for {secret}: it does not exist")),
            Err(error) if error.kind == ErrorKind::Forbidden => {
                missing(format!("waiting for {secret}: this adapter may not read it (Role, RoleBinding)"))
            }
            Err(error) => Err(error),
        }
    }

    async fn observe_input(
        &mut self,
        config: &Checked,
        cluster: &Cluster,
        input: &Input,
    ) -> Result<(), KubernetesError> {
        // Without Jobs there is no input, or the next run overwrites it.
        if self.jobs.is_empty() && !self.resource.is_deleting() {
            return Ok(());
        }
        let key = input_key(config, &self.resource.id);
        let found = cluster.find_secret_of(&key, &Form::Opaque(input.key.clone())).await?;
        let managed = found.filter(|found| is_managed(config, &self.resource.id, found));
        self.input = managed.map(|found| InputState {
            uid: found.uid,
            resource_version: found.resource_version,
            owner: found.owners.into_iter().next(),
        });
        Ok(())
    }

    /// The namespace and name of the Secret that runs apply; `None` while they are not known.
    pub(crate) fn output_key(&self, config: &Checked) -> Option<SecretKey> {
        let output = config.output.as_ref()?;
        let facts = self.facts(Timestamp::UNIX_EPOCH);
        let placeholders = facts.placeholders(config);
        let namespace = output.namespace.resolve(&self.view, placeholders)?;
        Some(SecretKey { namespace, name: output.name.resolve(&self.view, placeholders)? })
    }

    /// Compares the Secret that the last run has applied with the desired one.
    async fn output(&self, config: &Checked, cluster: &Cluster) -> Result<OutputState, KubernetesError> {
        if config.output.is_none() {
            return Ok(OutputState::NotChecked("runs apply no Secret"));
        }
        let Some(key) = self.output_key(config) else {
            return Ok(OutputState::NotChecked("its namespace or name is not known"));
        };
        let found = match cluster.find_secret(&key).await {
            Ok(found) => found,
            Err(error) if error.kind == ErrorKind::Forbidden => {
                return Ok(OutputState::NotChecked("this adapter may not read it"));
            }
            Err(error) => return Err(error),
        };
        let Some(found) = found else { return Ok(OutputState::Missing(key.to_string())) };
        let owner = Owner::of(&found.labels);
        if self.resource.id.parse().is_ok_and(|id| !owner.is(&id)) {
            return Ok(OutputState::Unmanaged(format!("{key} is unmanaged: it has {owner}; it is not changed")));
        }
        let written_for = found.annotations.get(names::ANNOTATION_KUBERNETES_SECRET_INCARNATION);
        if written_for.zip(manifest::incarnation(&self.resource)).is_some_and(|(other, own)| *other != own) {
            return Ok(OutputState::Unmanaged(format!(
                "{key} belongs to an earlier cluster with this id; it is not changed"
            )));
        }
        let written = found.annotations.get(names::ANNOTATION_KUBERNETES_SECRET_GENERATION);
        let is_newer = written
            .and_then(|text| text.parse().ok())
            .is_some_and(|written: Generation| written > self.resource.generation);
        let is_same = match (&self.content, &found.content) {
            (Some(desired), Some(observed)) => is_equivalent(desired.expose_secret(), observed.expose_secret()),
            (Some(_), None) => false,
            (None, _) => true,
        };
        Ok(if is_newer || is_same { OutputState::InSync } else { OutputState::Changed(key.to_string()) })
    }
}

/// Returns the Secret and the key that a reference names, or why it cannot be used.
fn referenced(input: &Input, reference: &Value) -> Result<(SecretKey, String), String> {
    let text = |member: &str| reference.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    if namespace.is_empty() || name.is_empty() {
        return Err("waiting for spec.pullSecret.secretRef: it must have a namespace and a name".to_owned());
    }
    if !input.secret_namespaces.contains(&namespace) {
        return Err(format!(
            "waiting for spec.pullSecret.secretRef: namespace {namespace} is not in the adapter's \
             `spec.input.secretNamespaces`"
        ));
    }
    let key = Some(text("key")).filter(|key| !key.is_empty());
    let key = key.unwrap_or_else(|| kubernetes::secret::DOCKER_CONFIG_JSON_KEY.to_owned());
    Ok((SecretKey { namespace, name }, key))
}

/// Returns which keys a Secret has, in words. Their contents are dropped unread.
async fn keys(cluster: &Cluster, key: &SecretKey) -> Result<String, KubernetesError> {
    let found: Option<Secret> = cluster.find(&key.namespace, &key.name).await?;
    let keys = found.and_then(|secret| secret.data).unwrap_or_default().into_keys();
    let keys: Vec<String> = keys.map(|key| format!("`{key}`")).collect();
    Ok(if keys.is_empty() { "it has none".to_owned() } else { format!("only {}", keys.join(", ")) })
}

/// Returns why a referenced Secret must not be used for the resource; `None` if it may be.
///
/// The Secret itself consents, as a spec could otherwise name any Secret that this adapter can read.
fn refusal(secret: &ObservedSecret, id: &str) -> Option<String> {
    if secret.labels.contains_key(names::LABEL_RUN_ADAPTER) {
        return Some("it is the input of an adapter's own run".to_owned());
    }
    let allowed = secret.annotations.get(names::ANNOTATION_CONSENT).map(String::as_str).unwrap_or_default();
    let is_allowed = allowed.split(',').map(str::trim).any(|allowed| allowed == "*" || allowed == id);
    (!is_allowed).then(|| {
        format!("it does not allow this cluster: its owner must annotate it with {}={id}", names::ANNOTATION_CONSENT)
    })
}

/// Returns the namespace and name of the input of a resource's runs.
pub(crate) fn input_key(config: &Checked, id: &str) -> SecretKey {
    SecretKey { namespace: config.namespace.clone(), name: names::input_name(&config.adapter, id) }
}

/// Returns true if this adapter has created the Secret for this resource.
pub(crate) fn is_managed(config: &Checked, id: &str, secret: &ObservedSecret) -> bool {
    is_of_resource(config, id, &secret.labels)
}

/// Returns true if these are the labels of an object of the resource's runs.
fn is_of_resource(config: &Checked, id: &str, labels: &BTreeMap<String, String>) -> bool {
    let is = |name: &str, value: &str| labels.get(name).is_some_and(|label| label == value);
    is(names::LABEL_RUN_ADAPTER, &config.adapter) && is(names::LABEL_RUN_RESOURCE, id)
}

fn is_equivalent(one: &[u8], other: &[u8]) -> bool {
    let digest =
        |bytes: &[u8]| docker_config::parse(bytes, &DocumentLimits::default()).map(|document| document.digest());
    one == other || matches!((digest(one), digest(other)), (Ok(one), Ok(other)) if one == other)
}

fn run<'a>(resource: &Resource, job: &'a ObservedJob, outcome: Option<Outcome>) -> Run<'a> {
    let label = |name: &str| job.labels.get(name).map(String::as_str);
    let annotation = |name: &str| job.annotations.get(name);
    Run {
        job,
        // A run for a former resource of this id is older than every run for this one.
        generation: label(names::LABEL_RUN_GENERATION)
            .filter(|_| !manifest::is_of_former(job, resource))
            .and_then(|text| text.parse().ok())
            .unwrap_or_default(),
        purpose: match label(names::LABEL_RUN_PURPOSE) {
            Some(names::PURPOSE_DELETE) => Purpose::Delete,
            Some(names::PURPOSE_CLEAN_UP) => Purpose::CleanUp,
            _ => Purpose::Apply,
        },
        attempt: annotation(names::ANNOTATION_ATTEMPT).and_then(|text| text.parse().ok()).unwrap_or(1),
        source: annotation(names::ANNOTATION_SOURCE).cloned(),
        copy: annotation(names::ANNOTATION_COPY).and_then(|text| serde_json::from_str(text).ok()),
        outcome,
    }
}
