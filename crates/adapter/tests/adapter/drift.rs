//! Drift of the Secret that a run has applied.

use std::collections::BTreeMap;

use hyperfleet_client::{Report, Status};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::api::{DeleteParams, Patch, PatchParams};
use rstest::rstest;
use serde_json::json;

use crate::api::pull_secret;
use crate::environment::Kind;
use crate::world::{World, eventually, is, message};

/// The time of the last transition of `Available`.
fn available_since(report: &Report) -> Timestamp {
    report.condition("Available").unwrap().last_transition_time
}

#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_or_changed_secret_is_repaired(#[case] kind: Kind) {
    let Some(world) = World::new(kind).await else { return };
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    let before = available_since(&world.until_available("cls-1", 1).await);
    let outputs = world.environment.outputs();
    outputs.delete("cls-1-pull-secret", &DeleteParams::default()).await.unwrap();
    world.publish_event("cls-1").await;
    eventually(async || outputs.get_opt("cls-1-pull-secret").await.unwrap().is_some()).await;
    // The report before the repair has the same conditions, but an earlier transition.
    world.until("cls-1", |report| is(report, "Available", Status::True) && available_since(report) > before).await;
    // Without the Job of the repair, the next drift is not subject to the back-off.
    world.environment.jobs().delete("pullsecret-cls-1-gen1", &DeleteParams::background()).await.unwrap();
    let other = BTreeMap::from([(".dockerconfigjson", ByteString(pull_secret("two").to_string().into_bytes()))]);
    let parameters = PatchParams::default();
    outputs.patch("cls-1-pull-secret", &parameters, &Patch::Merge(json!({"data": other}))).await.unwrap();
    world.publish_event("cls-1").await;
    eventually(async || {
        let found = outputs.get("cls-1-pull-secret").await.unwrap();
        found.data.unwrap()[".dockerconfigjson"].0 == pull_secret("one").to_string().into_bytes()
    })
    .await;
    world.until_available("cls-1", 1).await;
    adapter.stop().await;
    world.end().await;
}

/// The Job of a repair replaces the one before, which a real API server keeps until its Pods are gone.
#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn repeated_drift_is_counted_over_the_jobs_that_replace_each_other(#[case] kind: Kind) {
    let Some(world) = World::new(kind).await else { return };
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    let before = available_since(&world.until_available("cls-1", 1).await);
    let outputs = world.environment.outputs();
    outputs.delete("cls-1-pull-secret", &DeleteParams::default()).await.unwrap();
    world.publish_event("cls-1").await;
    world.until("cls-1", |report| is(report, "Available", Status::True) && available_since(report) > before).await;
    let job = world.environment.job("pullsecret-cls-1-gen1").await.unwrap();
    assert_eq!(job["metadata"]["annotations"]["hyperfleet.io/attempt"], "2");
    outputs.delete("cls-1-pull-secret", &DeleteParams::default()).await.unwrap();
    world.publish_event("cls-1").await;
    let report = world.until_reason("cls-1", "Drifted").await;
    assert!(message(&report, "Available").contains("was deleted repeatedly"), "{report:?}");
    adapter.stop().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_formatting_of_the_same_content_is_no_drift() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 1).await;
    let spelled = BTreeMap::from([(".dockerconfigjson", ByteString(format!("{:#}", pull_secret("one")).into_bytes()))]);
    let patch = Patch::Merge(json!({"data": spelled}));
    world.environment.outputs().patch("cls-1-pull-secret", &PatchParams::default(), &patch).await.unwrap();
    let before = adapter.count("hyperfleet_adapter_decisions", "ResourcesExist").await;
    world.publish_event("cls-1").await;
    eventually(async || adapter.count("hyperfleet_adapter_decisions", "ResourcesExist").await > before).await;
    assert_eq!(world.node.started("cls-1", 1), 1);
    assert!(is(&world.api.last_report("cls-1").await.unwrap(), "Available", Status::True));
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_lists_no_jobs_once_they_are_watched() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 1).await;
    let calls = || {
        let calls = world.environment.server.emulator().calls();
        let calls = calls.into_iter().filter(|call| call.resource == "jobs" && call.verb != "watch");
        calls.map(|call| (call.verb, call.name)).collect::<Vec<_>>()
    };
    let only_the_job = [("get".to_owned(), "pullsecret-cls-1-gen1".to_owned())];
    let mut seen = Vec::new();
    // Readiness lists one Job every five seconds; a pass that listed them would do so each time.
    for _ in 0..5 {
        let before = calls().len();
        let passes = adapter.count("hyperfleet_adapter_decisions", "ResourcesExist").await;
        world.publish_event("cls-1").await;
        eventually(async || adapter.count("hyperfleet_adapter_decisions", "ResourcesExist").await > passes).await;
        seen = calls().split_off(before);
        if seen == only_the_job {
            break;
        }
    }
    assert_eq!(seen, only_the_job);
    adapter.stop().await;
}
