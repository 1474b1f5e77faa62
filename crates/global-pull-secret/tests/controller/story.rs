//! The specification's walk-through, and what comes after it.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ListParams, Patch, PatchParams};
use rstest::rstest;
use serde_json::json;

use crate::cluster::{ADDITIONAL, GLOBAL, Kind, SYNCER, SYSTEM, until};
use crate::rig::{Rig, document};

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_walk_through(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind, &[]).await else { return };
    // Nothing is there before.
    assert_eq!(rig.deployed().await, None);
    rig.add("r.io=2 q.io=3").await;
    rig.deploys("q.io=3 r.io=2").await;
    assert_eq!(rig.shows("RolledOut=True/RolledOut").await, "3/3 nodes have the content");
    assert_eq!(rig.shows("Merged=True/Merged").await, "2 registries, 2 from additional Secrets; in conflict: q.io");
    // The specification's three commands.
    until("the DaemonSet counts three ready nodes", async || {
        let set: DaemonSet = rig.cluster.get(SYNCER).await?;
        (set.status?.number_ready == 3).then_some(())
    })
    .await;
    let merged: Secret = rig.cluster.get(GLOBAL).await.unwrap();
    assert_eq!(merged.type_.as_deref(), Some("kubernetes.io/dockerconfigjson"));
    let labelled = ListParams::default().labels("name=global-pull-secret-syncer");
    assert_eq!(rig.cluster.server.api::<Pod>(SYSTEM).list(&labelled).await.unwrap().items.len(), 3);
    // A change.
    rig.add("r.io=4").await;
    rig.deploys("q.io=1 r.io=4").await;
    rig.shows("RolledOut=True/RolledOut").await;
    // An invalid change; the original is rotated meanwhile.
    rig.cluster.put_secret(SYSTEM, ADDITIONAL, r#"{"auths": {"r.io": {"auth": "c4n4ry!"}}}"#).await;
    let reported = rig.shows("Valid=False/InvalidSecret").await;
    assert_eq!(reported, r#"auths["r.io"].auth: not base64 (line 1, column 29) (its last good entries stay)"#);
    rig.original("q.io=5 s.io=6").await;
    rig.deploys("q.io=5 r.io=4 s.io=6").await;
    rig.shows("RolledOut=True/RolledOut").await;
    // The end.
    rig.cluster.delete::<Secret>(ADDITIONAL).await;
    rig.is_removed().await;
    let events = until("all Events are published", async || {
        let events = rig.events().await;
        events.contains(&"CleanedUp".to_owned()).then_some(events)
    })
    .await;
    for reason in ["Valid", "Merged", "RollingOut", "RolledOut", "InvalidSecret", "Reverting", "CleanedUp"] {
        assert!(events.contains(&reason.to_owned()), "{reason} in {events:?}");
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_when_nothing_changes(#[case] kind: Kind) {
    let Some(mut rig) = Rig::new(kind, &[]).await else { return };
    rig.add("r.io=2").await;
    rig.shows("RolledOut=True/RolledOut").await;
    let versions = async || {
        let version = |version: Option<String>| version.unwrap();
        [
            version(rig.cluster.get::<Secret>(GLOBAL).await.unwrap().metadata.resource_version),
            version(rig.cluster.get::<ServiceAccount>(SYNCER).await.unwrap().metadata.resource_version),
            version(rig.cluster.get::<Role>(SYNCER).await.unwrap().metadata.resource_version),
            version(rig.cluster.get::<RoleBinding>(SYNCER).await.unwrap().metadata.resource_version),
            rig.cluster.get::<DaemonSet>(SYNCER).await.unwrap().metadata.generation.unwrap().to_string(),
        ]
    };
    let before = versions().await;
    // The same meaning, spelled otherwise; and a controller that knows nothing.
    rig.cluster.put_secret(SYSTEM, ADDITIONAL, &document("r.io=2").replace(": ", " :\n")).await;
    rig.cluster.put_secret(&rig.cluster.namespace, "pull-secret", &document("q.io=1").replace(": ", "  :  ")).await;
    rig.stop();
    let calls = if rig.cluster.server.is_real() { Vec::new() } else { rig.cluster.emulator().calls() };
    rig.restart().await;
    let complete = rig.progress.wait_for(|progress| progress.has_synced).await.unwrap().clone();
    assert_eq!(complete.failure, None);
    let since = if rig.cluster.server.is_real() { Vec::new() } else { rig.cluster.emulator().calls() };
    let its = since.iter().skip(calls.len()).filter(|call| call.user_agent.starts_with("global-pull-secret/"));
    let writes: Vec<&str> =
        its.map(|call| call.verb.as_str()).filter(|verb| !["list", "watch"].contains(verb)).collect();
    assert_eq!(writes, [""; 0]);
    let rig = rig;
    let version = async || rig.cluster.get::<Secret>(GLOBAL).await.unwrap().metadata.resource_version.unwrap();
    assert_eq!(version().await, before[0]);
    let after = [
        version().await,
        rig.cluster.get::<ServiceAccount>(SYNCER).await.unwrap().metadata.resource_version.unwrap(),
        rig.cluster.get::<Role>(SYNCER).await.unwrap().metadata.resource_version.unwrap(),
        rig.cluster.get::<RoleBinding>(SYNCER).await.unwrap().metadata.resource_version.unwrap(),
        rig.cluster.get::<DaemonSet>(SYNCER).await.unwrap().metadata.generation.unwrap().to_string(),
    ];
    assert_eq!(after, before);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn drift_is_repaired_and_unmanaged_objects_are_not_touched(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind, &[]).await else { return };
    let theirs = json!({"metadata": {"name": SYNCER}, "rules": []});
    drop(rig.cluster.server.create::<Role>(SYSTEM, theirs).await);
    rig.add("r.io=2").await;
    let reported = rig.shows("Degraded=True/UnmanagedObject").await;
    assert_eq!(reported, "unmanaged, left alone: role global-pull-secret-syncer");
    assert!(rig.cluster.get::<Role>(SYNCER).await.unwrap().rules.unwrap_or_default().is_empty());
    rig.cluster.delete::<Role>(SYNCER).await;
    rig.shows("Degraded=False/AsExpected").await;
    assert_eq!(rig.cluster.get::<Role>(SYNCER).await.unwrap().rules.unwrap().len(), 2);
    let parameters = PatchParams::default();
    let extra = json!([{"name": "extra", "image": "evil"}]);
    let volume = json!({"name": "root", "hostPath": {"path": "/"}});
    let pod = json!({"containers": extra, "initContainers": [{"name": "early", "image": "evil"}], "volumes": [volume], "hostPID": true});
    let drift = json!({"spec": {"template": {"spec": pod}}});
    let sets = rig.cluster.server.api::<DaemonSet>(SYSTEM);
    drop(sets.patch(SYNCER, &parameters, &Patch::Strategic(drift)).await.unwrap());
    let secrets = rig.cluster.server.api::<Secret>(SYSTEM);
    let evil = json!({"stringData": {".dockerconfigjson": document("evil.io=9")}});
    drop(secrets.patch(GLOBAL, &parameters, &Patch::Merge(evil)).await.unwrap());
    rig.cluster.delete::<RoleBinding>(SYNCER).await;
    rig.cluster.delete::<ServiceAccount>(SYNCER).await;
    rig.deploys("q.io=1 r.io=2").await;
    until("all is repaired", async || {
        let set: DaemonSet = rig.cluster.get(SYNCER).await?;
        let pod = set.spec?.template.spec?;
        let is_right = pod.containers.len() == 1
            && pod.init_containers.unwrap_or_default().is_empty()
            && pod.volumes?.len() == 2
            && !pod.host_pid.unwrap_or_default();
        let all = rig.cluster.get::<RoleBinding>(SYNCER).await.is_some()
            && rig.cluster.get::<ServiceAccount>(SYNCER).await.is_some();
        (is_right && all).then_some(())
    })
    .await;
    rig.shows("RolledOut=True/RolledOut").await;
    rig.is_at_rest().await;
}

/// OpenShift's controllers add pull secrets and tokens to every ServiceAccount, and would add them again and again.
#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn pull_secrets_that_others_add_to_the_service_account_stay(#[case] kind: Kind) {
    let Some(mut rig) = Rig::new(kind, &[]).await else { return };
    rig.add("r.io=2").await;
    rig.shows("RolledOut=True/RolledOut").await;
    let parameters =
        PatchParams { field_manager: Some("openshift-controller-manager".to_owned()), ..Default::default() };
    let theirs = json!([{"name": "syncer-dockercfg"}]);
    let patch = Patch::Strategic(json!({"imagePullSecrets": theirs, "secrets": theirs}));
    let accounts = rig.cluster.server.api::<ServiceAccount>(SYSTEM);
    let patched = accounts.patch(SYNCER, &parameters, &patch).await.unwrap();
    // A controller that starts sees it, and so does one that applies everything anew.
    rig.restart().await;
    rig.add("r.io=3").await;
    rig.deploys("q.io=1 r.io=3").await;
    rig.shows("RolledOut=True/RolledOut").await;
    let now: ServiceAccount = rig.cluster.get(SYNCER).await.unwrap();
    assert_eq!(now.metadata.resource_version, patched.metadata.resource_version);
    drop(
        accounts
            .patch(SYNCER, &parameters, &Patch::Merge(json!({"automountServiceAccountToken": true})))
            .await
            .unwrap(),
    );
    let repaired = until("the rest is repaired", async || {
        let account: ServiceAccount = rig.cluster.get(SYNCER).await?;
        (account.automount_service_account_token == Some(false)).then_some(account)
    })
    .await;
    assert_eq!(
        (
            json!(repaired.image_pull_secrets),
            repaired.secrets.is_some_and(|all| all.iter().any(|one| one.name.as_deref() == Some("syncer-dockercfg")))
        ),
        (theirs, true)
    );
    rig.is_at_rest().await;
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_change_stops_at_a_node_that_does_not_follow(#[case] kind: Kind) {
    let flags = [("rollout", "rolling"), ("max-unavailable", "1"), ("node-deadline", "3s"), ("cleanup-deadline", "5s")];
    let Some(rig) = Rig::new(kind, &flags).await else { return };
    rig.add("r.io=2").await;
    rig.shows("RolledOut=True/RolledOut").await;
    // Whichever node is taken first: no new Pod becomes ready.
    for node in ["node-000", "node-001", "node-002"] {
        rig.broken.breaks(node);
    }
    rig.cluster.delete::<Secret>(ADDITIONAL).await;
    let reported = rig.shows("Degraded=True/RevertIncomplete").await;
    assert!(reported.contains("of 3 nodes may still hold the credentials: node-00"), "{reported}");
    until("everything is removed all the same", async || {
        let left = rig.cluster.get::<Secret>(GLOBAL).await.is_some() || rig.cluster.get::<Role>(SYNCER).await.is_some();
        (!left).then_some(())
    })
    .await;
    for node in ["node-000", "node-001", "node-002"] {
        rig.broken.repair(node);
    }
    rig.add("r.io=3").await;
    rig.deploys("q.io=1 r.io=3").await;
    rig.shows("RolledOut=True/RolledOut").await;
    rig.shows("Degraded=False/AsExpected").await;
}
