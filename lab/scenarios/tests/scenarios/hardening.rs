//! The manifests of `deploy/` and `examples/`: who gets a token, who may talk to whom, and that nothing travels in clear text.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::Value;

use crate::helm::{ROOT, files};

/// Of `deploy/`, beside the objects.
const NO_OBJECTS: [&str; 3] = ["README.md", "kustomization.yaml", "values.yaml"];
const JOB: &str = include_str!("../../../../examples/pull-secret-job.yaml");

/// The workloads that call the Kubernetes API, and therefore need a ServiceAccount's token.
const CALLERS_OF_KUBERNETES: [&str; 4] =
    ["global-pull-secret", "pullsecret-adapter", "pullsecret-cls-123-gen1", "sentinel"];

/// A workload's Pods.
struct Workload {
    name: String,
    namespace: String,
    labels: BTreeMap<String, String>,
    pod: PodSpec,
}

fn objects() -> Vec<Value> {
    let files = files(&Path::new(ROOT).join("deploy"));
    let manifests = files.into_iter().filter(|(name, _)| !NO_OBJECTS.contains(&name.to_str().unwrap()));
    let parse = |text: String| -> Vec<Value> { serde_saphyr::from_multiple(&text).unwrap() };
    manifests.map(|(_, text)| text).chain([JOB.to_owned()]).flat_map(parse).collect()
}

fn workloads() -> Vec<Workload> {
    let workload = |object: Value| {
        let template = match object["kind"].as_str()? {
            "Deployment" | "Job" => &object["spec"]["template"],
            "CronJob" => &object["spec"]["jobTemplate"]["spec"]["template"],
            _ => return None,
        };
        let text = |member: &str| object["metadata"][member].as_str().unwrap().to_owned();
        let labels = serde_json::from_value(template["metadata"]["labels"].clone()).unwrap();
        let pod = serde_json::from_value(template["spec"].clone()).unwrap();
        Some(Workload { name: text("name"), namespace: text("namespace"), labels, pod })
    };
    let found: Vec<Workload> = objects().into_iter().filter_map(workload).collect();
    assert_eq!(found.len(), 6);
    found
}

fn policies() -> Vec<NetworkPolicy> {
    let of_kind = |object: &Value| object["kind"] == "NetworkPolicy";
    objects().into_iter().filter(of_kind).map(|object| serde_json::from_value(object).unwrap()).collect()
}

/// The policies that name the workload's own labels, not all Pods of the namespace.
fn policies_of(workload: &Workload) -> Vec<NetworkPolicy> {
    let selects = |policy: &NetworkPolicy| {
        let spec = policy.spec.as_ref().unwrap();
        let selected =
            spec.pod_selector.as_ref().and_then(|selector| selector.match_labels.clone()).unwrap_or_default();
        let is_selected = selected.iter().all(|(key, value)| workload.labels.get(key) == Some(value));
        policy.metadata.namespace.as_deref() == Some(&workload.namespace) && !selected.is_empty() && is_selected
    };
    policies().into_iter().filter(selects).collect()
}

#[test]
fn only_callers_of_kubernetes_get_a_token() {
    for workload in workloads() {
        let has_token = workload.pod.automount_service_account_token != Some(false);
        assert_eq!(has_token, CALLERS_OF_KUBERNETES.contains(&workload.name.as_str()), "{}", workload.name);
        assert!(!has_token || workload.pod.service_account_name.is_some(), "{}: the default account", workload.name);
    }
}

#[test]
fn every_workload_has_a_policy_for_both_directions_and_its_ports() {
    for workload in workloads() {
        let policies = policies_of(&workload);
        let [policy] = &policies[..] else { panic!("{}: {} policies", workload.name, policies.len()) };
        let spec = policy.spec.as_ref().unwrap();
        assert_eq!(spec.policy_types.as_deref(), Some(&["Ingress".to_owned(), "Egress".to_owned()][..]));
        assert!(spec.egress.iter().flatten().all(|rule| rule.ports.is_some()), "{}: all ports", workload.name);
        let open = spec.ingress.iter().flatten().flat_map(|rule| {
            assert!(rule.from.is_some(), "{}: open to everybody", workload.name);
            rule.ports.iter().flatten().map(|port| port.port.clone().unwrap())
        });
        let mut open: Vec<String> = open.map(|port| format!("{port:?}")).collect();
        // The kubelet's probes need no rule.
        let ports = workload.pod.containers.iter().flat_map(|container| container.ports.iter().flatten());
        let names = ports.filter_map(|port| port.name.clone()).filter(|name| name != "health");
        let mut expected: Vec<String> = names.map(|name| format!("String({name:?})")).collect();
        open.sort();
        expected.sort();
        assert_eq!(open, expected, "{}", workload.name);
    }
}

#[test]
fn nothing_is_sent_in_clear_text() {
    for object in objects() {
        let text = serde_json::to_string(&object).unwrap();
        assert!(!text.contains("http://") && !text.contains("amqp://"), "{}", object["metadata"]["name"]);
    }
}

#[test]
fn images_have_a_version() {
    for workload in workloads() {
        for container in workload.pod.containers {
            let image = container.image.unwrap();
            let version = image.rsplit_once(':').map(|(_, version)| version);
            assert!(version.is_some_and(|version| version != "latest"), "{}: {image}", workload.name);
        }
    }
}

#[test]
fn every_workload_has_the_least_of_rights_on_its_node() {
    for workload in workloads() {
        let security = workload.pod.security_context.unwrap();
        let of_pod = security.run_as_non_root;
        assert_eq!(security.seccomp_profile.unwrap().type_, "RuntimeDefault", "{}", workload.name);
        for container in workload.pod.containers {
            let security = container.security_context.unwrap();
            assert_eq!(security.run_as_non_root.or(of_pod), Some(true), "{}", workload.name);
            assert_eq!(security.allow_privilege_escalation, Some(false), "{}", workload.name);
            assert_eq!(security.read_only_root_filesystem, Some(true), "{}", workload.name);
            assert_eq!(security.capabilities.unwrap().drop, Some(vec!["ALL".to_owned()]), "{}", workload.name);
            let resources = container.resources.unwrap();
            assert!(resources.requests.unwrap().contains_key("cpu"), "{}", workload.name);
            assert!(resources.limits.unwrap().contains_key("memory"), "{}", workload.name);
        }
    }
}

#[test]
fn no_object_has_a_credential() {
    for object in objects() {
        assert_ne!(object["kind"], "Secret", "{}", object["metadata"]["name"]);
    }
}
