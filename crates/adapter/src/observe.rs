//! Gathering the facts about one resource: from the API, from Kubernetes.

use docker_config::Limits as DocumentLimits;
use fleet_model::{Owner, names};
use hyperfleet_client::{Generation, Report, Resource, View, WithPullSecret};
use jiff::Timestamp;
use kubernetes::ObservedJob;
use kubernetes::job::JobEnd;
use kubernetes::{Cluster, Fault, Form, KubernetesError, ObservedSecret, SecretKey};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use serde_json::Value;

use crate::config::{Input, Plan as Config};
use crate::decide::{Facts, InputState, OutputState, Purpose, Run, Source};
use crate::manifest;
use crate::outcome::Outcome;

/// What was seen of a resource.
#[derive(Debug)]
pub struct Observed {
    /// The resource, its pull secret but a mark.
    pub resource: Resource,
    /// The same, as expressions see it.
    pub view: View,
    told: Option<Report>,
    jobs: Vec<(ObservedJob, Option<Outcome>)>,
    source: Source,
    output: OutputState,
    input: Option<InputState>,
    /// The pull secret.
    pub content: Option<SecretSlice<u8>>,
}

/// Looks at everything but the resource itself.
pub async fn observe(
    config: &Config,
    cluster: &Cluster,
    told: Option<Report>,
    seen: WithPullSecret,
) -> Result<Observed, KubernetesError> {
    let WithPullSecret { resource, pull_secret } = seen;
    let view = View::of(&resource);
    let jobs = jobs(config, cluster, &resource.id).await?;
    let inline = pull_secret.map(|text: SecretString| SecretSlice::from(text.expose_secret().as_bytes().to_vec()));
    let mut observed = Observed {
        source: Source::Inline,
        output: OutputState::NotLooked("nothing was left there yet"),
        input: None,
        content: inline,
        resource,
        view,
        told,
        jobs,
    };
    if let Some(input) = &config.input {
        if !observed.resource.is_deleting() {
            (observed.source, observed.content) = observed.source(config, cluster, input).await?;
        }
        observed.look_at_input(config, cluster, input).await?;
    }
    if observed.is_done() {
        observed.output = observed.output(config, cluster).await?;
    }
    Ok(observed)
}

/// The adapter's Jobs for a resource; those that are over or in trouble with what they have said.
async fn jobs(
    config: &Config,
    cluster: &Cluster,
    id: &str,
) -> Result<Vec<(ObservedJob, Option<Outcome>)>, KubernetesError> {
    let mut jobs = Vec::new();
    for job in cluster.jobs(&config.namespace, &manifest::selector(config, id)).await? {
        let has_spoken = job.end.is_some() || job.failed > 0;
        let outcome = if has_spoken { outcome(config, cluster, &job).await? } else { None };
        jobs.push((job, outcome));
    }
    Ok(jobs)
}

/// What a Job has said: of one that has completed, the Pod that succeeded; else the one that ended last.
async fn outcome(config: &Config, cluster: &Cluster, job: &ObservedJob) -> Result<Option<Outcome>, KubernetesError> {
    let said = cluster.terminations(&config.namespace, &job.name, manifest::container_name(config)).await?;
    let is_complete = job.end == Some(JobEnd::Complete);
    let of_success = said.iter().find(|said| said.exit_code == 0).filter(|_| is_complete);
    let counts = of_success.or_else(|| said.first().filter(|_| !is_complete));
    Ok(counts.map(|said| Outcome::of(said.exit_code, &said.message)))
}

// === impl Observed ===

