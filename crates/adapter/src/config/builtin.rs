//! The built-in configuration of the adapter type `pullsecret`.

use fleet_model::names::variable;
use serde_json::json;

use super::secret_store::{SecretStore, StoreKind};
use super::shape::{Config, Criteria, Expression, Input, JobTemplate, Output, Resources, ServiceAccount};
use crate::binding::{Binding, FieldPath, Required, ValueSource};

/// The namespace of Jobs, of their inputs and of the adapter's Lease, unless a configuration names another: that of
/// charts/pull-secret.
pub const JOB_NAMESPACE: &str = "hyperfleet-pull-secret";

/// The configuration that is used without a file: the pull secret adapter's.
pub(super) const FILE: &str = "apiVersion: hyperfleet.redhat.com/v1alpha1
kind: AdapterConfig
metadata: {name: pullsecret-adapter, namespace: hyperfleet-pull-secret}
spec: {adapterType: pullsecret}
";

/// The adapter's type.
pub(super) const PULL_SECRET: &str = "pullsecret";

/// The adapters that must have completed their work before this one.
const DEPENDENCIES: [&str; 3] = ["validation", "dns", "placement"];

/// Precondition, beside `spec.provider`, of a run whose store or mirror is Google's.
const GOOGLES_PRECONDITION: &str = "spec.gcp.projectId != nil";
/// The built-in precondition of every run. A reference to a Secret is equivalent to the content itself.
const PRECONDITION: &str = "spec.pullSecret.data != nil or spec.pullSecret.secretRef != nil";

const IMAGE: &str = concat!("quay.io/openshift-hyperfleet/pull-secret:", env!("CARGO_PKG_VERSION"));
const ARGS: [&str; 2] = ["run-job", "pull-secret"];
const DELETE_ARGS: [&str; 3] = ["run-job", "pull-secret", "--delete"];
/// The namespace of the hosted control plane, as placement reports it, or as this adapter has reported it before.
const NAMESPACE: &[&str] = &["status.adapters[placement].data.namespace", "status.adapters[pullsecret].data.namespace"];

/// A built-in variable of the Job.
struct Variable {
    name: &'static str,
    /// The fields that it is read from.
    from: &'static [&'static str],
    /// The value if no field has one.
    value: Option<&'static str>,
    required: Required,
}

const VARIABLES: [Variable; 9] = [
    Variable { name: variable::CLUSTER_ID, from: &["metadata.id"], value: None, required: Required::Always },
    Variable { name: variable::CLUSTER_NAME, from: &["metadata.name"], value: None, required: Required::No },
    Variable { name: variable::GENERATION, from: &["metadata.generation"], value: None, required: Required::Always },
    Variable {
        name: variable::GCP_PROJECT_ID,
        from: &[
            "spec.gcp.projectId",
            "status.adapters[pullsecret].data.gcpProject",
            "status.adapters[pullsecret].data.mirror.gcpProject",
        ],
        value: None,
        required: Required::Always,
    },
    Variable {
        name: variable::SECRET_NAME,
        from: &["spec.pullSecret.secretName"],
        value: None,
        required: Required::No,
    },
    Variable {
        name: variable::REPLICATION_POLICY,
        from: &["spec.pullSecret.replicationPolicy"],
        value: None,
        required: Required::No,
    },
    Variable { name: variable::MANAGEMENT_NAMESPACE, from: NAMESPACE, value: None, required: Required::ToApply },
    Variable {
        name: variable::K8S_SECRET_NAME,
        from: &["spec.pullSecret.k8sSecretName"],
        value: None,
        required: Required::No,
    },
    Variable {
        name: variable::PULL_SECRET_FILE,
        from: &[],
        value: Some("/var/run/pull-secret/pullsecret"),
        required: Required::No,
    },
];

