//! What is built in for the adapter type `pullsecret`.

use super::shape::{Config, Criteria, Expression, Input, JobTemplate, Output, Resources};
use crate::binding::{Binding, Place, Required, ValueSource};

/// The configuration where there is no file: the pull secret adapter's.
pub(super) const FILE: &str = "apiVersion: hyperfleet.redhat.com/v1alpha1
kind: AdapterConfig
metadata: {name: pullsecret-adapter, namespace: hyperfleet-system}
spec: {adapterType: pullsecret}
";

/// The adapter's type.
pub(super) const PULL_SECRET: &str = "pullsecret";

/// The adapters that come before this one (specification 1, phase 2).
const DEPENDENCIES: [&str; 3] = ["validation", "dns", "placement"];

/// What a cluster must have besides them. A reference to a Secret is as good as the content itself.
const PRECONDITIONS: [&str; 3] = [
    r#"spec.provider == "gcp""#,
    "spec.gcp.projectId != nil",
    "spec.pullSecret.data != nil or spec.pullSecret.secretRef != nil",
];

const IMAGE: &str = concat!("quay.io/openshift-hyperfleet/pull-secret:", env!("CARGO_PKG_VERSION"));
const ARGS: [&str; 2] = ["run-job", "pull-secret"];
const DELETE_ARGS: [&str; 3] = ["run-job", "pull-secret", "--delete"];
/// Where placement tells the namespace of the hosted control plane; and where we have told it before.
const NAMESPACE: &[&str] = &["status.adapters[placement].data.namespace", "status.adapters[pullsecret].data.namespace"];

/// The Job's variables: name, places, text, whether it can do without.
type Variable = (&'static str, &'static [&'static str], Option<&'static str>, Required);
const VARIABLES: [Variable; 9] = [
    ("CLUSTER_ID", &["metadata.id"], None, Required::Always),
    ("CLUSTER_NAME", &["metadata.name"], None, Required::No),
    ("GENERATION", &["metadata.generation"], None, Required::Always),
    ("GCP_PROJECT_ID", &["spec.gcp.projectId", "status.adapters[pullsecret].data.gcpProject"], None, Required::Always),
    ("SECRET_NAME", &["spec.pullSecret.secretName"], None, Required::No),
    ("REPLICATION_POLICY", &["spec.pullSecret.replicationPolicy"], None, Required::No),
    ("MANAGEMENT_NAMESPACE", NAMESPACE, None, Required::ToApply),
    ("K8S_SECRET_NAME", &["spec.pullSecret.k8sSecretName"], None, Required::No),
    ("PULL_SECRET_FILE", &[], Some("/var/run/pull-secret/pullsecret"), Required::No),
];

/// Fills in what is not given.
pub(super) fn complete(config: &mut Config) {
    let spec = &mut config.spec;
    if spec.adapter_type != PULL_SECRET {
        return;
    }
    let Criteria { preconditions, dependencies } = &mut spec.criteria;
    let expression = |expression: &str| Expression { expression: expression.to_owned() };
    preconditions.get_or_insert_with(|| PRECONDITIONS.map(expression).to_vec());
    dependencies.get_or_insert_with(|| DEPENDENCIES.map(str::to_owned).to_vec());
    spec.input.get_or_insert_with(Input::default);
    spec.output.get_or_insert_with(|| Output {
        namespace: source(NAMESPACE, None),
        name: source(&["spec.pullSecret.k8sSecretName"], Some("{id}-pull-secret")),
    });
    spec.limits.project_variable.get_or_insert_with(|| "GCP_PROJECT_ID".to_owned());
    complete_job(&mut spec.job_template);
}

fn complete_job(job: &mut JobTemplate) {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    job.image.get_or_insert_with(|| IMAGE.to_owned());
    job.args.get_or_insert_with(|| texts(&ARGS));
    job.delete_args.get_or_insert_with(|| texts(&DELETE_ARGS));
    job.job_type.get_or_insert_with(|| "pull-secret".to_owned());
    job.container_name.get_or_insert_with(|| "pull-secret".to_owned());
    job.service_account_name.get_or_insert_with(|| "pullsecret-adapter-job".to_owned());
    job.permanent_exit_codes.get_or_insert_with(|| vec![2, 3, 4, 5, 6]);
    let pairs = |pairs: [(&str, &str); 2]| pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    job.resources.get_or_insert_with(|| Resources {
        requests: pairs([("cpu", "100m"), ("memory", "128Mi")]),
        limits: pairs([("cpu", "500m"), ("memory", "512Mi")]),
    });
    let binding = |(name, places, text, required): Variable| {
        let ValueSource { from, value } = source(places, text);
        Binding { name: name.to_owned(), from, value, required }
    };
    let given = job.env.take().unwrap_or_default();
    let built_in = VARIABLES.into_iter().map(binding);
    let kept = built_in.filter(|built_in| given.iter().all(|given| given.name != built_in.name)).collect::<Vec<_>>();
    job.env = Some(kept.into_iter().chain(given).collect());
}

fn source(places: &[&str], text: Option<&str>) -> ValueSource {
    // That each is a place is what a test checks.
    let from = places.iter().filter_map(|place| place.parse::<Place>().ok()).collect();
    ValueSource { from, value: text.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_places_built_in_are_places() {
        let places = VARIABLES.iter().flat_map(|(_, places, _, _)| places.iter()).chain(NAMESPACE);
        assert!(places.into_iter().all(|place| place.parse::<Place>().is_ok()));
    }
}
