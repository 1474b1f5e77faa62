//! The Roles of `deploy/` on a real API server: they suffice, and the controller needs each right of them.

use fleet_model::names;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Patch, PatchParams};
use kubernetes::Object;
use serde_json::{Value, json};
use testkit::rights::{self, Account, AuditLog};

use crate::cluster::{ADDITIONAL, GLOBAL, Kind, SYNCER, SYSTEM, until};
use crate::rig::{Rig, document};

/// Changes an object, and waits until the controller has restored it.
async fn is_restored<K: Object>(rig: &Rig, name: &str, change: Value) {
    let api = rig.cluster.server.api::<K>(SYSTEM);
    let content = async || {
        let mut content = serde_json::to_value(api.get(name).await.unwrap()).unwrap();
        content.as_object_mut().unwrap().retain(|member, _| member != "metadata" && member != "status");
        content
    };
    let before = content().await;
    drop(api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap());
    until(&format!("{name} is restored"), async || (content().await == before).then_some(())).await;
}

async fn confirmations_of_gone_nodes_are_removed(rig: &Rig) {
    let confirmations = rig.cluster.server.api::<ConfigMap>(SYSTEM);
    let gone: serde_json::Map<String, Value> = (0..2_000).map(|node| (format!("gone-{node}"), json!("1 x"))).collect();
    let patch = Patch::Merge(json!({"data": gone}));
    drop(confirmations.patch(names::GLOBAL_NODES, &PatchParams::default(), &patch).await.unwrap());
    until("they are removed", async || {
        let data = confirmations.get(names::GLOBAL_NODES).await.unwrap().data.unwrap_or_default();
        (!data.contains_key("gone-0")).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_roles_are_sufficient_and_minimal() {
    let Some(audit) = AuditLog::here() else { return };
    let Some(rig) = Rig::new(Kind::Real, &[]).await else { return };
    rig.add("r.io=2").await;
    rig.shows("RolledOut=True/RolledOut").await;
    let change = Patch::Merge(json!({"stringData": {".dockerconfigjson": document("e.io=9")}}));
    let secrets = rig.cluster.server.api::<Secret>(SYSTEM);
    drop(secrets.patch(GLOBAL, &PatchParams::default(), &change).await.unwrap());
    rig.deploys("q.io=1 r.io=2").await;
    rig.shows("RolledOut=True/RolledOut").await;
    is_restored::<ServiceAccount>(&rig, SYNCER, json!({"automountServiceAccountToken": true})).await;
    is_restored::<Role>(&rig, SYNCER, json!({"rules": []})).await;
    is_restored::<RoleBinding>(&rig, SYNCER, json!({"subjects": []})).await;
    is_restored::<DaemonSet>(&rig, SYNCER, json!({"spec": {"template": {"spec": {"hostPID": true}}}})).await;
    rig.shows("RolledOut=True/RolledOut").await;
    confirmations_of_gone_nodes_are_removed(&rig).await;
    rig.cluster.delete::<Secret>(ADDITIONAL).await;
    rig.is_removed().await;
    let client = &rig.cluster.server.client;
    let account = |namespace: &str| Account { namespace: namespace.to_owned(), name: GLOBAL.to_owned() };
    let role =
        |namespace: Option<&str>| rights::Role { namespace: namespace.map(str::to_owned), name: GLOBAL.to_owned() };
    audit.assert_sufficient(&account(SYSTEM));
    audit.assert_minimal(client, &account(SYSTEM), &[role(None)]).await;
    // The Role is minimal without the ClusterRole, which may be missing.
    rig.may_not_list_all_pods().await;
    for namespace in [&rig.cluster.namespace, SYSTEM] {
        audit.assert_sufficient(&account(namespace));
        audit.assert_minimal(client, &account(namespace), &[role(Some(namespace))]).await;
    }
}
