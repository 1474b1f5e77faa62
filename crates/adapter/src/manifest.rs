//! Builds the Kubernetes objects of a run: its Job and its input.

use std::collections::BTreeMap;

use fleet_model::StoredCopy;
use fleet_model::id::is_dns_subdomain;
use fleet_model::names;
use fleet_model::names::variable;
use hyperfleet_client::{Generation, Resource, TraceContext};
use k8s_openapi::api::batch::v1::Job;
use kubernetes::{ObservedJob, ObservedSecret};
use serde_json::{Map, Value, json};

use crate::config::{Account, Checked, JobStore, JobTemplate, ServiceAccount, StoreKind};
use crate::decide::{Facts, PullSecretSource, Purpose, StartRun, mirror_copy, stored_copy};

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
pub fn selector(config: &Checked, id: &str) -> String {
    format!("{}={},{}={id}", names::LABEL_RUN_ADAPTER, config.adapter, names::LABEL_RUN_RESOURCE)
}

/// Returns the label selector for the Jobs of all resources.
pub fn selector_of_all(config: &Checked) -> String {
    format!("{}={}", names::LABEL_RUN_ADAPTER, config.adapter)
}

/// Returns the name of a run's Job: one for each generation, and one for each copy that is cleaned up.
pub fn job_name(config: &Checked, facts: &Facts<'_>, run: &StartRun) -> String {
    let (adapter, id, generation) = (&config.adapter, &facts.resource.id, facts.resource.generation);
    match run.copy.as_ref().and_then(copy_text) {
        Some(copy) => names::clean_up_name(adapter, id, generation, &copy),
        None => names::run_name(adapter, id, generation),
    }
}

/// Returns a copy as the Job's annotation has it.
fn copy_text(copy: &StoredCopy) -> Option<String> {
    serde_json::to_string(copy).ok()
}

/// Returns the owner of the quota that the run counts against: the project, the address of OpenBao or Vault, the region, or the
/// vault.
pub fn quota(config: &Checked, facts: &Facts<'_>, run: &StartRun) -> Option<String> {
    match &run.copy {
        Some(StoredCopy::Secret { project, .. }) => return Some(project.clone()),
        Some(StoredCopy::VaultSecret { server, .. }) => return Some(server.clone()),
        Some(StoredCopy::KubernetesSecret { .. }) => return None,
        Some(StoredCopy::AwsSecret { region, .. }) => return Some(format!("aws/{region}")),
        Some(StoredCopy::AzureSecret { vault, .. }) => return Some(vault.clone()),
        None => {}
    }
    let project_variable = config.project_variable.as_deref();
    quota_of(config.stores.of(facts.view).ok()?, project_variable, config, facts)
}

/// Returns the owner of the quota of the mirror, if the run writes to one.
pub fn mirror_quota(config: &Checked, facts: &Facts<'_>, run: &StartRun) -> Option<String> {
    let mirror = config.mirror.as_ref().filter(|_| run.purpose == Purpose::Apply)?;
    quota_of(mirror, Some(variable::GCP_PROJECT_ID), config, facts)
}

fn quota_of(store: &JobStore, project_variable: Option<&str>, config: &Checked, facts: &Facts<'_>) -> Option<String> {
    match store {
        JobStore::Azure(vault) => Some(vault.to_string()),
        JobStore::Vault(place) => Some(place.address.to_string()),
        JobStore::Aws(place) => Some(format!("aws/{}", place.region)),
        JobStore::Google => {
            let binding = config.bindings.iter().find(|binding| Some(binding.name.as_str()) == project_variable)?;
            binding.resolve(facts.view, facts.placeholders(config))
        }
    }
}

