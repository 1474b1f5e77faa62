//! Tables: a Pod, what is known of its process, and what is done; and one container started in each way there is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;

use super::super::controllers::model::view;
use super::decide::{Readiness, Step, decide};
use super::environment::expand;
use super::facts::{Exit, Facts, Life};
use super::launch::{Run, prepare};
use super::log::{Log, PodLogs};
use super::root::{Isolation, Mount, rewritten};
use super::spec::{Data, Pod, Sources, Volume};
use super::volumes::{Content, content};
use super::{child, status};
use crate::kubernetes::store::Logs as _;

const START: i64 = 1_700_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(START + seconds).unwrap()
}

/// A Pod with this restart policy and words: `unbound`, `deleted` (30 s of grace), `forced` (none), a phase, a waiting reason.
fn pod(policy: &str, words: &str) -> Pod {
    let mut pod = json!({
        "metadata": { "name": "p", "namespace": "n", "uid": "u" },
        "spec": { "restartPolicy": policy, "nodeName": "emulator", "containers": [{ "name": "main", "image": "i" }] },
        "status": { "phase": "Pending" },
    });
    for word in words.split_whitespace() {
        match word {
            "unbound" => pod["spec"]["nodeName"] = json!(null),
            "deleted" | "forced" => {
                let grace = if word == "forced" { 0 } else { 30 };
                pod["metadata"]["deletionTimestamp"] = json!(at(grace).to_string());
                pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
            }
            "Running" | "Succeeded" | "Failed" => pod["status"]["phase"] = json!(word),
            reason => {
                pod["status"]["containerStatuses"] =
                    json!([{ "name": "main", "state": { "waiting": { "reason": reason } } }]);
            }
        }
    }
    view(&pod).unwrap()
}

fn exit(code: i32) -> Exit {
    Exit { code, signal: None, reason: "Error", message: String::new(), started: at(-5), finished: at(0) }
}

/// `idle`, `running`, or an exit code; then `asked`, `killed`, or how often it crashed.
fn facts(text: &str) -> Facts {
    let mut words = text.split_whitespace();
    let life = match words.next().unwrap() {
        "idle" => Life::Idle,
        "running" => Life::Running { since: at(-5) },
        code => Life::Ended(exit(code.parse().unwrap())),
    };
    let mut facts = Facts { life, ..Facts::default() };
    for word in words {
        match word {
            "asked" => facts.terminating = true,
            "killed" => facts.killed = true,
            crashes => facts.crashes = crashes.parse().unwrap(),
        }
    }
    facts
}

fn render(step: &Step) -> String {
    match step {
        Step::Status(status) => {
            let state =
                status.get("containerStatuses").map(|statuses| statuses[0]["state"].clone()).unwrap_or_default();
            let state = state.as_object().and_then(|state| state.keys().next().cloned()).unwrap_or_default();
            format!("{} {state}", status["phase"].as_str().unwrap()).trim().to_owned()
        }
        Step::RecordEvent { reason, .. } => format!("event {reason}"),
        Step::Wake(instant) => format!("wake {}", instant.as_second() - START),
        other => format!("{other:?}").to_lowercase(),
    }
}

#[rstest]
#[case::is_put_on_a_node("Never", "unbound", "idle", 0, "bind")]
#[case::starts("Never", "", "idle", 0, "Pending waiting; start")]
#[case::runs("Never", "", "running", 0, "Running running")]
#[case::succeeds("Never", "Running", "0", 0, "Succeeded terminated")]
#[case::fails("Never", "Running", "75", 0, "Failed terminated")]
#[case::succeeds_on_failure("OnFailure", "Running", "0", 0, "Succeeded terminated")]
#[case::restarts_at_once_the_first_time("OnFailure", "Running", "75", 0, "start")]
#[case::then_after_ten_seconds("OnFailure", "Running", "75 1", 9, "event BackOff; Running waiting; wake 10")]
#[case::which_is_reported_once("OnFailure", "Running CrashLoopBackOff", "75 1", 9, "Running waiting; wake 10")]
#[case::then_starts("OnFailure", "Running", "75 1", 10, "start")]
#[case::then_after_twenty("Always", "Running CrashLoopBackOff", "75 2", 10, "Running waiting; wake 20")]
#[case::never_after_more_than_five_minutes(
    "Always",
    "Running CrashLoopBackOff",
    "75 40",
    0,
    "Running waiting; wake 300"
)]
#[case::restarts_after_a_success_too("Always", "Running", "0", 0, "start")]
#[case::is_done_when_it_is_done("Never", "Succeeded", "0", 0, "")]
#[case::is_done_when_the_status_says_so("Never", "Failed", "running", 0, "kill")]
#[case::is_killed_once("Never", "Failed", "running killed", 0, "")]
#[case::is_asked_to_end("Never", "Running deleted", "running", 0, "terminate; wake 30")]
#[case::has_its_time("Never", "Running deleted", "running asked", 29, "wake 30")]
#[case::is_killed_after_it("Never", "Running deleted", "running asked", 30, "kill")]
#[case::is_killed_at_once("Never", "Running forced", "running", 0, "kill")]
#[case::goes_when_it_has_ended("Never", "Running deleted", "143 asked", 5, "Failed terminated; remove")]
#[case::goes_without_having_run("Never", "deleted", "idle", 5, "Failed; remove")]
#[case::went_already("Never", "Failed forced", "143", 5, "")]
fn a_pod_lives(
    #[case] policy: &str,
    #[case] words: &str,
    #[case] known: &str,
    #[case] now: i64,
    #[case] expected: &str,
) {
    let ready = || Readiness::Ready;
    let steps = decide(&pod(policy, words), &facts(known), &ready, at(now), Duration::from_secs(10));
    assert_eq!(steps.iter().map(render).collect::<Vec<_>>().join("; "), expected);
}

