//! Several additional Secrets, by label and priority, on a running controller.

use fleet_model::names;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::cluster::{ADDITIONAL, GLOBAL, Kind, SYSTEM};
use crate::rig::{Rig, document};

async fn create(rig: &Rig, name: &str, metadata: Value, entries: &str) {
    let mut secret = json!({
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": document(entries)},
    });
    secret["metadata"].as_object_mut().unwrap().append(&mut metadata.as_object().unwrap().clone());
    drop(rig.cluster.server.create::<Secret>(SYSTEM, secret).await);
}

async fn patch(rig: &Rig, name: &str, metadata: Value) {
    let patch = Patch::Merge(json!({"metadata": metadata}));
    drop(rig.cluster.server.api::<Secret>(SYSTEM).patch(name, &PatchParams::default(), &patch).await.unwrap());
}

/// The rule that the chart's value `labelledAdditional` adds.
async fn may_list_all(rig: &Rig) {
    let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}]);
    drop(rig.cluster.server.create::<Role>(SYSTEM, json!({"metadata": {"name": "labelled"}, "rules": rules})).await);
    let binding = json!({
        "metadata": {"name": "labelled"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "labelled"},
        "subjects": [{"kind": "ServiceAccount", "name": GLOBAL, "namespace": SYSTEM}],
    });
    drop(rig.cluster.server.create::<RoleBinding>(SYSTEM, binding).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn labelled_secrets_count_by_their_priority() {
    let rig = Rig::new(Kind::Emulator, &[("labelled-additional", "true")]).await.unwrap();
    let mut progress = rig.progress.clone();
    let failure = progress.wait_for(|progress| progress.failure.is_some()).await.unwrap().failure.clone().unwrap();
    assert!(
        failure.starts_with("cannot list secret kube-system/") && failure.contains("permission denied"),
        "{failure}"
    );
    may_list_all(&rig).await;
    rig.add("r.io=2").await;
    rig.deploys("q.io=1 r.io=2").await;
    let label = json!({names::LABEL_ADDITIONAL: "true"});
    let first = json!({"labels": label, "annotations": {names::ANNOTATION_PRIORITY: "10"}});
    create(&rig, "team-a", first, "r.io=3 s.io=3").await;
    rig.deploys("q.io=1 r.io=3 s.io=3").await;
    // Without a label, or with another value of it, it is ignored.
    create(&rig, "other", json!({"labels": {names::LABEL_ADDITIONAL: "false"}}), "o.io=9").await;
    create(&rig, "team-b", json!({"labels": label}), "s.io=4 t.io=4").await;
    rig.deploys("q.io=1 r.io=3 s.io=3 t.io=4").await;
    patch(&rig, "team-a", json!({"annotations": {names::ANNOTATION_PRIORITY: "-1"}})).await;
    rig.deploys("q.io=1 r.io=2 s.io=4 t.io=4").await;
    let reported = rig.shows("Merged=True/Merged").await;
    assert!(reported.starts_with("4 registries, 3 from additional Secrets; in conflict: r.io, s.io"), "{reported}");
    // A bad one keeps its own last good entries, and no others.
    patch(&rig, "team-b", json!({"annotations": {names::ANNOTATION_PRIORITY: "c4n4ry"}})).await;
    let reported = rig.shows("Valid=True/ValidWithWarnings").await;
    assert!(reported.starts_with("team-b: annotation") && !reported.contains("c4n4ry"), "{reported}");
    patch(&rig, "team-a", json!({"labels": {names::LABEL_ADDITIONAL: null}})).await;
    rig.cluster.delete::<Secret>(ADDITIONAL).await;
    rig.deploys("q.io=1 s.io=4 t.io=4").await;
    rig.shows("RolledOut=True/RolledOut").await;
    rig.cluster.delete::<Secret>("team-b").await;
    rig.is_removed().await;
}
