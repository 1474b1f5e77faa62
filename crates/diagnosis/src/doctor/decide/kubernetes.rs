//! The checks of the Kubernetes cluster in which Jobs run.

use kubernetes::{ErrorKind, KubernetesError, PodSummary};

use super::checks::Checks;
use crate::doctor::facts::{KubernetesFacts, RightFacts};
use crate::doctor::{Group, Line, State};

/// The levels of Pod Security that admit no Pod with rights on its node.
const STRICT: [&str; 2] = ["restricted", "baseline"];

/// The reasons of a container that waits for its image.
const UNPULLED: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
];

const NAMESPACE: &str = "namespace";
const POD_SECURITY: &str = "Pod Security";
const IMAGE: &str = "image";

/// Prefix of the names with which Kubernetes authenticates service accounts.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

pub(super) fn lines(facts: Option<&KubernetesFacts>) -> Vec<Line> {
    let mut checks = Checks::of(Group::Kubernetes);
    let Some(facts) = facts else {
        checks.skipped("reachable", "no kubeconfig is given");
        checks.fix("export KUBECONFIG=FILE");
        return checks.lines;
    };
    let unnamed = |error: &KubernetesError| matches!(error.kind, ErrorKind::NotFound | ErrorKind::Forbidden);
    let user = match &facts.user {
        Ok(user) => {
            checks.ok("reachable", format!("{} answers; what follows are the rights of {user}", facts.server));
            Some(user.as_str())
        }
        // The review of the identity is younger than what else is needed.
        Err(error) if unnamed(error) => {
            checks.ok("reachable", format!("{} answers, and does not name the identity", facts.server));
            None
        }
        Err(error) => {
            checks.failed("reachable", error.to_string(), fix_of_connection(error));
            for check in [NAMESPACE, POD_SECURITY, "rights", IMAGE] {
                checks.skipped(check, "the API server does not answer, or does not accept the identity");
            }
            return checks.lines;
        }
    };
    namespace(&mut checks, facts);
    for right in &facts.rights {
        self::right(&mut checks, facts, right, user);
    }
    image(&mut checks, facts);
    checks.lines
}

fn fix_of_connection(error: &KubernetesError) -> &'static str {
    match error.kind {
        ErrorKind::Unauthenticated => "kubectl auth whoami  # after a new login of the kubeconfig's user",
        ErrorKind::Unusable => "kubectl config view --minify  # and set what it lacks",
        _ => "kubectl config set-cluster NAME --server=https://HOST:PORT",
    }
}

/// The namespace of Jobs, and the Pods that it admits.
fn namespace(checks: &mut Checks, facts: &KubernetesFacts) {
    let name = &facts.namespace;
    let label = format!("kubectl label --overwrite namespace {name} pod-security.kubernetes.io/enforce=restricted");
    let found = match &facts.found {
        Ok(Some(found)) => found,
        Ok(None) => {
            let message = format!("{name}, in which Jobs are to run, does not exist; --namespace names another one");
            checks.failed(NAMESPACE, message, format!("kubectl create namespace {name} && {label}"));
            return checks.skipped(POD_SECURITY, "the namespace does not exist");
        }
        Err(error) if error.kind == ErrorKind::Forbidden => {
            checks.skipped(NAMESPACE, format!("this identity may not read the namespace {name}"));
            return checks.skipped(POD_SECURITY, "it is a label of the namespace");
        }
        Err(error) => {
            checks.failed(NAMESPACE, error.to_string(), format!("kubectl get namespace {name}"));
            return checks.skipped(POD_SECURITY, "it is a label of the namespace");
        }
    };
    if found.is_terminating {
        let fix = format!("kubectl wait --for=delete namespace/{name} && kubectl create namespace {name} && {label}");
        checks.failed(NAMESPACE, format!("{name} is being deleted, and takes nothing new"), fix);
    } else {
        checks.ok(NAMESPACE, format!("{name} exists"));
    }
    match found.pod_security.as_deref() {
        Some(level) if STRICT.contains(&level) => checks.ok(POD_SECURITY, format!("{name} enforces {level}")),
        Some(level) => {
            checks.warning(
                POD_SECURITY,
                format!("{name} enforces {level}, and the Jobs need no more than restricted"),
                label,
            );
        }
        None => checks.warning(POD_SECURITY, format!("{name} enforces no level of its own"), label),
    }
}