impl Observed {
    /// What a decision looks at.
    pub fn facts(&self, now: Timestamp) -> Facts<'_> {
        Facts {
            resource: &self.resource,
            view: &self.view,
            told: self.told.as_ref(),
            runs: self.jobs.iter().map(|(job, outcome)| run(&self.resource, job, outcome.clone())).collect(),
            source: self.source.clone(),
            output: self.output.clone(),
            input: self.input.clone(),
            now,
        }
    }

    /// The Jobs that were seen.
    pub fn jobs(&self) -> impl Iterator<Item = &ObservedJob> {
        self.jobs.iter().map(|(job, _)| job)
    }

    /// What the Job of that uid has said.
    pub fn outcome(&self, uid: &str) -> Option<&Outcome> {
        self.jobs.iter().find(|(job, _)| job.uid == uid).and_then(|(_, outcome)| outcome.as_ref())
    }

    /// Whether a run for this generation has succeeded.
    fn is_done(&self) -> bool {
        let facts = self.facts(Timestamp::UNIX_EPOCH);
        let run = facts.run(Purpose::Apply);
        let has_succeeded = run.is_some_and(|run| run.job.end == Some(JobEnd::Complete) && !run.job.is_terminating);
        !self.resource.is_deleting() && (has_succeeded || (run.is_none() && facts.last_success().is_some()))
    }

    /// Where the pull secret is.
    async fn source(
        &mut self,
        config: &Config,
        cluster: &Cluster,
        input: &Input,
    ) -> Result<(Source, Option<SecretSlice<u8>>), KubernetesError> {
        if let Some(content) = self.content.take() {
            return Ok((Source::Inline, Some(content)));
        }
        let missing = |why: String| Ok((Source::Missing(why), None));
        let spec = &self.resource.spec;
        let Some(reference) = spec.pointer("/pullSecret/secretRef").filter(|reference| !reference.is_null()) else {
            let is_there = spec.pointer("/pullSecret/data").is_some_and(|data| !data.is_null());
            let hint =
                "the API does not show the pull secret to this adapter: add its identity to `pull_secret.readers`";
            return missing(if is_there { hint } else { "waiting for a pull secret" }.to_owned());
        };
        let text = |member: &str| reference.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let key = Some(text("key")).filter(|key| !key.is_empty());
        let key = key.unwrap_or_else(|| kubernetes::secret::DOCKER_CONFIG_JSON_KEY.to_owned());
        let namespace = if namespace.is_empty() { config.namespace.clone() } else { namespace };
        let is_allowed = match input.secret_namespaces.as_slice() {
            [] => namespace == config.namespace,
            allowed => allowed.contains(&namespace),
        };
        if name.is_empty() || !is_allowed {
            let why = "spec.pullSecret.secretRef must name a Secret in a namespace of `spec.input.secretNamespaces`";
            return missing(why.to_owned());
        }
        let place = SecretKey { namespace, name };
        match cluster.find_secret_of(&place, &Form::Opaque(key.clone())).await {
            Ok(Some(ObservedSecret { uid, resource_version, content: Some(content), .. })) => {
                Ok((Source::Edition(format!("{uid}/{resource_version}")), Some(content)))
            }
            Ok(Some(_)) => missing(format!("waiting for {place}: it has no key `{key}`")),
            Ok(None) => missing(format!("waiting for {place}: it is not there")),
            Err(error) if error.fault == Fault::Forbidden => {
                missing(format!("waiting for {place}: this adapter may not read it (Role, RoleBinding)"))
            }
            Err(error) => Err(error),
        }
    }

    async fn look_at_input(
        &mut self,
        config: &Config,
        cluster: &Cluster,
        input: &Input,
    ) -> Result<(), KubernetesError> {
        // Without runs there is none, or the next run replaces it.
        if self.jobs.is_empty() && !self.resource.is_deleting() {
            return Ok(());
        }
        let key = input_key(config, &self.resource.id);
        let found = cluster.find_secret_of(&key, &Form::Opaque(input.key.clone())).await?;
        let ours = found.filter(|found| is_ours(config, &self.resource.id, found));
        self.input = ours.map(|found| InputState {
            uid: found.uid,
            resource_version: found.resource_version,
            has_owner: found.owners > 0,
        });
        Ok(())
    }

    /// What has become of the Secret that a run left behind.
    async fn output(&self, config: &Config, cluster: &Cluster) -> Result<OutputState, KubernetesError> {
        let Some(output) = &config.output else { return Ok(OutputState::NotLooked("nothing is left behind")) };
        let facts = self.facts(Timestamp::UNIX_EPOCH);
        let named = facts.named(config);
        let (Some(namespace), Some(name)) =
            (output.namespace.resolve(&self.view, named), output.name.resolve(&self.view, named))
        else {
            return Ok(OutputState::NotLooked("nobody says where it is"));
        };
        let key = SecretKey { namespace, name };
        let found = match cluster.find_secret(&key).await {
            Ok(found) => found,
            Err(error) if error.fault == Fault::Forbidden => {
                return Ok(OutputState::NotLooked("this adapter may not read it"));
            }
            Err(error) => return Err(error),
        };
        let Some(found) = found else { return Ok(OutputState::Gone(key.to_string())) };
        let owner = Owner::of(&found.labels);
        if self.resource.id.parse().is_ok_and(|id| !owner.is(&id)) {
            return Ok(OutputState::Foreign(format!("{key} belongs to another: it has {owner}; it is not touched")));
        }
        let written = found.annotations.get(names::ANNOTATION_KUBERNETES_SECRET_GENERATION);
        let is_newer = written
            .and_then(|text| text.parse().ok())
            .is_some_and(|written: Generation| written > self.resource.generation);
        let is_same = match (&self.content, &found.content) {
            (Some(wanted), Some(held)) => means_the_same(wanted.expose_secret(), held.expose_secret()),
            (Some(_), None) => false,
            (None, _) => true,
        };
        Ok(if is_newer || is_same { OutputState::Same } else { OutputState::Changed(key.to_string()) })
    }
}

/// The input of a resource's runs.
pub(crate) fn input_key(config: &Config, id: &str) -> SecretKey {
    SecretKey { namespace: config.namespace.clone(), name: names::input_name(&config.adapter, id) }
}

/// Whether a Secret was made by this adapter for this resource.
pub(crate) fn is_ours(config: &Config, id: &str, secret: &ObservedSecret) -> bool {
    let is = |name: &str, value: &str| secret.labels.get(name).is_some_and(|label| label == value);
    is(names::LABEL_RUN_ADAPTER, &config.adapter) && is(names::LABEL_RUN_RESOURCE, id)
}

fn means_the_same(one: &[u8], other: &[u8]) -> bool {
    let digest =
        |bytes: &[u8]| docker_config::parse(bytes, &DocumentLimits::default()).map(|document| document.digest());
    one == other || matches!((digest(one), digest(other)), (Ok(one), Ok(other)) if one == other)
}

fn run<'a>(resource: &Resource, job: &'a ObservedJob, outcome: Option<Outcome>) -> Run<'a> {
    let label = |name: &str| job.labels.get(name).map(String::as_str);
    let annotation = |name: &str| job.annotations.get(name);
    Run {
        job,
        // A run for a former resource of this id is older than each of this one's.
        generation: label(names::LABEL_RUN_GENERATION)
            .filter(|_| !manifest::is_of_former(job, resource))
            .and_then(|text| text.parse().ok())
            .unwrap_or_default(),
        purpose: if label(names::LABEL_RUN_PURPOSE) == Some(names::PURPOSE_DELETE) {
            Purpose::Delete
        } else {
            Purpose::Apply
        },
        attempt: annotation(names::ANNOTATION_ATTEMPT).and_then(|text| text.parse().ok()).unwrap_or(1),
        source: annotation(names::ANNOTATION_SOURCE).cloned(),
        outcome,
    }
}