#[rstest]
#[case::no_image(Readiness::NoImage, "", "ErrImagePull; event Failed")]
#[case::still_no_image(Readiness::NoImage, "ErrImagePull", "ImagePullBackOff")]
#[case::no_key(Readiness::Misconfigured("x".to_owned()), "", "CreateContainerConfigError; event Failed")]
#[case::still_no_key(Readiness::Misconfigured("x".to_owned()), "CreateContainerConfigError", "CreateContainerConfigError")]
#[case::no_volume(Readiness::Unmountable("v".to_owned(), "x".to_owned()), "", "ContainerCreating; event FailedMount")]
#[case::still_no_volume(
    Readiness::Unmountable("v".to_owned(), "x".to_owned()), "ContainerCreating", "ContainerCreating")]
fn a_pod_waits(#[case] readiness: Readiness, #[case] words: &str, #[case] expected: &str) {
    let ready = || readiness.clone();
    let steps = decide(&pod("Never", words), &facts("idle"), &ready, at(0), Duration::from_secs(10));
    let mut rendered: Vec<_> = steps.iter().map(render).collect();
    for (text, step) in rendered.iter_mut().zip(&steps) {
        if let Step::Status(status) = step {
            let waiting: Value = status["containerStatuses"][0]["state"]["waiting"]["reason"].clone();
            waiting.as_str().unwrap().clone_into(text);
        }
    }
    rendered.sort();
    assert_eq!(rendered.join("; "), expected);
}

#[test]
fn a_long_run_forgives_earlier_crashes() {
    let mut facts = facts("1 4");
    facts.begin(at(0), Duration::from_secs(10));
    assert_eq!((facts.crashes, facts.restarts), (5, 1));
    facts.life = Life::Ended(Exit { finished: at(600), started: at(0), ..exit(1) });
    facts.begin(at(600), Duration::from_secs(10));
    assert_eq!((facts.crashes, facts.restarts), (1, 2));
}

#[test]
fn what_others_wrote_into_a_status_stays() {
    let mut pod = pod("Never", "");
    pod.status.insert("conditions".to_owned(), json!([{ "type": "DisruptionTarget", "status": "True" }]));
    pod.status.insert("qosClass".to_owned(), json!("BestEffort"));
    let status = status::never_run(&pod, at(0));
    assert_eq!(status["conditions"][0]["type"], "DisruptionTarget");
    assert_eq!(status["qosClass"], "BestEffort");
}

#[rstest]
#[case("plain", "plain")]
#[case("$(A)$(B)", "1$(B)")]
#[case("$$(A) $A $", "$(A) $A $")]
#[case("$(A", "$(A")]
fn variables_are_expanded(#[case] text: &str, #[case] expected: &str) {
    let environment = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
    assert_eq!(expand(text, &environment), expected);
}

#[rstest]
#[case("/data", "/tmp/a")]
#[case("/data/x", "/tmp/a/x")]
#[case("/data/inner/x", "/tmp/b/x")]
#[case("/database", "/database")]
#[case("see /data", "see /data")]
fn mount_paths_are_rewritten(#[case] text: &str, #[case] expected: &str) {
    let mount = |path: &str, source: &str| Mount { path: path.into(), source: source.into(), read_only: false };
    assert_eq!(rewritten(text, &[mount("/data", "/tmp/a"), mount("/data/inner", "/tmp/b")]), expected);
}

struct Fixture;

impl Sources for Fixture {
    fn secret(&self, name: &str) -> Option<Data> {
        (name == "s").then(|| BTreeMap::from([("token".to_owned(), b"s3cret".to_vec())]))
    }

    fn config_map(&self, _name: &str) -> Option<Data> {
        None
    }

    fn token(&self, account: &str, _seconds: i64) -> Option<String> {
        Some(format!("token of {account}"))
    }
}