/// Completes a configuration of this type with the built-in values.
pub(super) fn complete(config: &mut Config) {
    let spec = &mut config.spec;
    if spec.adapter_type != PULL_SECRET {
        return;
    }
    let Criteria { preconditions, dependencies } = &mut spec.criteria;
    preconditions.get_or_insert_with(|| {
        let of_mirror = spec.secret_store.mirror == Some(StoreKind::Google);
        let of_mirror = of_mirror.then(|| GOOGLES_PRECONDITION.to_owned());
        let all = of_store(&spec.secret_store).into_iter().chain(of_mirror).chain([PRECONDITION.to_owned()]);
        all.map(|expression| Expression { expression }).collect()
    });
    dependencies.get_or_insert_with(|| DEPENDENCIES.map(str::to_owned).to_vec());
    spec.input.get_or_insert_with(Input::default);
    spec.output.get_or_insert_with(|| Output {
        namespace: source(NAMESPACE, None),
        name: source(&["spec.pullSecret.k8sSecretName"], Some("{id}-pull-secret")),
    });
    let stores = spec.secret_store.kinds();
    if stores.contains(&StoreKind::Google) {
        spec.limits.project_variable.get_or_insert_with(|| variable::GCP_PROJECT_ID.to_owned());
    }
    complete_job(&mut spec.job_template, &spec.secret_store);
}

/// Returns the built-in preconditions that depend on the store. The choice of the store by provider is a precondition of its own.
fn of_store(store: &SecretStore) -> Vec<String> {
    let provider = |provider: &str| format!("spec.provider == {}", json!(provider));
    let Some(by_provider) = &store.by_provider else {
        return match store.kind.unwrap_or(StoreKind::Google) {
            StoreKind::Google => vec![provider("gcp"), GOOGLES_PRECONDITION.to_owned()],
            StoreKind::Vault => Vec::new(),
            StoreKind::Aws => vec![provider("aws")],
            StoreKind::Azure => vec![provider("azure")],
        };
    };
    let at_google = by_provider.iter().filter(|(_, kind)| **kind == StoreKind::Google);
    let at_google: Vec<_> = at_google.map(|(provider, _)| provider).collect();
    if at_google.is_empty() {
        return Vec::new();
    }
    vec![format!("spec.provider in {} ? {GOOGLES_PRECONDITION} : true", json!(at_google))]
}

fn complete_job(job: &mut JobTemplate, store: &SecretStore) {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    job.image.get_or_insert_with(|| IMAGE.to_owned());
    job.args.get_or_insert_with(|| texts(&ARGS));
    job.delete_args.get_or_insert_with(|| texts(&DELETE_ARGS));
    job.job_type.get_or_insert_with(|| "pull-secret".to_owned());
    job.container_name.get_or_insert_with(|| "pull-secret".to_owned());
    job.service_account_name.get_or_insert_with(|| ServiceAccount::Name("pullsecret-adapter-job".to_owned()));
    job.permanent_exit_codes.get_or_insert_with(|| vec![2, 3, 4, 5, 6]);
    let pairs = |pairs: [(&str, &str); 2]| pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    job.resources.get_or_insert_with(|| Resources {
        requests: pairs([("cpu", "100m"), ("memory", "128Mi")]),
        limits: pairs([("cpu", "500m"), ("memory", "512Mi")]),
    });
    let binding = |variable: Variable| {
        let ValueSource { from, value } = source(variable.from, variable.value);
        Binding { name: variable.name.to_owned(), from, value, required: variable.required }
    };
    let given = job.env.take().unwrap_or_default();
    let (stores, mirror) = (store.kinds(), store.mirror);
    let is_taken = |Variable { name, .. }: &Variable| {
        stores.iter().any(|store| StoreKind::takes(Some(*store), name))
            || mirror.is_some_and(|mirror| mirror.takes_as_mirror(name))
    };
    let built_in = VARIABLES.into_iter().filter(is_taken).map(binding);
    let kept = built_in.filter(|built_in| given.iter().all(|given| given.name != built_in.name)).collect::<Vec<_>>();
    // Those that are given stay first: messages name their places in the file.
    job.env = Some(given.into_iter().chain(kept).collect());
}

fn source(paths: &[&str], text: Option<&str>) -> ValueSource {
    // A test checks that every path is valid.
    let from = paths.iter().filter_map(|path| path.parse::<FieldPath>().ok()).collect();
    ValueSource { from, value: text.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_built_in_paths_are_valid() {
        let paths = VARIABLES.iter().flat_map(|variable| variable.from.iter()).chain(NAMESPACE);
        assert!(paths.into_iter().all(|path| path.parse::<FieldPath>().is_ok()));
    }

    #[test]
    fn without_a_file_jobs_are_in_the_namespace_of_the_chart() {
        assert!(FILE.contains(&format!("namespace: {JOB_NAMESPACE}}}")));
    }
}
