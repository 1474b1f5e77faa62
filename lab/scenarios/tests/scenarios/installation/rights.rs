//! Tables of what the components may do in Kubernetes, as the API server itself answers.

use super::{Plane, text_of};

const API: &str = "hyperfleet-system:hyperfleet-api";
const SENTINEL: &str = "hyperfleet-system:sentinel";
const ADAPTER: &str = "hyperfleet-system:pullsecret-adapter";
const JOB: &str = "hyperfleet-pull-secret:pullsecret-adapter-job";
const SWEEP: &str = "hyperfleet-system:pull-secret-sweep";
const CONTROLLER: &str = "clusters-example:global-pull-secret";
const HOSTED: &str = "kube-system:global-pull-secret";

/// Account, verb, resource, namespace, and whether it may.
const RIGHTS: &[(&str, &str, &str, &str, bool)] = &[
    (SENTINEL, "create", "leases", "hyperfleet-system", true),
    (SENTINEL, "update", "leases/hyperfleet-sentinel-clusters-1-of-1", "hyperfleet-system", true),
    (SENTINEL, "patch", "leases/hyperfleet-sentinel-clusters-1-of-1-position", "hyperfleet-system", true),
    (SENTINEL, "update", "leases/other", "hyperfleet-system", false),
    (SENTINEL, "get", "secrets", "hyperfleet-system", false),
    (SENTINEL, "get", "secrets", "hyperfleet-pull-secret", false),
    (API, "get", "secrets", "hyperfleet-system", false),
    (API, "list", "configmaps", "hyperfleet-system", false),
    (ADAPTER, "create", "jobs", "hyperfleet-pull-secret", true),
    (ADAPTER, "watch", "jobs", "hyperfleet-pull-secret", true),
    (ADAPTER, "get", "secrets", "hyperfleet-pull-secret", true),
    (ADAPTER, "list", "secrets", "hyperfleet-pull-secret", false),
    (ADAPTER, "create", "pods", "hyperfleet-pull-secret", false),
    (ADAPTER, "patch", "jobs", "hyperfleet-pull-secret", false),
    (ADAPTER, "patch", "configmaps/pullsecret-store-check", "hyperfleet-pull-secret", true),
    (ADAPTER, "patch", "configmaps/other", "hyperfleet-pull-secret", false),
    (ADAPTER, "get", "secrets", "hyperfleet-system", false),
    (ADAPTER, "create", "jobs", "hyperfleet-system", false),
    (ADAPTER, "create", "serviceaccounts/token", "hyperfleet-system", false),
    (ADAPTER, "impersonate", "serviceaccounts", "hyperfleet-pull-secret", false),
    (ADAPTER, "get", "secrets", "clusters-example", false),
    (ADAPTER, "get", "secrets/cls-123-pull-secret", "clusters-cls-123", true),
    (ADAPTER, "patch", "secrets/cls-123-pull-secret", "clusters-cls-123", false),
    (ADAPTER, "create", "roles", "clusters-example", true),
    (ADAPTER, "patch", "roles", "clusters-example", false),
    (ADAPTER, "create", "clusterroles", "", false),
    (ADAPTER, "create", "clusterrolebindings", "", false),
    (ADAPTER, "bind", "clusterroles", "", false),
    (ADAPTER, "delete", "validatingadmissionpolicies", "", false),
    (JOB, "get", "namespaces", "", true),
    (JOB, "list", "namespaces", "", false),
    (JOB, "get", "secrets", "hyperfleet-pull-secret", false),
    (JOB, "create", "secrets", "clusters-cls-123", true),
    (JOB, "patch", "secrets/cls-123-pull-secret", "clusters-cls-123", true),
    (JOB, "get", "secrets/etcd-client-tls", "clusters-cls-123", false),
    (JOB, "create", "secrets", "clusters-example", false),
    (SWEEP, "get", "secrets", "hyperfleet-system", false),
    (CONTROLLER, "watch", "secrets/pull-secret", "clusters-example", true),
    (CONTROLLER, "watch", "secrets/etcd-client-tls", "clusters-example", false),
    (CONTROLLER, "patch", "secrets/pull-secret", "clusters-example", false),
    (HOSTED, "watch", "secrets/additional-pull-secret", "kube-system", true),
    (HOSTED, "patch", "secrets/additional-pull-secret", "kube-system", false),
    (HOSTED, "watch", "secrets/other", "kube-system", false),
    (HOSTED, "create", "daemonsets", "kube-system", true),
    (HOSTED, "get", "secrets", "default", false),
    (HOSTED, "list", "pods", "default", true),
    (HOSTED, "watch", "pods", "default", false),
];

