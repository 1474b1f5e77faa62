//! `rotate`: new pull secrets for many clusters in waves; killed, paused, refused, overtaken by others.

mod doubles;
mod others;

use std::fs;
use std::path::{Path, PathBuf};

use hyperfleet_client::Resource;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::fleet::{Up, condition, document, folder, is_available, run, up};
use testkit::leaks::check;
use testkit::program;
use testkit::rig::Rig;
use tokio::process::Command;

use doubles::{Gate, Mode, Process};

/// The namespace of Jobs.
const NAMESPACE: &str = "hyperfleet-pull-secret";

/// A fleet of available clusters, `cls-1` and on, and the files of a rotation.
struct World {
    up: Up,
    files: TempDir,
    rig: Rig,
    _folder: TempDir,
}

impl World {
    async fn with_clusters(count: usize) -> Self {
        let (rig, folder) = (Rig::new().await, folder());
        let mut command = up(folder.path());
        command.arg("--secret-manager").arg(rig.emulator.address().to_string());
        let up = Up::start(command).await;
        let cluster = up.cluster().await;
        for number in 1..=count {
            let id = format!("cls-{number}");
            up.player.create(&id, &document("a")).await;
            up.player.make_ready(&cluster, &id, 1).await;
        }
        for number in 1..=count {
            up.player.until(&format!("cls-{number}"), |cluster| is_available(cluster, 1)).await;
        }
        let world = Self { up, files: testkit::fleet::folder(), rig, _folder: folder };
        write(&world.file("new.json"), document("b").as_bytes());
        world
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_at(self.up.place("api"), arguments)
    }

    fn command_at(&self, api: &str, arguments: &[&str]) -> Command {
        let mut command = program::pull_secret(&["rotate"]);
        command.args(arguments).args(["--output", "json"]);
        command.env("KUBECONFIG", self.up.place("kubeconfig")).env("HYPERFLEET_API_BASE_URL", api);
        command.env("DIGEST_KEY_FILE", self.up.path("digest-key"));
        command
    }

    /// The exit code, the lines, and the last line beside them.
    async fn rotate(&self, arguments: &[&str]) -> (Option<i32>, Vec<Value>, String) {
        let (code, lines, stderr) = run(&mut self.command(arguments)).await;
        let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (code, lines, stderr.lines().last().unwrap_or_default().to_owned())
    }

    /// Plans a rotation of all clusters to the file's content: a wave of one, then waves of two.
    async fn plan(&self, from: &str, more: &[&str]) -> Value {
        let (from, plan) = (self.file(from), self.file("plan.json"));
        let fixed =
            ["plan", "--search", "name != ''", "--from", from.to_str().unwrap(), "--save", plan.to_str().unwrap()];
        let size: &[&str] = if more.contains(&"--wave-size") { &[] } else { &["--wave-size", "2"] };
        let (code, lines, stderr) =
            self.rotate(&[&fixed[..], &["--first-wave", "1", "--wave-timeout", "600"], size, more].concat()).await;
        assert_eq!(code, Some(0), "{stderr}");
        check("a plan", &fs::read_to_string(plan).unwrap());
        lines[0].clone()
    }

    fn work<'a>(verb: &'a str, from: &'a str, plan: &'a str) -> Vec<&'a str> {
        let plan = if verb == "start" { vec!["--plan", plan] } else { vec![] };
        [vec![verb, "r", "--from", from, "--yes"], plan].concat()
    }

    fn paths(&self, from: &str) -> [String; 2] {
        [from, "plan.json"].map(|name| self.file(name).to_str().unwrap().to_owned())
    }

    /// Starts or resumes the rotation `r`, and waits for its end.
    async fn to_the_end(&self, verb: &str, from: &str) -> (Option<i32>, Vec<Value>) {
        let [from, plan] = self.paths(from);
        let (code, lines, stderr) = self.rotate(&Self::work(verb, &from, &plan)).await;
        assert!(!lines.is_empty(), "{stderr}");
        (code, lines)
    }

    /// Starts the rotation `r` as a process of its own.
    fn process(&self, api: &str) -> Process {
        let [from, plan] = self.paths("new.json");
        Process::of(self.command_at(api, &Self::work("start", &from, &plan)))
    }

    async fn status(&self) -> Value {
        self.rotate(&["status", "r"]).await.1[0].clone()
    }

    /// Each cluster is at that generation: it was not written once more.
    async fn are_at(&self, ids: &[&str], generation: u32) {
        for id in ids {
            let cluster = self.up.player.get(id).await.unwrap();
            assert_eq!(cluster.generation, generation.into(), "{id}");
            assert!(is_available(&cluster, generation), "{id}");
        }
    }
}

