//! The DaemonSet of the node syncer.

use std::collections::BTreeMap;

use fleet_model::names;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// The options of the syncer's DaemonSet.
#[derive(Clone, Debug, Default)]
pub struct Syncer {
    /// The image.
    pub image: String,
    /// The priority class of its Pods.
    pub priority_class: String,
    /// The labels of the nodes that it runs on; all nodes if empty.
    pub node_selector: BTreeMap<String, String>,
    /// Maximum number of nodes without a ready Pod during a roll-out: a number or a percentage.
    pub max_unavailable: String,
    /// The syncer's restart policy for the kubelet: `always` or `never`.
    pub restart_policy: String,
}

/// The syncer's program in its image.
const PROGRAM: &str = "sync-global-pullsecret";
/// The folders of the kubelet's file and of the bus; the same on the node and in the container. Unmounts below the first reach
/// the container.
const FOLDERS: [(&str, &str, Option<&str>); 2] =
    [("kubelet", "/var/lib/kubelet", Some("HostToContainer")), ("dbus", "/var/run/dbus", None)];

/// The port of the Pod's address on which Prometheus finds the syncer's metrics.
const METRICS_PORT: u16 = 9110;

/// Maximum memory of a syncer: enough for the largest file that the kubelet reads, parsed and combined.
const MEMORY_LIMIT: &str = "128Mi";

/// The DaemonSet. With a revision its Pods are for that one only, so that a new one means new Pods.
///
/// It is privileged for the reason that the peer's is: the bus refuses a container to restart a unit otherwise, and the
/// kubelet's folder keeps its SELinux label.
///
/// The kubelet's folder has the volumes of all Pods below it. A mount of it without propagation would hold each of them, also
/// after the kubelet has unmounted it for a deleted Pod, so unmounts reach the container. Nothing narrower will do: the file is
/// replaced by a rename in the folder.
pub fn daemon_set(metadata: ObjectMeta, syncer: &Syncer, revision: Option<&str>) -> DaemonSet {
    let secret = format!("{}/{}", names::GLOBAL_NAMESPACE, names::GLOBAL_PULL_SECRET);
    let confirm_in = format!("{}/{}", names::GLOBAL_NAMESPACE, names::GLOBAL_NODES);
    let mut arguments =
        vec!["--secret".to_owned(), secret, "--restart-policy".to_owned(), syncer.restart_policy.clone()];
    arguments
        .extend(["--confirm-in", &confirm_in, "--node", "$(NODE_NAME)", "--pod", "$(POD_NAME)"].map(str::to_owned));
    arguments.extend(["--metrics-listen".to_owned(), format!("$(POD_IP):{METRICS_PORT}")]);
    let mut annotations = BTreeMap::new();
    if let Some(revision) = revision {
        arguments.extend(["--revision", revision, "--only-this-revision", "true"].map(str::to_owned));
        annotations.insert(names::ANNOTATION_REVISION, revision);
    }
    let max_unavailable =
        syncer.max_unavailable.parse::<u64>().map_or_else(|_percentage| json!(syncer.max_unavailable), Value::from);
    let mounts = FOLDERS
        .map(|(name, path, propagation)| json!({"name": name, "mountPath": path, "mountPropagation": propagation}));
    let volumes = FOLDERS.map(|(name, path, _)| json!({"name": name, "hostPath": {"path": path, "type": "Directory"}}));
    let container = json!({
        "name": names::GLOBAL_SYNCER,
        "image": syncer.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [PROGRAM],
        "args": arguments,
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"}],
        "readinessProbe": {
            "exec": {"command": [PROGRAM, "ready"]},
            "periodSeconds": 5,
            "timeoutSeconds": 5,
            "failureThreshold": 1,
            "successThreshold": 1,
        },
        "resources": {"requests": {"cpu": "5m", "memory": "16Mi"}, "limits": {"memory": MEMORY_LIMIT}},
        "securityContext": {"privileged": true, "readOnlyRootFilesystem": true, "runAsUser": 0},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    });
    let labels = json!({"name": names::GLOBAL_SYNCER});
    let spec = json!({
        "selector": {"matchLabels": labels},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": max_unavailable}},
        "template": {
            "metadata": {"labels": labels, "annotations": given(&annotations)},
            "spec": {
                "serviceAccountName": names::GLOBAL_SYNCER,
                "automountServiceAccountToken": true,
                "priorityClassName": syncer.priority_class,
                "nodeSelector": given(&syncer.node_selector),
                "tolerations": [{"operator": "Exists"}],
                "terminationGracePeriodSeconds": 30,
                "containers": [container],
                "volumes": volumes,
            },
        },
    });
    DaemonSet { metadata, spec: serde_json::from_value(spec).ok(), status: None }
}

/// `None` for an empty map, which servers drop.
fn given<K, V>(map: &BTreeMap<K, V>) -> Option<&BTreeMap<K, V>> {
    Some(map).filter(|map| !map.is_empty())
}