/// Builds the Job of a run; the error names the part of the configuration that is invalid.
pub fn job(config: &Checked, facts: &Facts<'_>, run: &StartRun, trigger: &Trigger) -> Result<Job, String> {
    let template = &config.given.spec.job_template;
    let labels = labels(config, facts, run.purpose);
    let name = job_name(config, facts, run);
    let service_account = service_account(config, facts)?;
    let variables = variables(config, facts, run, trigger)?;
    let mut spec = json!({
        "backoffLimit": template.backoff_limit,
        "activeDeadlineSeconds": template.active_deadline.as_secs(),
        "ttlSecondsAfterFinished": template.keep_finished.as_secs(),
        "template": {
            "metadata": {"labels": &labels},
            "spec": pod(config, facts, run, &Environment { service_account, variables }),
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
pub fn container_name(config: &Checked) -> &str {
    config.given.spec.job_template.container_name.as_deref().unwrap_or("job")
}

/// Returns the labels of a run's Job, Pods and input.
pub fn labels(config: &Checked, facts: &Facts<'_>, purpose: Purpose) -> BTreeMap<String, String> {
    let template = &config.given.spec.job_template;
    let resource = facts.resource;
    let purpose = purpose_label(purpose);
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

/// Returns the value of the label that names a run's purpose.
pub(crate) fn purpose_label(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Apply => names::PURPOSE_APPLY,
        Purpose::Delete => names::PURPOSE_DELETE,
        Purpose::CleanUp => names::PURPOSE_CLEAN_UP,
    }
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
pub(crate) fn input_annotations(config: &Checked, resource: &Resource) -> BTreeMap<String, String> {
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
    config: &Checked,
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
        (names::ANNOTATION_QUOTA, quota(config, facts, run)),
        (names::ANNOTATION_QUOTA_MIRROR, mirror_quota(config, facts, run)),
        (names::ANNOTATION_COPY, run.copy.as_ref().and_then(copy_text)),
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

/// The parts of a Pod that depend on the resource.
struct Environment {
    service_account: Option<String>,
    variables: Vec<Value>,
}

fn pod(config: &Checked, facts: &Facts<'_>, run: &StartRun, environment: &Environment) -> Value {
    let template = &config.given.spec.job_template;
    let mut volumes = vec![json!({"name": "results", "emptyDir": {}})];
    let mut mounts = vec![json!({"name": "results", "mountPath": RESULTS})];
    if let (Some(input), Purpose::Apply) = (&config.input, run.purpose) {
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
        "args": args(config, run),
        "env": environment.variables,
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
    put(&mut pod, "serviceAccountName", environment.service_account.as_ref().map(|name| json!(name)));
    for (name, value) in template.pod_spec.iter().flatten() {
        put(&mut pod, name, Some(value.clone()));
    }
    pod
}

/// Returns the service account of the resource's Jobs; the error names the part of the configuration that is invalid.
pub fn job_account(config: &Checked, facts: &Facts<'_>) -> Result<Account, String> {
    let name = service_account(config, facts)?.unwrap_or_else(|| "default".to_owned());
    Ok(Account { namespace: config.namespace.clone(), name })
}

fn service_account(config: &Checked, facts: &Facts<'_>) -> Result<Option<String>, String> {
    let placeholders = facts.placeholders(config);
    let name = match &config.given.spec.job_template.service_account_name {
        None => return Ok(None),
        Some(ServiceAccount::Name(name)) => Some(placeholders.expand(name)),
        Some(ServiceAccount::Field(source)) => source.resolve(facts.view, placeholders),
    };
    let name = name.filter(|name| is_dns_subdomain(name)).ok_or(
        "spec.jobTemplate.serviceAccountName: the resource has no such field, or its value is no name of a service account",
    )?;
    Ok(Some(name))
}

fn args(config: &Checked, run: &StartRun) -> Vec<String> {
    let delete_args = || config.delete_args.clone().unwrap_or_default();
    match (run.purpose, &run.copy) {
        (Purpose::Apply, _) => config.args.clone(),
        (_, Some(StoredCopy::KubernetesSecret { .. })) => {
            delete_args().into_iter().chain(["--kubernetes-secret-only".to_owned()]).collect()
        }
        (Purpose::Delete | Purpose::CleanUp, _) => delete_args(),
    }
}

fn variables(config: &Checked, facts: &Facts<'_>, run: &StartRun, trigger: &Trigger) -> Result<Vec<Value>, String> {
    let placeholders = facts.placeholders(config);
    let input = config.input.as_ref().map(|input| input.mount_path.as_str());
    let store = match &run.copy {
        Some(copy) => StoreKind::of(copy),
        None => Some(config.stores.of(facts.view)?.kind()),
    };
    let mirror = config.mirror.as_ref().filter(|_| run.purpose == Purpose::Apply).map(JobStore::kind);
    let mut of_copy = match (&run.copy, store) {
        (Some(copy), _) => copy_variables(copy),
        // The variables of the Job's template name the place.
        (None, Some(StoreKind::Google)) => Vec::new(),
        (None, _) => place_variables(&stored_copy(config, facts)?),
    };
    if let (Some(mirror), Some(copy)) = (mirror, mirror_copy(config, facts)?) {
        add_mirror_variables(mirror, &copy, &mut of_copy);
    }
    let values = config.bindings_at(store, mirror).filter_map(|binding| {
        if of_copy.iter().any(|(name, _)| *name == binding.name) {
            return None;
        }
        let value = binding.resolve(facts.view, placeholders)?;
        // A clean-up run has no input.
        let is_of_input = input.is_some_and(|path| binding.from.is_empty() && value.starts_with(path));
        (run.purpose == Purpose::Apply || !is_of_input).then(|| (binding.name.clone(), value))
    });
    let incarnation = incarnation(facts.resource).filter(|_| config.tracks_copies);
    let incarnation = incarnation.map(|incarnation| (variable::INCARNATION.to_owned(), incarnation));
    let trace = trigger.trace.as_ref().map(|trace| (variable::TRACEPARENT.to_owned(), trace.as_str().to_owned()));
    let of_copy = of_copy.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
    let all = values.chain(of_copy).chain(incarnation).chain(trace);
    Ok(all.map(|(name, value)| json!({"name": name, "value": value})).collect())
}

/// Adds the variables that name the mirror to those of the first store.
fn add_mirror_variables(mirror: StoreKind, copy: &StoredCopy, variables: &mut Vec<(&'static str, Option<String>)>) {
    let kind = mirror.name().to_owned();
    // The variables of the Job's template name a place at Google.
    let place = if mirror == StoreKind::Google { Vec::new() } else { place_variables(copy) };
    for (name, value) in place.into_iter().chain([(variable::SECRET_STORE_MIRROR, Some(kind))]) {
        if name != variable::SECRET_STORE && variables.iter().all(|(known, _)| *known != name) {
            variables.push((name, value));
        }
    }
}

/// Returns the variables that name a copy, in place of those of the resource's current destination. `None` removes one.
fn copy_variables(copy: &StoredCopy) -> Vec<(&'static str, Option<String>)> {
    let mut variables = place_variables(copy);
    match copy {
        // The Job deletes nothing else, so it gets no settings of a store.
        StoredCopy::KubernetesSecret { namespace, name } => variables.extend([
            (variable::SECRET_NAME, None),
            (variable::MANAGEMENT_NAMESPACE, Some(namespace.clone())),
            (variable::K8S_SECRET_NAME, Some(name.clone())),
        ]),
        _ => variables.extend([(variable::MANAGEMENT_NAMESPACE, None), (variable::K8S_SECRET_NAME, None)]),
    }
    variables
}

/// Returns the variables that name the place of a copy in a secret store.
fn place_variables(copy: &StoredCopy) -> Vec<(&'static str, Option<String>)> {
    let kind = StoreKind::of(copy).map(|kind| kind.name().to_owned());
    match copy.clone() {
        StoredCopy::Secret { project, location, name } => vec![
            (variable::GCP_PROJECT_ID, Some(project)),
            (variable::GCP_LOCATION, location),
            (variable::SECRET_NAME, Some(name)),
        ],
        StoredCopy::VaultSecret { server, namespace, mount, folder, name } => vec![
            (variable::SECRET_STORE, kind),
            (variable::VAULT_ADDR, Some(server)),
            (variable::VAULT_NAMESPACE, namespace),
            (variable::VAULT_MOUNT, Some(mount)),
            (variable::VAULT_FOLDER, Some(folder)),
            (variable::SECRET_NAME, Some(name)),
        ],
        StoredCopy::AwsSecret { region, folder, name } => vec![
            (variable::SECRET_STORE, kind),
            (variable::AWS_REGION, Some(region)),
            (variable::AWS_FOLDER, Some(folder)),
            (variable::SECRET_NAME, Some(name)),
        ],
        StoredCopy::AzureSecret { vault, name } => vec![
            (variable::SECRET_STORE, kind),
            (variable::AZURE_KEY_VAULT_URL, Some(vault)),
            (variable::SECRET_NAME, Some(name)),
        ],
        StoredCopy::KubernetesSecret { .. } => Vec::new(),
    }
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
