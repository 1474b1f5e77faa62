//! Objects as they are to be.

use std::collections::BTreeMap;

use fleet_model::names;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::{POD, Syncer, daemon_set, digest, is_drifted, metadata};

fn syncer() -> Syncer {
    Syncer {
        image: "syncer:1".to_owned(),
        priority_class: "p".to_owned(),
        node_selector: BTreeMap::new(),
        max_unavailable: "3".to_owned(),
        restart_policy: "never".to_owned(),
    }
}

#[test]
fn the_daemon_set_is_what_the_syncer_needs() {
    let set = daemon_set(metadata("a", BTreeMap::new(), None), &syncer(), Some("7"));
    let value = serde_json::to_value(&set).unwrap();
    let pod = &value["spec"]["template"];
    let mut arguments = vec!["--secret", "kube-system/global-pull-secret", "--restart-policy", "never"];
    arguments.extend(["--confirm-in", "kube-system/global-pull-secret-nodes"]);
    arguments.extend(["--node", "$(NODE_NAME)", "--pod", "$(POD_NAME)"]);
    arguments.extend(["--metrics-listen", "$(POD_IP):9110"]);
    arguments.extend(["--revision", "7", "--only-this-revision", "true"]);
    assert_eq!(pod["spec"]["containers"][0]["args"], serde_json::json!(arguments));
    assert_eq!(pod["metadata"]["annotations"]["hypershift.openshift.io/global-pull-secret-revision"], "7");
    assert_eq!(pod["metadata"]["labels"]["name"], "global-pull-secret-syncer");
    assert_eq!(pod["spec"]["tolerations"][0]["operator"], "Exists");
    assert_eq!(value["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], 3);
    assert_eq!(value["spec"]["selector"]["matchLabels"].as_object().unwrap().len(), 1, "it can never be changed");
}

/// The object that runs privileged on every node, to the last field: a change of it is to be seen.
#[test]
fn the_daemon_set_is_the_golden_one() {
    for (revision, golden) in [
        (None, include_str!("../../tests/golden/daemon-set-immediate.json")),
        (Some("7"), include_str!("../../tests/golden/daemon-set-rolling.json")),
    ] {
        let set = daemon_set(metadata("global-pull-secret-syncer", BTreeMap::new(), None), &syncer(), revision);
        assert_eq!(serde_json::to_string_pretty(&set).unwrap() + "\n", golden);
    }
}

/// kubelet unmounts the volumes of deleted Pods; a container that holds copies would keep them busy and readable.
#[test]
fn unmounts_on_the_node_reach_the_syncer() {
    let set = daemon_set(metadata("a", BTreeMap::new(), None), &syncer(), None);
    let container = &set.spec.unwrap().template.spec.unwrap().containers[0];
    let mounts = container.volume_mounts.as_ref().unwrap();
    let kubelet = mounts.iter().find(|mount| mount.mount_path == "/var/lib/kubelet").unwrap();
    assert_eq!(kubelet.mount_propagation.as_deref(), Some("HostToContainer"));
    assert!(container.resources.as_ref().unwrap().limits.as_ref().unwrap().contains_key("memory"));
}

#[test]
fn a_missing_field_or_another_manager_of_an_exclusive_one_is_drift() {
    let desired = |value: Value| -> ConfigMap { serde_json::from_value(value).unwrap() };
    let live = |data: Value, fields: Value| -> ConfigMap {
        let entry = json!({"manager": "x", "operation": "Update", "fieldsV1": fields});
        let metadata = json!({"labels": {"a": "b", "theirs": "c"}, "managedFields": [entry]});
        serde_json::from_value(json!({"metadata": metadata, "data": data})).unwrap()
    };
    let wanted = desired(json!({"metadata": {"labels": {"a": "b"}}, "data": {"a": "1"}}));
    let theirs = json!({"f:data": {"f:b": {}}});
    let same = live(json!({"a": "1", "b": "2"}), theirs);
    assert!(!is_drifted(&wanted, &same, &[]) && !is_drifted(&wanted, &same, &["data.a", "binaryData"]));
    assert!(is_drifted(&wanted, &same, &["data"]) && is_drifted(&wanted, &same, &["data.b"]));
    for data in [json!({"a": "2"}), json!({"b": "1"}), json!({})] {
        assert!(is_drifted(&wanted, &live(data, json!({})), &[]));
    }
}

/// A live object whose container's image the controller owns by its apply.
fn applied(value: &Value) -> DaemonSet {
    let container = json!({"k:{\"name\":\"global-pull-secret-syncer\"}": {".": {}, "f:image": {}, "f:name": {}}});
    let pod = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": container}}}});
    let entry = json!({"manager": "global-pull-secret", "operation": "Apply", "fieldsV1": pod});
    let mut value = value.clone();
    value["metadata"]["managedFields"] = json!([entry]);
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_value_that_a_webhook_changes_is_no_drift() {
    let annotated = |digest: &str| [(names::ANNOTATION_APPLIED.to_owned(), digest.to_owned())].into();
    let desired = daemon_set(metadata("a", annotated("1"), None), &syncer(), None);
    let mut live = serde_json::to_value(&desired).unwrap();
    let container = "/spec/template/spec/containers/0";
    live.pointer_mut(container).unwrap()["image"] = json!("mirror.example/syncer:1");
    let containers = live.pointer_mut("/spec/template/spec/containers").unwrap().as_array_mut().unwrap();
    containers.push(json!({"name": "injected"}));
    assert!(!is_drifted(&desired, &applied(&live), POD));
    // A field that another manager has changed is owned no more.
    assert!(is_drifted(&desired, &serde_json::from_value(live.clone()).unwrap(), POD));
    live.pointer_mut(container).unwrap()["securityContext"]["privileged"] = json!(false);
    assert!(is_drifted(&desired, &applied(&live), POD));
    live.pointer_mut(container).unwrap()["securityContext"]["privileged"] = json!(true);
    let changed = daemon_set(metadata("a", annotated("2"), None), &syncer(), None);
    assert!(is_drifted(&changed, &applied(&live), POD));
    live["spec"]["template"]["spec"]["containers"] = json!([{"name": "injected"}]);
    assert!(is_drifted(&desired, &applied(&live), POD));
}

/// The controller was stopped between the transfer of ownership and the apply.
#[test]
fn a_transfer_without_its_apply_is_drift() {
    let desired = daemon_set(metadata("a", BTreeMap::new(), None), &syncer(), None);
    let live = |fields: Value| -> DaemonSet {
        let pod = json!({"f:spec": {"f:template": {"f:spec": fields}}});
        let entry = json!({"manager": "global-pull-secret", "operation": "Apply", "fieldsV1": pod});
        let mut live = serde_json::to_value(&desired).unwrap();
        live["spec"]["template"]["spec"]["hostPID"] = json!(true);
        live["metadata"]["managedFields"] = json!([entry]);
        serde_json::from_value(live).unwrap()
    };
    let container =
        |name: &str| json!({"f:containers": {format!("k:{{\"name\":\"{name}\"}}"): {".": {}, "f:name": {}}}});
    assert!(!is_drifted(&desired, &live(container("global-pull-secret-syncer")), POD));
    assert!(is_drifted(&desired, &live(container("extra")), POD));
    assert!(is_drifted(&desired, &live(json!({"f:hostPID": {}})), POD));
}

#[test]
fn a_digest_is_about_everything_but_the_metadata() {
    let set = |name: &str, revision| daemon_set(metadata(name, BTreeMap::new(), None), &syncer(), revision);
    assert_eq!(digest(&set("a", None)), digest(&set("b", None)));
    assert_ne!(digest(&set("a", None)), digest(&set("a", Some("7"))));
    assert_eq!(digest(&set("a", None)).len(), 32);
}
