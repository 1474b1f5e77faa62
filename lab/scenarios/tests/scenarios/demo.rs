//! `local demo`: the whole demo, for programs and for people.

use serde_json::Value;

use testkit::fleet::run;
use testkit::program;

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
