//! `local demo`: the whole demo, for programs and for people; `local demo credentials`, with a real registry.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emulators::real_registry::VARIABLES;
use serde_json::Value;

use testkit::fleet::run;
use testkit::program;
use testkit::registry;

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_prints_every_step_for_programs() {
    let (code, stdout, stderr) = run(&mut program::local(&["demo", "--output", "json"])).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kind = |kind: &str| lines.iter().filter(|line| line["event"] == kind).cloned().collect::<Vec<_>>();
    let results: Vec<_> = of_kind("done").iter().map(|line| line["result"].as_str().unwrap().to_owned()).collect();
    let expect = [
        "the adapter says what it waits for",
        "stored, read back, applied",
        "a new version, applied",
        "no version added",
        "repaired, no version added",
        "nothing is left",
    ];
    assert_eq!(results, expect);
    let quotes: Vec<_> = of_kind("quote").iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect();
    assert!(quotes[0].contains("validation"), "{quotes:?}");
    assert!(quotes.iter().any(|quote| quote.contains("placement")), "{quotes:?}");
    let summary = &of_kind("summary")[0];
    assert_eq!(summary["steps"].as_array().unwrap().len(), expect.len());
    assert!(summary["ready_to_available_ms"].as_u64().is_some());
    let versions = &of_kind("table")[0]["rows"];
    assert_eq!((&versions[0]["version"], &versions[0]["state"]), (&Value::from("2"), &Value::from("enabled")));
    assert_ne!(versions[0]["digest"], versions[1]["digest"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_prints_times_for_people_and_ends_with_a_table() {
    let (code, stdout, stderr) = run(program::local(&["demo"]).env("http_proxy", "http://127.0.0.1:1")).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(stderr, "", "the log is there when it is asked for");
    let chapters = stdout.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).count();
    assert!(chapters >= 6, "{stdout}");
    assert!(stdout.contains("WHAT HAPPENED"), "{stdout}");
    assert!(stdout.contains("From a cluster that is ready to Available=True: "), "{stdout}");
    // The passwords of its pull secrets, in the forms in which they could slip out.
    for piece in ["invented", "ZGVtby11c2Vy"] {
        assert!(!stdout.contains(piece), "{stdout}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_shows_its_log_when_it_is_asked_for() {
    let (code, _, stderr) = run(&mut program::local(&["demo", "--log-level", "debug"])).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains(" job "), "{stderr}");
    for piece in ["invented", "ZGVtby11c2Vy"] {
        assert!(!stderr.contains(piece), "{stderr}");
    }
    let (code, _, stderr) = run(&mut program::local(&["demo", "--log-level", "loud"])).await;
    assert_eq!(code, Some(2), "{stderr}");
}

/// A real registry says which password pulls. `hack/real-parts/with.sh registry -- cargo test …` gets it.
#[tokio::test(flavor = "multi_thread")]
async fn the_demo_of_credentials_pulls_and_is_refused() {
    let Some(programs) = registry::programs() else { return };
    let mut demo = program::local(&["demo", "credentials", "--output", "json", "--log-level", "debug"]);
    let paths = [programs.registry.as_os_str(), programs.skopeo.as_os_str(), programs.libraries.as_ref()];
    let (code, stdout, stderr) = run(demo.envs(VARIABLES.into_iter().zip(paths))).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    check_passwords(&stdout);
    check_passwords(&stderr);
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kind = |kind: &str| lines.iter().filter(|line| line["event"] == kind).cloned().collect::<Vec<_>>();
    let steps = of_kind("summary")[0]["steps"].as_array().unwrap().clone();
    let expected = [
        ("an account, permitted, tried, published", 1, 0),
        ("the registry serves it; adopted by evidence", 0, 0),
        ("another account, adopted by evidence", 1, 0),
        ("the old password is refused, the new one pulls", 0, 1),
        ("deleted and refused; no node pulls", 0, 1),
        ("nodes pull again", 1, 0),
    ];
    let calls = |step: &Value, name: &str| step["calls"][name].as_u64().unwrap_or_default();
    let found = steps
        .iter()
        .map(|step| (step["result"].as_str().unwrap(), calls(step, "createOrgRobot"), calls(step, "deleteOrgRobot")));
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let words = |kind: &str| -> Vec<String> {
        of_kind(kind).iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect()
    };
    let (notes, quotes) = (words("note"), words("quote"));
    let number = |of: &[String], piece: &str| of.iter().filter(|line| line.contains(piece)).count();
    assert_eq!(number(&quotes, "unauthorized"), 2, "{quotes:#?}");
    assert_eq!(number(&notes, "skopeo pulls as hyperfleet+hf-"), 6, "{notes:#?}");
    assert_eq!(number(&notes, "skopeo cannot pull as hyperfleet+hf-"), 2, "{notes:#?}");
    assert_eq!(number(&quotes, "EVIDENCE    first pull: 20"), 3, "{quotes:#?}");
    assert_eq!(number(&notes, "s after the order"), 3, "{notes:#?}");
}

/// Fails if a text holds a password of Quay, one of the demo's document, or a token, in the forms in which they could slip out.
fn check_passwords(text: &str) {
    let longest = |is_part: fn(&u8) -> bool| text.as_bytes().split(|byte| !is_part(byte)).map(<[u8]>::len).max();
    let is_quays = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    assert!(longest(is_quays) < Some(32), "a password of Quay: {text}");
    for piece in ["invented", "ZGVtby11c2Vy", "eyJ", &STANDARD.encode("hyperfleet+h")] {
        assert!(!text.contains(piece), "{piece}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_of_credentials_names_what_is_missing() {
    let (code, stdout, stderr) = run(&mut program::local(&["demo", "credentials"])).await;
    assert_eq!((code, stdout.as_str(), stderr.lines().count()), (Some(2), "", 1), "{stderr}");
    assert!(stderr.contains("REAL_REGISTRY") && stderr.contains("make demo-credentials"), "{stderr}");
    let both = run(&mut program::local(&["demo", "--store=aws", "credentials"])).await;
    assert_eq!(both.0, Some(2), "{}", both.2);
}
