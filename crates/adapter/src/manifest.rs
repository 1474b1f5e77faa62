//! Builds the Kubernetes objects of a run: its Job and its input.

use std::collections::BTreeMap;

use fleet_model::names;
use hyperfleet_client::{Generation, Resource, TraceContext};
use k8s_openapi::api::batch::v1::Job;
use kubernetes::{ObservedJob, ObservedSecret};
use serde_json::{Map, Value, json};

use crate::config::{JobTemplate, Plan as Config};
use crate::decide::{Facts, PullSecretSource, Purpose, StartRun};

/// The folder for a Job's result file.
const RESULTS: &str = "/results";

/// The event that has caused a reconcile pass.
#[derive(Clone, Debug, Default)]
pub struct Trigger {
    /// The event's id.
    pub event: Option<String>,
    /// The trace of the event.
    pub trace: Option<TraceContext>,
}

/// Returns the label selector for the Jobs of a resource.
pub fn selector(config: &Config, id: &str) -> String {
    format!("{}={},{}={id}", names::LABEL_RUN_ADAPTER, config.adapter, names::LABEL_RUN_RESOURCE)
}

/// Returns the label selector for the Jobs of all resources.
pub fn selector_of_all(config: &Config) -> String {
    format!("{}={}", names::LABEL_RUN_ADAPTER, config.adapter)
}

/// Returns the name of the Job of the current generation.
pub fn job_name(config: &Config, facts: &Facts<'_>) -> String {
    names::run_name(&config.adapter, &facts.resource.id, facts.resource.generation)
}

/// Returns the project whose quota the run counts against.
pub fn project(config: &Config, facts: &Facts<'_>) -> Option<String> {
    let name = config.project_variable.as_ref()?;
    let binding = config.bindings.iter().find(|binding| binding.name == *name)?;
    binding.resolve(facts.view, facts.placeholders(config))
}

/// Builds the Job of a run; the error names the part of the configuration that is invalid.
pub fn job(config: &Config, facts: &Facts<'_>, run: &StartRun, trigger: &Trigger) -> Result<Job, String> {
    let template = &config.config.spec.job_template;
    let labels = labels(config, facts, run.purpose);
    let name = job_name(config, facts);
    let mut spec = json!({
        "backoffLimit": template.backoff_limit,
        "activeDeadlineSeconds": template.active_deadline.as_secs(),
        "ttlSecondsAfterFinished": template.keep_finished.as_secs(),
        "template": {
            "metadata": {"labels": &labels},
            "spec": pod(config, facts, run.purpose, trigger),
        },
    });
    let codes = template.permanent_exit_codes.as_deref().unwrap_or_default();
    put(&mut spec, "podFailurePolicy", failure_policy(container_name(config), codes));
    let annotations = annotations(config, facts, run, trigger);
    let metadata = json!({
        "name": name, "namespace": config.namespace, "labels": labels, "annotations": annotations,
    });
    // Free-form members of the configuration may not fit the types of Kubernetes.
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).map_err(|_may_quote_values| {
        "spec.jobTemplate does not describe a valid Job: check securityContext, podSpec and volumes".to_owned()
    })
}

/// Returns the name of the container whose termination message is read.
pub fn container_name(config: &Config) -> &str {
    config.config.spec.job_template.container_name.as_deref().unwrap_or("job")
}

