//! Nothing that the program says, logs, counts or writes holds a credential, but the merged Secret.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Secret};
use kube::api::ListParams;
use serde_json::json;

use crate::cluster::{ADDITIONAL, GLOBAL, Kind, STATUS, SYNCER, SYSTEM, until};
use crate::faults::ask;
use crate::rig::{CANARY, Rig, document, encode};

#[tokio::test(flavor = "multi_thread")]
async fn no_credential_is_printed_anywhere() {
    let mut rig = Rig::new(Kind::Emulator, &[]).await.unwrap();
    rig.stop();
    let hosted = rig.cluster.kubeconfig_of(SYSTEM).await;
    let control_plane = rig.cluster.kubeconfig_of(&rig.cluster.namespace).await;
    let mut program = program(&rig, &control_plane, &hosted);
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let started: serde_json::Value = serde_json::from_str(&first).unwrap();
    rig.add("r.io=2 q.io=3").await;
    rig.shows("RolledOut=True/RolledOut").await;
    odd_content(&rig).await;
    let mut reported = String::new();
    for name in ["health", "metrics"] {
        let address: std::net::SocketAddr = started[name].as_str().unwrap().parse().unwrap();
        for path in ["/healthz", "/readyz", "/metrics"] {
            reported += &ask(address, path).await;
        }
    }
    reported += &serde_json::to_string(&rig.cluster.get::<ConfigMap>(STATUS).await).unwrap();
    reported += &serde_json::to_string(&rig.cluster.get::<DaemonSet>(SYNCER).await).unwrap();
    let everything = ListParams::default();
    reported += &serde_json::to_string(&rig.cluster.server.api::<Event>(SYSTEM).list(&everything).await.unwrap().items)
        .unwrap();
    reported +=
        &serde_json::to_string(&rig.cluster.server.api::<Pod>(SYSTEM).list(&everything).await.unwrap().items).unwrap();
    let merged: Secret = rig.cluster.get(GLOBAL).await.unwrap();
    reported += &serde_json::to_string(&merged.metadata).unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    reported += &first;
    reported += &lines.map_while(Result::ok).collect::<String>();
    program.stderr.take().unwrap().read_to_string(&mut reported).unwrap();
    assert!(reported.contains("InvalidSecret") && reported.contains("global_pull_secret_nodes"), "{reported}");
    let encoded = encode(format!("u:{CANARY}2").as_bytes());
    assert!(document("r.io=2").contains(&encoded));
    assert!(!reported.contains(CANARY) && !reported.contains(&encoded), "{reported}");
}

fn program(rig: &Rig, control_plane: &Path, hosted: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_global-pull-secret"))
        .args(["run", "--log-level", "debug", "--health-port", "0", "--metrics-port", "0"])
        .args(["--syncer-image", "i", "--syncer-priority-class", "system-node-critical"])
        .arg("--control-plane-namespace")
        .arg(&rig.cluster.namespace)
        .arg("--kubeconfig")
        .arg(control_plane)
        .arg("--hosted-kubeconfig")
        .arg(hosted)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Credentials where they do not belong, and documents that are broken at a credential.
async fn odd_content(rig: &Rig) {
    for (what, odd) in [
        ("a key", format!(r#"{{"auths": {{"u:{CANARY}@r.io": {{"auth": "{CANARY}"}}}}}}"#)),
        ("a name", format!(r#"{{"auths": {{"r.io": {{"{CANARY}": ["{CANARY}"], "password": "{CANARY}"}}}}}}"#)),
        ("an entry", format!(r#"{{"auths": {{"r.io": "{CANARY}"}}, "credsStore": "{CANARY}"}}"#)),
        ("no JSON", format!(r#"{{"auths": {{"r.io": {{"auth": {CANARY}}}}}}}"#)),
        ("its end", format!(r#"{{"auths": {{"r.io": {{"auth": "{CANARY}"#)),
    ] {
        // Servers refuse what is no JSON in a Secret of the proper type, so it comes as an opaque one.
        rig.cluster.delete::<Secret>(ADDITIONAL).await;
        let data = json!({".dockerconfigjson": odd});
        drop(
            rig.cluster
                .server
                .create::<Secret>(SYSTEM, json!({"metadata": {"name": ADDITIONAL}, "stringData": data}))
                .await,
        );
        until(what, async || {
            let conditions = rig.conditions().await;
            conditions.iter().any(|one| one.reason.as_deref() == Some("InvalidSecret")).then_some(())
        })
        .await;
        rig.cluster.delete::<Secret>(ADDITIONAL).await;
        rig.add("r.io=2 q.io=3").await;
        rig.shows("Valid=True/Valid").await;
    }
}