fn write(path: &Path, content: &[u8]) {
    daemon::file::replace(path, content).unwrap();
}

/// The clusters of the events of a kind.
fn clusters<'a>(lines: &'a [Value], event: &str) -> Vec<&'a str> {
    let of_kind = lines.iter().filter(|line| line["event"] == event);
    of_kind.map(|line| line["cluster"].as_str().unwrap()).collect()
}

fn end(lines: &[Value]) -> (&str, &str) {
    let last = lines.last().unwrap();
    (last["phase"].as_str().unwrap(), last["because"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_is_rotated_in_waves() {
    let world = World::with_clusters(6).await;
    let player = &world.up.player;
    // One has the content already, one was never available, one is being deleted.
    player.rotate("cls-6", &document("b")).await;
    player.until("cls-6", |cluster| is_available(cluster, 2)).await;
    player.create("cls-7", &document("a")).await;
    player.create("cls-8", &document("a")).await;
    player.delete("cls-8").await;
    let plan = world.plan("new.json", &[]).await;
    let sizes = |wave: &Value| wave.as_array().map_or(0, Vec::len);
    let waves: Vec<usize> = plan["waves"].as_array().unwrap().iter().map(sizes).collect();
    assert_eq!((waves, &plan["estimate"]["store_writes"]), (vec![1, 2, 2], &json!(20)));
    let skipped = plan["skipped"].as_array().unwrap().iter().map(|one| json!([one["cluster"], one["reason"]]));
    let expected = json!([["cls-8", "Deleting"], ["cls-6", "SameContent"], ["cls-7", "NotAvailable"]]);
    assert_eq!(skipped.collect::<Value>(), expected);

    // Without --yes nothing happens.
    let [from, file] = world.paths("new.json");
    let (code, _, said) = world.rotate(&["start", "r", "--from", &from, "--plan", &file]).await;
    assert_eq!((code, said.as_str()), (Some(0), "nothing was changed: add --yes"));
    world.are_at(&["cls-1", "cls-2", "cls-3", "cls-4", "cls-5"], 1).await;

    let (code, lines) = world.to_the_end("start", "new.json").await;
    assert_eq!((code, end(&lines)), (Some(0), ("Done", "")), "{lines:?}");
    assert_eq!(clusters(&lines, "written"), ["cls-1", "cls-2", "cls-3", "cls-4", "cls-5"]);
    // A wave begins when the one before is available.
    let position =
        |event: &str, id: &str| lines.iter().position(|line| line["event"] == event && line["cluster"] == id);
    for (before, after) in [("cls-1", "cls-2"), ("cls-2", "cls-4"), ("cls-3", "cls-4")] {
        assert!(position("available", before) < position("written", after), "{lines:?}");
    }
    world.are_at(&["cls-1", "cls-2", "cls-3", "cls-4", "cls-5", "cls-6"], 2).await;
    assert_eq!(world.up.applied_secret("cls-3").await, Some(document("b")));

    let status = world.status().await;
    assert_eq!((&status["phase"], &status["counts"]["available"]), (&json!("Done"), &json!(5)));
    assert!(status["started_by"].as_str().unwrap().contains("process "), "{status}");
    let cluster = world.up.cluster().await;
    let records = cluster.list::<ConfigMap>(NAMESPACE, "hyperfleet.io/rotation=r").await.unwrap();
    assert_eq!(records.len(), 2);
    check("the record", &serde_json::to_string(&records).unwrap());
    let mut table = program::pull_secret(&["rotate", "status"]);
    let (_, page, _) = run(table.env("KUBECONFIG", world.up.place("kubeconfig"))).await;
    assert!(page.contains("ROTATION  r: Done") && page.contains("[##############################] 5/5"), "{page}");

    let (code, _, said) = world.rotate(&World::work("start", &from, &file)).await;
    assert!(code == Some(2) && said.contains("there is a rotation r already"), "{said}");
    let (code, _, said) = world.rotate(&["plan", "cls-1", "--from", &from]).await;
    assert_eq!((code, said.as_str()), (Some(1), "there is nothing to rotate"));
    world.up.output();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_in_the_first_wave_stops_and_resume_goes_on() {
    let world = World::with_clusters(3).await;
    world.plan("new.json", &[]).await;
    world.rig.emulator.inject("*:permission-denied*0".parse().unwrap());
    let (code, lines) = world.to_the_end("start", "new.json").await;
    let (phase, because) = end(&lines);
    assert_eq!((code, phase), (Some(1), "Stopped"));
    assert!(because.contains("explain cluster cls-1") && because.contains("rotate resume r"), "{because}");
    assert_eq!(clusters(&lines, "written"), ["cls-1"]);
    world.are_at(&["cls-2", "cls-3"], 1).await;
    assert_eq!(world.status().await["failures"], json!({"PermissionDenied": ["cls-1"]}));

    world.rig.emulator.clear_faults();
    let mut retry = program::pull_secret(&["retry", "cls-1", "--yes", "--api", world.up.place("api")]);
    assert_eq!(run(retry.env("KUBECONFIG", world.up.place("kubeconfig"))).await.0, Some(0));
    world.up.player.until("cls-1", |cluster| is_available(cluster, 2)).await;
    let (code, lines) = world.to_the_end("resume", "new.json").await;
    assert_eq!((code, end(&lines).0), (Some(0), "Done"), "{lines:?}");
    assert_eq!(clusters(&lines, "written"), ["cls-2", "cls-3"]);
    world.are_at(&["cls-1", "cls-2", "cls-3"], 2).await;
    assert_eq!(world.status().await["failures"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_is_resumed_and_writes_each_cluster_once() {
    let world = World::with_clusters(4).await;
    world.plan("new.json", &["--wave-size", "3", "--per-minute", "10"]).await;
    let mut process = world.process(world.up.place("api"));
    process.until(|lines| clusters(lines, "written").len() == 2).await;
    process.kill().await;
    let status = world.status().await;
    assert_eq!(status["phase"], "Running");
    let (code, lines) = world.to_the_end("resume", "new.json").await;
    assert_eq!((code, end(&lines).0), (Some(0), "Done"), "{lines:?}");
    assert!(clusters(&lines, "written").len() <= 2, "{lines:?}");
    world.are_at(&["cls-1", "cls-2", "cls-3", "cls-4"], 2).await;
    assert_eq!(world.status().await["counts"], json!({"available": 4, "waiting": 0, "failed": 0, "left": 0}));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_processes_pause_resume_and_abort() {
    let world = World::with_clusters(4).await;
    world.plan("new.json", &["--wave-size", "3", "--per-minute", "2"]).await;
    let [from, plan] = world.paths("new.json");
    let mut first = world.process(world.up.place("api"));
    first.until(|lines| clusters(lines, "written").len() == 1).await;
    for (verb, words) in [("start", "there is a rotation r already"), ("resume", "another process works on rotation r")]
    {
        let (code, _, said) = world.rotate(&World::work(verb, &from, &plan)).await;
        assert!(code == Some(2) && said.contains(words), "{said}");
    }
    let (code, lines, _) = world.rotate(&["pause", "r"]).await;
    let is_asked = lines[0]["request"] == "Pause" || lines[0]["phase"] == "Paused";
    assert!(code == Some(0) && is_asked, "{lines:?}");
    let (code, lines) = first.end().await;
    assert_eq!((code, end(&lines).0), (Some(1), "Paused"), "{lines:?}");
    let status = world.status().await;
    assert_eq!((&status["phase"], &status["worked_on_by"]), (&json!("Paused"), &Value::Null));

    let mut second = Process::of(world.command(&World::work("resume", &from, &plan)));
    second.until(|lines| lines.iter().any(|line| line["event"] == "wave")).await;
    let (code, lines, said) = world.rotate(&["abort", "r"]).await;
    assert!(code == Some(0) && lines[0]["phase"] == "Running" && said == "nothing was changed: add --yes", "{said}");
    let (code, _, said) = world.rotate(&["abort", "r", "--yes"]).await;
    assert!(code == Some(0) && said.contains("plan a rotation with the old files"), "{said}");
    let (code, lines) = second.end().await;
    assert_eq!((code, end(&lines).0), (Some(1), "Aborted"), "{lines:?}");
    // The last cluster was not reached, and the first keeps what it has.
    world.are_at(&["cls-4"], 1).await;
    world.up.player.until("cls-1", |cluster| is_available(cluster, 2)).await;
    for verb in ["resume", "pause"] {
        let arguments = if verb == "pause" { vec!["pause", "r"] } else { World::work(verb, &from, &plan) };
        let (code, _, said) = world.rotate(&arguments).await;
        assert!(code == Some(2) && said.contains("rotation r is over (Aborted)"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_since_the_plan_is_left_and_other_content_is_refused() {
    let world = World::with_clusters(3).await;
    write(&world.file("other.json"), document("d").as_bytes());
    world.plan("new.json", &[]).await;
    world.up.player.rotate("cls-2", &document("c")).await;
    let [from, plan] = world.paths("other.json");
    let (code, _, said) = world.rotate(&World::work("start", &from, &plan)).await;
    assert!(code == Some(2) && said.contains("is not the planned one"), "{said}");
    let (code, lines) = world.to_the_end("start", "new.json").await;
    assert_eq!((code, end(&lines).0), (Some(0), "Done"), "{lines:?}");
    assert_eq!((clusters(&lines, "written"), clusters(&lines, "left")), (vec!["cls-1", "cls-3"], vec!["cls-2"]));
    let left = world.status().await["left"]["cls-2"].clone();
    assert_eq!(left, "it was changed since the plan: generation 2 instead of 1");
    world.up.player.until("cls-2", |cluster| is_available(cluster, 2)).await;
    assert_eq!(world.up.applied_secret("cls-2").await, Some(document("c")));
}

/// The API is away for a while, then refuses the caller.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_waited_for_and_a_refusal_is_not() {
    let world = World::with_clusters(3).await;
    // The next write comes half a minute after the first one: not before the API is away.
    world.plan("new.json", &["--per-minute", "2"]).await;
    let gate = Gate::before(world.up.place("api")).await;
    let mut process = world.process(&gate.address);
    process.until(|lines| clusters(lines, "written").len() == 1).await;
    gate.set(Mode::Away);
    process.until(|lines| lines.iter().any(|line| line["event"] == "outage")).await;
    gate.set(Mode::RefusesWrites);
    let (code, lines) = process.end().await;
    let (phase, because) = end(&lines);
    assert_eq!((code, phase), (Some(1), "Stopped"), "{lines:?}");
    assert!(
        because.contains("the API answers 403: no grant of the caller") && because.contains("grant it"),
        "{because}"
    );
    assert!(lines.iter().any(|line| line["event"] == "resumed"), "{lines:?}");
    world.are_at(&["cls-2", "cls-3"], 1).await;
    let (code, lines) = world.to_the_end("resume", "new.json").await;
    assert_eq!((code, end(&lines).0), (Some(0), "Done"), "{lines:?}");
    world.are_at(&["cls-1", "cls-2", "cls-3"], 2).await;
}

/// A change that arrives between the last look and the write is not overwritten.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_conditional() {
    let world = World::with_clusters(2).await;
    world.plan("new.json", &[]).await;
    let mut gate = Gate::before(world.up.place("api")).await;
    gate.set(Mode::HoldsWrites);
    let process = world.process(&gate.address);
    gate.until_it_holds().await;
    world.up.player.rotate("cls-1", &document("c")).await;
    gate.set(Mode::Open);
    let (code, lines) = process.end().await;
    assert_eq!((code, end(&lines).0), (Some(0), "Done"), "{lines:?}");
    assert_eq!((clusters(&lines, "written"), clusters(&lines, "left")), (vec!["cls-2"], vec!["cls-1"]));
    world.up.player.until("cls-1", |cluster| is_available(cluster, 2)).await;
    assert_eq!(world.up.applied_secret("cls-1").await, Some(document("c")));
}

/// A key that is not the API's is found out by the first cluster, and a cluster that waits for its Job is no failure.
#[tokio::test(flavor = "multi_thread")]
async fn another_digest_key_stops_after_one_cluster() {
    let world = World::with_clusters(2).await;
    let key = world.file("other-key");
    write(&key, &[7; 32]);
    let key = ["--digest-key-file", key.to_str().unwrap()];
    world.plan("new.json", &key).await;
    let [from, plan] = world.paths("new.json");
    let (code, lines, _) = world.rotate(&[&World::work("start", &from, &plan)[..], &key].concat()).await;
    let (phase, because) = end(&lines);
    assert_eq!((code, phase, clusters(&lines, "written")), (Some(1), "Stopped", vec!["cls-1"]), "{lines:?}");
    assert!(because.contains("--digest-key-file is not the API's"), "{because}");
    world.are_at(&["cls-2"], 1).await;
    let has_failed = |cluster: &Resource| condition(cluster, "Available")["status"] == "False";
    assert!(!has_failed(&world.up.player.get("cls-2").await.unwrap()));
}
