//! `rotate` beside other processes: they pause and abort it during an outage, take it over, or find what it has left.

use k8s_openapi::api::core::v1::ConfigMap;
use rstest::rstest;
use serde_json::{Value, json};
use testkit::api_server::until;
use testkit::fleet::document;

use super::doubles::{Gate, Mode, Process};
use super::{NAMESPACE, World, clusters, end, write};

impl World {
    /// Changes a member of the state of the rotation `r` in its record, as another process does.
    async fn record(&self, member: &str, value: &str) {
        let cluster = self.up.cluster().await;
        until("the record is changed", async || {
            let found = cluster.find::<ConfigMap>(NAMESPACE, "pull-secret-rotation-r").await.unwrap();
            let mut object = found.unwrap();
            let text = object.data.as_mut().unwrap().get_mut("rotation.json").unwrap();
            let mut state: Value = serde_json::from_str(text).unwrap();
            state[member] = json!(value);
            *text = state.to_string();
            cluster.apply(&object, &[]).await.ok()
        })
        .await;
    }
}

fn has_ended(lines: &[Value]) -> bool {
    lines.iter().any(|line| line["event"] == "ended")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_paused_and_aborted_while_the_api_is_away() {
    let world = World::with_clusters(3).await;
    world.plan("new.json", &["--per-minute", "2"]).await;
    let [from, plan] = world.paths("new.json");
    let gate = Gate::before(world.up.place("api")).await;
    for (verb, request, phase) in
        [("start", &["pause", "r"][..], "Paused"), ("resume", &["abort", "r", "--yes"], "Aborted")]
    {
        gate.set(Mode::Open);
        let mut process = Process::of(world.command_at(&gate.address, &World::work(verb, &from, &plan)));
        process.until(|lines| lines.iter().any(|line| line["event"] == "wave")).await;
        gate.set(Mode::Away);
        process.until(|lines| lines.iter().any(|line| line["event"] == "outage")).await;
        let (code, _, said) = world.rotate(request).await;
        assert_eq!(code, Some(0), "{said}");
        let (code, lines) = process.end().await;
        assert_eq!((code, end(&lines).0), (Some(1), phase), "{lines:?}");
    }
    world.are_at(&["cls-3"], 1).await;
}

/// A process that was suspended finds its Lease free again, and no request.
#[rstest]
#[case::ended("phase", "Aborted")]
#[case::taken_over("run_by", "another process")]
#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_which_others_went_on_ends(#[case] member: &str, #[case] value: &str) {
    let world = World::with_clusters(3).await;
    world.plan("new.json", &["--per-minute", "2"]).await;
    let mut process = world.process(world.up.place("api"));
    process.until(|lines| clusters(lines, "written").len() == 1).await;
    world.record(member, value).await;
    let (code, lines) = process.end().await;
    assert_eq!((code, has_ended(&lines)), (Some(1), false), "{lines:?}");
    assert_eq!(world.status().await[member], value);
    world.are_at(&["cls-3"], 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_run_is_not_recorded_over_that_of_another_process() {
    let world = World::with_clusters(2).await;
    let key = world.file("other-key");
    write(&key, &[7; 32]);
    let key = ["--digest-key-file", key.to_str().unwrap()];
    world.plan("new.json", &key).await;
    let [from, plan] = world.paths("new.json");
    let mut gate = Gate::before(world.up.place("api")).await;
    gate.set(Mode::HoldsWrites);
    let arguments = [&World::work("start", &from, &plan)[..], &key].concat();
    let process = Process::of(world.command_at(&gate.address, &arguments));
    gate.until_it_holds().await;
    world.record("phase", "Aborted").await;
    // The other key ends the run at this write, before it reads the record again.
    gate.set(Mode::Open);
    let (code, lines) = process.end().await;
    assert_eq!((code, clusters(&lines, "written"), has_ended(&lines)), (Some(1), vec!["cls-1"], false), "{lines:?}");
    assert_eq!(world.status().await["phase"], "Aborted");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_run_has_left_is_checked_aborted_and_listed() {
    let world = World::with_clusters(3).await;
    write(&world.file("other.json"), document("d").as_bytes());
    world.plan("new.json", &["--per-minute", "2"]).await;
    let mut process = world.process(world.up.place("api"));
    process.until(|lines| clusters(lines, "written").len() == 1).await;
    process.kill().await;
    // A resume that would be refused says so also without --yes.
    let [other, plan] = world.paths("other.json");
    let (code, _, said) = world.rotate(&["resume", "r", "--from", &other]).await;
    assert!(code == Some(2) && said.contains("is not the planned one"), "{said}");

    // The killed process was to abort, and no other goes on.
    world.record("request", "Abort").await;
    let [from, _] = world.paths("new.json");
    for arguments in [World::work("resume", &from, &plan), vec!["pause", "r"]] {
        let (code, _, said) = world.rotate(&arguments).await;
        assert!(code == Some(2) && said.contains("`pull-secret rotate abort r --yes` carries that out"), "{said}");
    }
    until("the Lease has expired, and it is aborted", async || {
        let (code, lines, said) = world.rotate(&["abort", "r", "--yes"]).await;
        assert_eq!(code, Some(0), "{said}");
        (lines[0]["phase"] == "Aborted").then_some(())
    })
    .await;
    world.are_at(&["cls-3"], 1).await;

    let damaged = json!({
        "metadata": {
            "name": "pull-secret-rotation-a", "namespace": NAMESPACE, "labels": {"hyperfleet.io/rotation": "a"},
        },
        "data": {"rotation.json": "{"},
    });
    let damaged: ConfigMap = serde_json::from_value(damaged).unwrap();
    world.up.cluster().await.create(&damaged).await.unwrap();
    let (code, lines, said) = world.rotate(&["status"]).await;
    assert_eq!((code, lines.len(), &lines[0]["rotation"]), (Some(1), 1, &json!("r")), "{said}");
    assert!(said.contains("error: rotation a: the record configmap pull-secret-rotation-a cannot be read"), "{said}");
}
