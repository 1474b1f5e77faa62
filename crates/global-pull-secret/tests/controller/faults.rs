//! Outages, conflicts and refusals, scripted; and controllers that die in the middle.

use emulators::kubernetes::Fault;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use rstest::rstest;
use testkit::api_server::until_contains;

use crate::cluster::{ADDITIONAL, Kind, until};
use crate::rig::Rig;

/// The desired state is reached through any fault of calls.
#[rstest]
#[case::watches_are_cut(&["watch/*:cut(after=0)*20"])]
#[case::watches_are_too_old(&["watch/secrets:gone(after=1)*3", "watch/pods:gone(after=0)*2"])]
#[case::lists_fail(&["list/*:503*12"])]
#[case::conflicts(&["patch/*:409*4", "create/daemonsets:409(reason=AlreadyExists)*2"])]
#[case::done_without_an_answer(&["create/*:commit-then-cut*5", "patch/*:commit-then-timeout*3"])]
#[case::refused_for_a_while(&["create/daemonsets:403*2", "create/roles:500*2"])]
#[case::throttled(&["create/*:429(retry-after=1s)*3"])]
#[case::no_events(&["*/events:403*0"])]
#[tokio::test(flavor = "multi_thread")]
async fn the_desired_state_is_reached_through_faults(#[case] faults: &[&str]) {
    let rig = Rig::new(Kind::Emulator, &[]).await.unwrap();
    for fault in faults {
        rig.cluster.emulator().inject(fault.parse::<Fault>().unwrap());
    }
    // The rig's own calls may meet a fault, too: it tries again.
    let secret: Secret = serde_json::from_value(serde_json::json!({
        "metadata": {"name": ADDITIONAL},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": crate::rig::document("r.io=2")},
    }))
    .unwrap();
    let api = rig.cluster.server.api::<Secret>("kube-system");
    until("the additional Secret is there", async || {
        drop(api.create(&PostParams::default(), &secret).await);
        api.get_opt(ADDITIONAL).await.ok().flatten()
    })
    .await;
    rig.deploys("q.io=1 r.io=2").await;
    rig.shows("RolledOut=True/RolledOut").await;
    rig.shows("Degraded=False/AsExpected").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_is_reported_in_the_status() {
    let rig = Rig::new(Kind::Emulator, &[]).await.unwrap();
    rig.cluster.emulator().inject("create/daemonsets:403*0".parse().unwrap());
    rig.add("r.io=2").await;
    let reported = rig.shows("Degraded=True/ApiServerError").await;
    assert!(
        reported.starts_with("cannot create daemonset kube-system/global-pull-secret-syncer: permission denied"),
        "{reported}"
    );
    let mut progress = rig.progress.clone();
    progress.wait_for(|progress| progress.failure.is_some()).await.unwrap();
    rig.cluster.emulator().clear_faults();
    rig.shows("Degraded=False/AsExpected").await;
    rig.shows("RolledOut=True/RolledOut").await;
    progress.wait_for(|progress| progress.failure.is_none()).await.unwrap();
}

/// Ended at any write, on the way in and on the way out: another controller goes on.
#[tokio::test(flavor = "multi_thread")]
async fn another_controller_continues_after_any_write() {
    let mut rig = Rig::new(Kind::Emulator, &[]).await.unwrap();
    for write in 1..=6 {
        rig.cluster.emulator().clear_faults();
        let fault = format!(
            "*/{}:commit-then-hang",
            ["secrets", "serviceaccounts", "roles", "rolebindings", "daemonsets", "configmaps"][write - 1]
        );
        rig.restart().await;
        let mut progress = rig.progress.clone();
        progress.wait_for(|progress| progress.has_synced).await.unwrap();
        rig.add("r.io=2").await;
        rig.shows("RolledOut=True/RolledOut").await;
        rig.cluster.delete::<Secret>(ADDITIONAL).await;
        rig.cluster.emulator().inject(fault.replace('*', "delete").parse().unwrap());
        until("the fault is met", async || {
            let calls = rig.cluster.emulator().calls();
            calls.iter().any(|call| call.verb == "delete" && call.outcome.is_none()).then_some(())
        })
        .await;
        rig.stop();
        rig.cluster.emulator().clear_faults();
        rig.restart().await;
        rig.is_removed().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_metrics_report_the_state() {
    let rig = Rig::new(Kind::Emulator, &[]).await.unwrap();
    rig.add("r.io=2").await;
    rig.shows("RolledOut=True/RolledOut").await;
    assert!(ask(rig.health, "/healthz").await.starts_with("HTTP/1.1 200"));
    until("ready", async || ask(rig.health, "/readyz").await.starts_with("HTTP/1.1 200").then_some(())).await;
    // The status is written before the metrics show it.
    let expected = [
        "global_pull_secret_nodes_in_sync 3",
        "global_pull_secret_nodes 3",
        "global_pull_secret_registries 2",
        "global_pull_secret_condition{type=\"RolledOut\",status=\"True\"} 1",
        "global_pull_secret_events_emitted_total{reason=\"RolledOut\"} 1",
        "global_pull_secret_degraded 0",
    ];
    until_contains(&expected, async || ask(rig.metrics, "/metrics").await).await;
}

/// The answer to a GET, head and body.
pub(crate) async fn ask(address: std::net::SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut result = String::new();
    stream.read_to_string(&mut result).await.unwrap();
    result
}