/// Returns the labels of a run's Job, Pods and input.
pub fn labels(config: &Config, facts: &Facts<'_>, purpose: Purpose) -> BTreeMap<String, String> {
    let template = &config.config.spec.job_template;
    let resource = facts.resource;
    let purpose = match purpose {
        Purpose::Apply => names::PURPOSE_APPLY,
        Purpose::Delete => names::PURPOSE_DELETE,
    };
    let generation = resource.generation.to_string();
    let app = format!("{}-adapter", config.adapter);
    let pairs = [
        (names::LABEL_APP, app.as_str()),
        (names::LABEL_JOB_TYPE, template.job_type.as_deref().unwrap_or(&config.adapter)),
        (names::LABEL_MANAGED_BY, names::MANAGED_BY),
        (names::LABEL_ADAPTER, &config.adapter),
        (names::LABEL_CLUSTER_ID, &resource.id),
        (names::LABEL_RUN_ADAPTER, &config.adapter),
        (names::LABEL_RUN_RESOURCE, &resource.id),
        (names::LABEL_RUN_GENERATION, &generation),
        (names::LABEL_RUN_PURPOSE, purpose),
    ];
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Returns the creation time of the resource, which distinguishes it from former resources with its id.
pub(crate) fn incarnation(resource: &Resource) -> Option<String> {
    resource.created_time.map(|time| time.to_string())
}

/// Returns true if the Job belongs to a former resource with the same id.
pub(crate) fn is_of_former(job: &ObservedJob, resource: &Resource) -> bool {
    let made_for = job.annotations.get(names::ANNOTATION_RESOURCE_CREATED);
    made_for.zip(incarnation(resource)).is_some_and(|(one, other)| *one != other)
}

/// The annotations of the input of a resource's runs.
pub(crate) fn input_annotations(config: &Config, resource: &Resource) -> BTreeMap<String, String> {
    let pairs = [
        (names::ANNOTATION_CREATED_BY, Some(config.name.clone())),
        (names::ANNOTATION_RESOURCE_CREATED, incarnation(resource)),
    ];
    pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Returns true if the input was written for a newer generation of this very resource than the one that was observed.
pub(crate) fn is_input_of_newer_generation(input: &ObservedSecret, resource: &Resource) -> bool {
    let made_for = input.annotations.get(names::ANNOTATION_RESOURCE_CREATED);
    let generation = input.labels.get(names::LABEL_RUN_GENERATION).and_then(|text| text.parse::<Generation>().ok());
    made_for.is_some()
        && made_for == incarnation(resource).as_ref()
        && generation.is_some_and(|written| written > resource.generation)
}

fn annotations(
    config: &Config,
    facts: &Facts<'_>,
    run: &StartRun,
    trigger: &Trigger,
) -> BTreeMap<&'static str, String> {
    let revision = match &facts.source {
        PullSecretSource::Revision(revision) if run.purpose == Purpose::Apply => Some(revision.clone()),
        _ => None,
    };
    let pairs = [
        (names::ANNOTATION_CREATED_BY, Some(config.name.clone())),
        (names::ANNOTATION_BECAUSE, Some(run.because.clone())),
        (names::ANNOTATION_ATTEMPT, Some(run.attempt.to_string())),
        (names::ANNOTATION_SOURCE, revision),
        (names::ANNOTATION_RESOURCE_CREATED, incarnation(facts.resource)),
        (names::ANNOTATION_EVENT, trigger.event.clone()),
        (names::ANNOTATION_TRACE, trigger.trace.as_ref().map(ToString::to_string)),
        (names::ANNOTATION_PROJECT, project(config, facts)),
    ];
    pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn failure_policy(container: &str, codes: &[i32]) -> Option<Value> {
    let mut codes: Vec<i32> = codes.to_vec();
    codes.sort_unstable();
    codes.dedup();
    (!codes.is_empty()).then(|| {
        json!({"rules": [
            {"action": "FailJob", "onExitCodes": {"containerName": container, "operator": "In", "values": codes}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        ]})
    })
}

fn pod(config: &Config, facts: &Facts<'_>, purpose: Purpose, trigger: &Trigger) -> Value {
    let template = &config.config.spec.job_template;
    let mut volumes = vec![json!({"name": "results", "emptyDir": {}})];
    let mut mounts = vec![json!({"name": "results", "mountPath": RESULTS})];
    if let (Some(input), Purpose::Apply) = (&config.input, purpose) {
        let secret = names::input_name(&config.adapter, &facts.resource.id);
        let items = json!([{"key": input.key, "path": input.key}]);
        volumes.push(json!({"name": "input", "secret": {"secretName": secret, "items": items}}));
        mounts.push(json!({"name": "input", "mountPath": input.mount_path, "readOnly": true}));
    }
    volumes.extend(template.volumes.iter().flatten().cloned());
    mounts.extend(template.volume_mounts.iter().flatten().cloned());
    let mut container = json!({
        "name": container_name(config),
        "image": config.image,
        "args": match purpose {
            Purpose::Apply => config.args.clone(),
            Purpose::Delete => config.delete_args.clone().unwrap_or_default(),
        },
        "env": variables(config, facts, purpose, trigger),
        "resources": template.resources.clone().unwrap_or_default(),
        "securityContext": security_context(template),
        "volumeMounts": mounts,
    });
    put(&mut container, "command", template.command.as_ref().map(|command| json!(command)));
    put(&mut container, "imagePullPolicy", template.image_pull_policy.as_ref().map(|policy| json!(policy)));
    let mut pod = json!({
        "restartPolicy": "Never",
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": volumes,
    });
    put(&mut pod, "serviceAccountName", template.service_account_name.as_ref().map(|name| json!(name)));
    for (name, value) in template.pod_spec.iter().flatten() {
        put(&mut pod, name, Some(value.clone()));
    }
    pod
}

fn variables(config: &Config, facts: &Facts<'_>, purpose: Purpose, trigger: &Trigger) -> Vec<Value> {
    let placeholders = facts.placeholders(config);
    let input = config.input.as_ref().map(|input| input.mount_path.as_str());
    let values = config.bindings.iter().filter_map(|binding| {
        let value = binding.resolve(facts.view, placeholders)?;
        // A clean-up run has no input.
        let is_of_input = input.is_some_and(|path| binding.from.is_empty() && value.starts_with(path));
        (purpose == Purpose::Apply || !is_of_input).then(|| json!({"name": binding.name, "value": value}))
    });
    let trace = trigger.trace.as_ref().map(|trace| json!({"name": "TRACEPARENT", "value": trace.as_str()}));
    values.chain(trace).collect()
}

/// Returns the container's security context: unprivileged, read-only and without capabilities unless configured otherwise.
fn security_context(template: &JobTemplate) -> Map<String, Value> {
    let built_in = json!({
        "allowPrivilegeEscalation": false,
        "runAsNonRoot": true,
        "runAsUser": 1000,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
    });
    template.security_context.clone().or_else(|| built_in.as_object().cloned()).unwrap_or_default()
}

fn put(object: &mut Value, name: &str, value: Option<Value>) {
    if let (Some(members), Some(value)) = (object.as_object_mut(), value) {
        members.insert(name.to_owned(), value);
    }
}