/// Asks the API server about each line of the table.
pub(super) fn check_components(plane: &Plane) {
    for (account, verb, resource, namespace, expected) in RIGHTS {
        let user = format!("system:serviceaccount:{account}");
        let (namespace_of, _) = account.split_once(':').unwrap();
        let group = format!("system:serviceaccounts:{namespace_of}");
        let mut arguments = vec![*verb, resource, "--as", &user, "--as-group", &group];
        arguments.extend(["--as-group", "system:authenticated", "--as-group", "system:serviceaccounts"]);
        if !namespace.is_empty() {
            arguments.extend(["--namespace", namespace]);
        }
        assert_eq!(may(plane, &arguments), *expected, "{account} {verb} {resource} in {namespace:?}");
    }
}

/// Asks the API server, by the arguments of `kubectl auth can-i`.
fn may(plane: &Plane, arguments: &[&str]) -> bool {
    let said = text_of(&plane.try_kubectl(&[&["auth", "can-i"], arguments].concat()));
    let answer = said.lines().find(|line| line.starts_with("yes") || line.starts_with("no"));
    answer.unwrap_or_else(|| panic!("{arguments:?}: {said}")).starts_with("yes")
}

/// The subjects of `rotation.subjects` may keep a rotation's record, and nothing else.
pub(super) fn check_rotation(plane: &Plane) {
    let group = ["--as", "anybody", "--as-group", "fleet:operators"];
    let user = ["--as", "jane@example.com"];
    let account = ["--as", "system:serviceaccount:pipelines:rotation"];
    for identity in [&group[..], &user, &account] {
        for (verb, resource, namespace, expected) in [
            ("create", "configmaps", "pull-secret-jobs", true),
            ("delete", "configmaps", "pull-secret-jobs", true),
            ("update", "leases.coordination.k8s.io", "pull-secret-jobs", true),
            ("get", "secrets", "pull-secret-jobs", false),
            ("create", "jobs.batch", "pull-secret-jobs", false),
            ("get", "configmaps", "hyperfleet-system", false),
        ] {
            let arguments = [&[verb, resource, "--namespace", namespace], identity].concat();
            assert_eq!(may(plane, &arguments), expected, "{arguments:?}");
        }
    }
    assert!(!may(plane, &["get", "configmaps", "--namespace", "pull-secret-jobs", "--as", "anybody"]));
}

