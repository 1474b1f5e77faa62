//! Objects as they are to be.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Syncer, daemon_set, differs, metadata};

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
    arguments.extend(["--revision", "7", "--only-this-revision", "true"]);
    assert_eq!(pod["spec"]["containers"][0]["args"], serde_json::json!(arguments));
    assert_eq!(pod["metadata"]["annotations"]["hypershift.openshift.io/global-pull-secret-revision"], "7");
    assert_eq!(pod["metadata"]["labels"]["name"], "global-pull-secret-syncer");
    assert_eq!(pod["spec"]["tolerations"][0]["operator"], "Exists");
    assert_eq!(value["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], 3);
    assert_eq!(value["spec"]["selector"]["matchLabels"].as_object().unwrap().len(), 1, "it can never be changed");
}

#[test]
fn others_labels_and_finalizers_stay() {
    let observed = ObjectMeta {
        labels: Some([("theirs".to_owned(), "x".to_owned())].into()),
        finalizers: Some(vec!["theirs/f".to_owned()]),
        uid: Some("u".to_owned()),
        ..ObjectMeta::default()
    };
    let ours = metadata("a", BTreeMap::new(), Some(&observed));
    assert_eq!(
        (ours.labels.unwrap().len(), ours.finalizers, ours.uid),
        (2, observed.finalizers.clone(), observed.uid.clone())
    );
}

#[test]
fn differences_count_both_ways() {
    let desired = serde_json::json!({"spec": {"a": 1, "list": [{"b": "x"}]}});
    let same = serde_json::json!({"metadata": {"uid": "u"}, "status": {"x": 1}, "spec": {"a": 1, "list": [{"b": "x", "dnsPolicy": "ClusterFirst", "empty": {}}]}});
    assert!(!differs(&desired, &same));
    for other in [
        serde_json::json!({"spec": {"a": 2, "list": [{"b": "x"}]}}),
        serde_json::json!({"spec": {"a": 1, "list": []}}),
        serde_json::json!({"spec": {"a": 1, "list": [{"b": "x", "c": "y"}]}}),
        serde_json::json!({"spec": {"a": 1, "list": [{"b": "x"}], "more": true}}),
        serde_json::json!({"spec": {"list": [{"b": "x"}]}}),
    ] {
        assert!(differs(&desired, &other), "{other}");
    }
}