/// A right of the adapter.
fn right(checks: &mut Checks, facts: &KubernetesFacts, needed: &RightFacts, user: Option<&str>) {
    let RightFacts { right, is_in_namespace, missing } = needed;
    let resource = match right.group {
        "" => right.resource.to_owned(),
        group => format!("{}.{group}", right.resource),
    };
    let object = right.name.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
    let check = format!("{}{object}", right.resource);
    let place = if *is_in_namespace { format!("in {}", facts.namespace) } else { "in all namespaces".to_owned() };
    let missing = match missing {
        Ok(missing) if missing.is_empty() => {
            return checks.ok(&check, format!("{} allowed {place}", right.verbs.join(", ")));
        }
        Ok(missing) => missing,
        Err(error) => return checks.skipped(&check, error.to_string()),
    };
    let named = right.name.as_ref().map(|name| format!(" --resource-name={name}")).unwrap_or_default();
    let subject = subject(user);
    let verbs = missing.join(",");
    // Two rights may be about one resource.
    let object = right.name.as_ref().map(|name| format!("-{name}")).unwrap_or_default();
    let name = format!("pullsecret-adapter-{}{object}", right.resource);
    let namespace = &facts.namespace;
    let words = missing.join(", ");
    if *is_in_namespace {
        let fix = format!(
            "kubectl --namespace {namespace} create role {name} --verb={verbs} --resource={resource}{named} && kubectl --namespace \
             {namespace} create rolebinding {name} --role={name} {subject}"
        );
        checks.failed(&check, format!("{words} not allowed {place}"), fix);
    } else {
        let fix = format!(
            "kubectl create clusterrole {name} --verb={verbs} --resource={resource} && kubectl create clusterrolebinding {name} \
             --clusterrole={name} {subject}"
        );
        let message =
            format!("{words} not allowed {place}: needed where the adapter grants access to each cluster's Secret");
        checks.warning(&check, message, fix);
    }
}

/// The subject of a binding, as kubectl takes it.
fn subject(user: Option<&str>) -> String {
    match user.map(|user| (user, user.strip_prefix(SERVICE_ACCOUNT))) {
        None => "--serviceaccount=hyperfleet-system:pullsecret-adapter".to_owned(),
        Some((_, Some(account))) => format!("--serviceaccount={account}"),
        Some((user, None)) => format!("--user={user}"),
    }
}

/// The image of the adapter's Jobs, as far as their Pods show it.
fn image(checks: &mut Checks, facts: &KubernetesFacts) {
    let namespace = &facts.namespace;
    let pods = match &facts.pods {
        Ok(pods) => pods,
        Err(error) => return checks.skipped(IMAGE, error.to_string()),
    };
    if let Some(name) = facts.missing_pull_secrets.first() {
        let message = format!("the Secret {namespace}/{name}, with which the Jobs' image is pulled, does not exist");
        let fix = format!(
            "kubectl --namespace {namespace} create secret generic {name} --type=kubernetes.io/dockerconfigjson \
             --from-file=.dockerconfigjson=FILE"
        );
        return checks.failed(IMAGE, message, fix);
    }
    let is_unpulled = |pod: &&PodSummary| UNPULLED.contains(&pod.reason.as_str());
    let unpulled = pods.iter().filter(is_unpulled).count();
    match (pods.first(), pods.iter().find(is_unpulled)) {
        (_, Some(pod)) => {
            let PodSummary { name, image, reason, message, .. } = pod;
            let message =
                format!("{unpulled} of {} Pods wait for their image {image}: {reason}: {message}", pods.len());
            checks.failed(IMAGE, message, format!("kubectl --namespace {namespace} describe pod {name}"));
        }
        (Some(pod), None) => checks.ok(IMAGE, format!("no Pod of the Jobs waits for its image {}", pod.image)),
        (None, None) => checks.add(IMAGE, State::Skipped, "no Job has a Pod now"),
    }
}
