//! From a plan to what is sent to Kubernetes: the Job of a run, and its input.

use std::collections::BTreeMap;

use fleet_model::names;
use hyperfleet_client::{Generation, Resource, TraceContext};
use k8s_openapi::api::batch::v1::Job;
use kubernetes::ObservedJob;
use kubernetes::ObservedSecret;
use serde_json::{Map, Value, json};

use crate::config::{JobTemplate, Plan as Config};
use crate::decide::{Begin, Facts, Purpose, Source};

/// The folder that a Job may leave its result in.
const RESULTS: &str = "/results";

/// Upon what a run is made.
#[derive(Clone, Debug, Default)]
pub struct Occasion {
    /// The event's id.
    pub event: Option<String>,
    /// The trace that it belongs to.
    pub trace: Option<TraceContext>,
}

/// The labels by which everything that is made for a resource's runs is known.
pub fn selector(config: &Config, id: &str) -> String {
    format!("{}={},{}={id}", names::LABEL_RUN_ADAPTER, config.adapter, names::LABEL_RUN_RESOURCE)
}

/// The same, for the runs of all resources.
pub fn selector_of_all(config: &Config) -> String {
    format!("{}={}", names::LABEL_RUN_ADAPTER, config.adapter)
}

/// The name of the Job of this generation.
pub fn job_name(config: &Config, facts: &Facts<'_>) -> String {
    names::run_name(&config.adapter, &facts.resource.id, facts.resource.generation)
}

/// The project whose quota a run is counted against.
pub fn project(config: &Config, facts: &Facts<'_>) -> Option<String> {
    let name = config.project_variable.as_ref()?;
    let binding = config.bindings.iter().find(|binding| binding.name == *name)?;
    binding.resolve(facts.view, facts.named(config))
}

/// The Job of a run.
pub fn job(config: &Config, facts: &Facts<'_>, begin: &Begin, occasion: &Occasion) -> Result<Job, String> {
    let template = &config.config.spec.job_template;
    let labels = labels(config, facts, begin.purpose);
    let name = job_name(config, facts);
    let mut spec = json!({
        "backoffLimit": template.backoff_limit,
        "activeDeadlineSeconds": template.active_deadline.as_secs(),
        "ttlSecondsAfterFinished": template.keep_finished.as_secs(),
        "template": {
            "metadata": {"labels": &labels},
            "spec": pod(config, facts, begin.purpose, occasion),
        },
    });
    let codes = template.permanent_exit_codes.as_deref().unwrap_or_default();
    put(&mut spec, "podFailurePolicy", failure_policy(container_name(config), codes));
    let annotations = annotations(config, facts, begin, occasion);
    let metadata = json!({
        "name": name, "namespace": config.namespace, "labels": labels, "annotations": annotations,
    });
    // What is in the configuration as free form may be in a form that Kubernetes has no field for.
    serde_json::from_value(json!({"metadata": metadata, "spec": spec})).map_err(|_words_may_quote| {
        "spec.jobTemplate makes no Job: check securityContext, podSpec and volumes".to_owned()
    })
}

/// The container of a Job whose words count.
pub fn container_name(config: &Config) -> &str {
    config.config.spec.job_template.container_name.as_deref().unwrap_or("job")
}

/// The labels of what is made for a run.
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

/// What tells a resource from another one that had its id before.
pub(crate) fn incarnation(resource: &Resource) -> Option<String> {
    resource.created_time.map(|time| time.to_string())
}

/// Whether a Job is of a resource that had this one's id before.
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
    begin: &Begin,
    occasion: &Occasion,
) -> BTreeMap<&'static str, String> {
    let edition = match &facts.source {
        Source::Edition(edition) if begin.purpose == Purpose::Apply => Some(edition.clone()),
        _ => None,
    };
    let pairs = [
        (names::ANNOTATION_CREATED_BY, Some(config.name.clone())),
        (names::ANNOTATION_BECAUSE, Some(begin.because.clone())),
        (names::ANNOTATION_ATTEMPT, Some(begin.attempt.to_string())),
        (names::ANNOTATION_SOURCE, edition),
        (names::ANNOTATION_RESOURCE_CREATED, incarnation(facts.resource)),
        (names::ANNOTATION_EVENT, occasion.event.clone()),
        (names::ANNOTATION_TRACE, occasion.trace.as_ref().map(ToString::to_string)),
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

fn pod(config: &Config, facts: &Facts<'_>, purpose: Purpose, occasion: &Occasion) -> Value {
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
        "env": variables(config, facts, purpose, occasion),
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

fn variables(config: &Config, facts: &Facts<'_>, purpose: Purpose, occasion: &Occasion) -> Vec<Value> {
    let named = facts.named(config);
    let input = config.input.as_ref().map(|input| input.mount_path.as_str());
    let values = config.bindings.iter().filter_map(|binding| {
        let value = binding.resolve(facts.view, named)?;
        // A run that removes has no input.
        let is_of_input = input.is_some_and(|path| binding.from.is_empty() && value.starts_with(path));
        (purpose == Purpose::Apply || !is_of_input).then(|| json!({"name": binding.name, "value": value}))
    });
    let trace = occasion.trace.as_ref().map(|trace| json!({"name": "TRACEPARENT", "value": trace.as_str()}));
    values.chain(trace).collect()
}

/// Nobody, with nothing, on nothing that can be written, unless configured otherwise.
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