/// A command of kubectl as the adapter, in the namespace of a hosted control plane, and what the API server says against it.
const GRANTS: &[(&str, &str, Option<&str>)] = &[
    (
        "clusters-example",
        "create role pullsecret-adapter-job:a-pull-secret --verb=get,patch,delete --resource=secrets --resource-name=a-pull-secret",
        None,
    ),
    (
        "clusters-example",
        "create rolebinding pullsecret-adapter-job:a-pull-secret --role=pullsecret-adapter-job:a-pull-secret --serviceaccount=hyperfleet-pull-secret:pullsecret-adapter-job",
        None,
    ),
    ("clusters-example", "create role acme:b-pull-secret --verb=create --resource=secrets", None),
    (
        "clusters-example",
        "create role pullsecret-adapter:a-pull-secret --verb=get --resource=secrets --resource-name=a-pull-secret",
        None,
    ),
    (
        "clusters-example",
        "create rolebinding pullsecret-adapter:a-pull-secret --role=pullsecret-adapter:a-pull-secret --serviceaccount=hyperfleet-system:pullsecret-adapter",
        None,
    ),
    ("clusters-example", "delete rolebinding pullsecret-adapter:a-pull-secret", None),
    ("clusters-example", "delete role pullsecret-adapter:a-pull-secret", None),
    (
        "kube-system",
        "create role pullsecret-adapter-job:c-pull-secret --verb=get --resource=secrets --resource-name=c-pull-secret",
        Some("in the namespaces of its destinations only"),
    ),
    ("hyperfleet-system", "delete role sentinel", Some("in the namespaces of its destinations only")),
    (
        "clusters-example",
        "create role pullsecret-adapter-job:etcd-tls --verb=get --resource=secrets --resource-name=etcd-tls",
        Some("Secrets named *-pull-secret only"),
    ),
    (
        "clusters-example",
        "create role c-pull-secret --verb=get --resource=secrets --resource-name=c-pull-secret",
        Some("Secrets named *-pull-secret only"),
    ),
    (
        "clusters-example",
        "create role pullsecret-adapter-job:c-pull-secret --verb=get --resource=secrets",
        Some("the Secret that the Role is named after"),
    ),
    (
        "clusters-example",
        "create role pullsecret-adapter-job:c-pull-secret --verb=get --resource=secrets --resource-name=etcd-tls",
        Some("the Secret that the Role is named after"),
    ),
    (
        "clusters-example",
        "create role pullsecret-adapter-job:c-pull-secret --verb=* --resource=secrets --resource-name=c-pull-secret",
        Some("the Secret that the Role is named after"),
    ),
    (
        "clusters-example",
        "create role pullsecret-adapter-job:c-pull-secret --verb=get --resource=configmaps --resource-name=c-pull-secret",
        Some("the Secret that the Role is named after"),
    ),
    (
        "clusters-example",
        "create role pullsecret-adapter:c-pull-secret --verb=get,patch --resource=secrets --resource-name=c-pull-secret",
        Some("the Secret that the Role is named after"),
    ),
    (
        "clusters-example",
        "create role pullsecret-adapter:c-pull-secret --verb=create --resource=secrets",
        Some("the Secret that the Role is named after"),
    ),
    (
        "clusters-example",
        "create rolebinding pullsecret-adapter:d-pull-secret --role=pullsecret-adapter-job:d-pull-secret --serviceaccount=hyperfleet-system:pullsecret-adapter",
        Some("to itself and to the service accounts of its Jobs"),
    ),
    (
        "clusters-example",
        "create rolebinding pullsecret-adapter-job:d-pull-secret --role=pullsecret-adapter-job:d-pull-secret --serviceaccount=clusters-example:pullsecret-adapter-job",
        Some("to itself and to the service accounts of its Jobs"),
    ),
    (
        "clusters-example",
        "create rolebinding acme:d-pull-secret --role=acme:d-pull-secret --user=jane",
        Some("to itself and to the service accounts of its Jobs"),
    ),
    (
        "clusters-example",
        "create rolebinding acme:d-pull-secret --clusterrole=cluster-admin --serviceaccount=hyperfleet-pull-secret:acme",
        Some("permissions not currently held"),
    ),
];

/// Does what the table has as the adapter, which is refused what would be too much.
pub(super) fn check_what_the_adapter_may_grant(plane: &Plane) {
    let user = format!("system:serviceaccount:{ADAPTER}");
    let as_adapter = |namespace: &str, command: &str| {
        let arguments = ["--as", &user, "--namespace", namespace];
        let words: Vec<&str> = command.split(' ').collect();
        plane.try_kubectl(&[&arguments, &words[..]].concat())
    };
    // The policy is in force some time after it was created.
    let probe = "create role x --verb=get --resource=secrets --dry-run=server";
    let is_in_force = (0..1_000).any(|_| !as_adapter("kube-system", probe).status.success());
    assert!(is_in_force, "the policy is not in force");
    for (namespace, command, refusal) in GRANTS {
        let output = as_adapter(namespace, command);
        let said = text_of(&output);
        assert_eq!(output.status.success(), refusal.is_none(), "{command}: {said}");
        assert!(refusal.is_none_or(|refusal| said.contains(refusal)), "{command}: {said}");
    }
}