#[rstest]
#[case::a_path_that_leaves(json!({ "secret": { "secretName": "s", "items": [{ "key": "token", "path": "../x" }] } }),
    "the path \"../x\" leaves its volume")]
#[case::no_secret(json!({ "secret": { "secretName": "none" } }), "secret \"none\" not found")]
#[case::no_key(json!({ "secret": { "secretName": "s", "items": [{ "key": "none", "path": "x" }] } }),
    "references non-existent secret key: none")]
#[case::no_map(json!({ "configMap": { "name": "c" } }), "configmap \"c\" not found")]
#[case::no_field(json!({ "downwardAPI": { "items": [{ "path": "x", "fieldRef": { "fieldPath": "spec.none" } }] } }),
    "unsupported fieldPath: spec.none")]
#[case::the_machines_own_files(json!({ "hostPath": { "path": "/" } }),
    "the emulator provides emptyDir, secret, configMap, downwardAPI and projected only")]
fn a_volume_is_refused(#[case] volume: Value, #[case] expected: &str) {
    let volume: Volume = view(&volume).unwrap();
    let refused = content(&pod("Never", ""), &volume, &Fixture).err();
    assert_eq!(refused.as_deref(), Some(expected));
}

#[test]
fn an_optional_secret_may_be_missing() {
    let volume: Volume = view(&json!({ "secret": { "secretName": "none", "optional": true } })).unwrap();
    let Ok(Content(files)) = content(&pod("Never", ""), &volume, &Fixture) else { panic!("it is optional") };
    assert!(files.is_empty());
}

/// The output of a container that has a Secret at a path, for one way of starting it.
async fn run_in(isolation: &Isolation, folder: &Path) -> (String, String) {
    let pod: Pod = view(&json!({
        "metadata": { "name": "p", "namespace": "n", "uid": "u" },
        "spec": {
            "containers": [{
                "name": "main", "image": "i",
                "args": ["-c", "cat \"$1/token\"; echo; echo \"$odd\"; echo end > $TERMINATION_LOG_PATH", "sh", "/of a test/s"],
                "env": [{ "name": "odd", "value": "/of a test/s/token" }, { "name": "o.d-d", "value": "x" }],
                "volumeMounts": [{ "name": "v", "mountPath": "/of a test/s" }],
            }],
            "volumes": [{ "name": "v", "secret": { "secretName": "s" } }],
        },
    }))
    .unwrap();
    let run = Run { program: Path::new("/bin/sh"), folder, number: 0, isolation };
    let prepared = prepare(&pod, &pod.spec.containers[0], &run, &Fixture).unwrap();
    let (log, (_orders, received)) = (Log::default(), unbounded_channel());
    let status = child::run(prepared.launch, folder, &log, received).await.unwrap();
    assert!(folder.join("process").is_file(), "the next emulator could not end it");
    let output = String::from_utf8(log.read()).unwrap();
    assert!(status.success(), "{output}");
    (output, prepared.message.read(false, String::new))
}

#[tokio::test]
async fn without_namespaces_paths_are_rewritten() {
    let folder = tempfile::tempdir().unwrap();
    let (output, message) = run_in(&Isolation::Rewriting, folder.path()).await;
    let token: PathBuf = folder.path().join("volumes/v/token");
    assert_eq!((output, message.as_str()), (format!("s3cret\n{}\n", token.display()), "end\n"));
}

#[tokio::test]
async fn with_namespaces_volumes_are_at_their_paths() {
    let roots = tempfile::tempdir().unwrap();
    let isolation = Isolation::probe(roots.path()).await;
    if matches!(isolation, Isolation::Rewriting) {
        eprintln!("skipped: no mount namespace can be had here");
        return;
    }
    let mounts = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = mounts();
    // The second container finds the root of the first.
    for _ in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let (output, message) = run_in(&isolation, folder.path()).await;
        assert_eq!((output.as_str(), message.as_str()), ("s3cret\n/of a test/s/token\n", "end\n"));
    }
    assert_eq!(mounts(), before, "it has changed the machine's mounts");
}

#[test]
fn logs_are_bounded_and_by_container() {
    let logs = PodLogs::default();
    let log = logs.begin("n", "p", "main");
    log.append(&vec![b'x'; 2 * 1024 * 1024]);
    log.append(b"\nlast\n");
    let read = logs.read("n", "p", Some("main")).unwrap();
    assert_eq!((read.len(), read.ends_with(b"x\nlast\n")), (1024 * 1024, true));
    assert_eq!(log.tail().len(), 2048);
    assert_eq!((logs.read("n", "p", Some("other")), logs.read("n", "q", None)), (None, None));
    let lines = Log::default();
    (0..100).for_each(|number| lines.append(format!("é{number}\n").as_bytes()));
    assert!(lines.tail().starts_with("é20\n"), "{}", lines.tail());
}
