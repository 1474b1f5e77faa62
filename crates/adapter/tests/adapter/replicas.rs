//! Several replicas: one Job per generation, and one of them reports its end.

use emulators::kubernetes::Settings;
use hyperfleet_client::Report;
use rstest::rstest;

use crate::environment::{Environment, Kind};
use crate::node::PodResult;
use crate::world::{World, eventually};

#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn another_replica_takes_over(#[case] kind: Kind) {
    let Some(world) = World::new(kind).await else { return };
    let first = world.replica("", Some("first")).await;
    eventually(async || first.count("hyperfleet_adapter_leader", "").await > 0).await;
    let second = world.replica("", Some("second")).await;
    world.node.end_pods_with(PodResult::Never).await;
    let ids: Vec<String> = (0..10).map(|number| format!("cls-{number}")).collect();
    for id in &ids {
        world.ready(id).await;
        for _ in 0..3 {
            world.publish_event(id).await;
        }
    }
    for id in &ids {
        world.until_reason(id, "WorkloadInProgress").await;
    }
    first.kill().await;
    world.node.end_pods_with(PodResult::Success).await;
    for id in &ids {
        world.until_available(id, 1).await;
        assert_eq!(world.node.started(id, 1), 1);
    }
    assert!(second.count("hyperfleet_adapter_leader", "").await > 0);
    second.stop().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_job_is_counted_by_one_replica_and_by_cluster_on_request() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let settings = "limits: {clusterIdLabel: true}";
    let replicas = [world.replica(settings, Some("first")).await, world.replica(settings, Some("second")).await];
    let sum = async |metric: &str, labels: &str| {
        let [first, second] = &replicas;
        first.count(metric, labels).await + second.count(metric, labels).await
    };
    let ids = ["cls-1", "cls-2", "cls-3"];
    for id in ids {
        world.ready(id).await;
        world.publish_event(id).await;
    }
    for id in ids {
        world.until_available(id, 1).await;
    }
    eventually(async || sum("pullsecret_job_total", "success").await == 3).await;
    for id in ids {
        for _ in 0..4 {
            world.publish_event(id).await;
        }
    }
    eventually(async || sum("pullsecret_adapter_events_processed_total", "").await >= 15).await;
    for id in ids {
        assert_eq!(sum("pullsecret_job_total", &format!("cluster_id=\"{id}\"")).await, 1);
    }
    assert_eq!(sum("pullsecret_gcp_api_calls_total", "operation=\"get_secret\",status_code=\"404\"").await, 3);
    assert_eq!(sum("pullsecret_gcp_api_duration_seconds_count", "operation=\"add_secret_version\"").await, 3);
    for replica in replicas {
        replica.stop().await;
    }
    world.end().await;
}

/// Another replica that sees the run's end has observed it later, and its report stays, even if that of the start arrives last.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_a_start_is_older_than_the_run() {
    let settings = Settings { faults: vec!["create/jobs:slow(2s)".parse().unwrap()], ..Settings::default() };
    let world = World::at(Environment::with(Kind::Emulator, settings).await.unwrap()).await;
    world.node.end_pods_with(PodResult::Never).await;
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    let started = |report: &Report| report.metadata.as_ref().and_then(|metadata| metadata.started_time);
    let report = world.until("cls-1", |report| started(report).is_some()).await;
    // Kubernetes states whole seconds, of which the last may be over.
    assert!(Some(report.last_report_time) < started(&report), "{report:#?}");
    adapter.stop().await;
}
