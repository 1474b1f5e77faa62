//! The scenario `on-call-50`: each planted cause is named by `explain cluster` and grouped by `status --why`, as the solution
//! of the exercise says.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use testkit::fleet::{Up, condition, document, folder, run, up};
use testkit::program;

const PAGE: &str = include_str!("../../../../docs/guides/on-call-exercise.md");
/// Number of clusters.
const CLUSTERS: usize = 52;
/// A Job without an answer says so after half a minute; the third attempt of one that fails comes after two minutes.
const TIMEOUT: Duration = Duration::from_mins(10);
/// Each question starts a program.
const PAUSE: Duration = Duration::from_secs(1);

/// A row of the solution.
#[derive(Debug)]
struct Planted {
    clusters: BTreeSet<String>,
    causes: Vec<String>,
    words: Vec<String>,
    next: String,
}

/// The solution of the guide.
fn solution() -> Vec<Planted> {
    let rows = PAGE.split_once("## Solution").unwrap().1.lines().filter(|line| line.starts_with("| cls-"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        Planted {
            clusters: cells[0].split(", ").map(str::to_owned).collect(),
            causes: code(cells[2]),
            words: code(cells[3]),
            next: cells.get(4).and_then(|cell| code(cell).pop()).unwrap_or_default(),
        }
    };
    rows.map(row).collect()
}

/// The spans of code in a cell; two backticks enclose text with single ones.
fn code(cell: &str) -> Vec<String> {
    if let Some(whole) = cell.strip_prefix("`` ").and_then(|rest| rest.strip_suffix(" ``")) {
        return vec![whole.to_owned()];
    }
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

async fn explain(fleet: &Up, id: &str) -> (Option<i32>, Value, String) {
    let ask = async |output: &str| {
        let mut command = program::pull_secret(&["explain", "cluster", id, "--api", fleet.place("api")]);
        command.args(["--output", output]).env("KUBECONFIG", fleet.place("kubeconfig"));
        let (code, text, stderr) = run(&mut command).await;
        assert_eq!(stderr, "");
        (code, text)
    };
    let (code, json) = ask("json").await;
    let (_, text) = ask("table").await;
    (code, serde_json::from_str(&json).unwrap(), text)
}

/// Explains a cluster until the page has all words, and a next command that begins as it should.
async fn named(fleet: &Up, id: &str, words: &[String], next: &str) -> (Value, String) {
    let mut last = String::new();
    let asking = async {
        loop {
            let (code, page, text) = explain(fleet, id).await;
            let first = page["next"][0].as_str().unwrap_or_default();
            if words.iter().all(|word| text.contains(word.as_str())) && first.starts_with(next) {
                assert_eq!(code, Some(1), "{text}");
                return (page, text);
            }
            last = text;
            tokio::time::sleep(PAUSE).await;
        }
    };
    match tokio::time::timeout(TIMEOUT, asking).await {
        Ok(found) => found,
        Err(tokio::time::error::Elapsed { .. }) => panic!("{id} is not explained by {words:?} and {next:?}: {last}"),
    }
}

/// The rows of `status --why`: the last word of the cause, and the clusters.
async fn causes(fleet: &Up) -> Vec<(String, BTreeSet<String>)> {
    let (code, text, _) = run(&mut program::pull_secret(&["status", "--why", "--api", fleet.place("api")])).await;
    assert_eq!(code, Some(0));
    let rows = text.lines().skip(1).take_while(|line| !line.is_empty()).filter(|line| !line.starts_with(' '));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let cause = cells[1].trim_end_matches(" (terminating)").rsplit(": ").next().unwrap();
        let ids = cells[4].split(", ").map(|example| example.split(' ').next().unwrap().to_owned());
        (cause.to_owned(), ids.collect())
    };
    rows.map(row).collect()
}

/// Waits until each row of the solution is a cause: between two attempts a Job has no reason yet.
async fn grouped(fleet: &Up, solution: &[Planted]) {
    let mut last = Vec::new();
    let asking = async {
        loop {
            last = causes(fleet).await;
            let is_row = |Planted { clusters, causes, .. }: &Planted| {
                last.iter().any(|(cause, examples)| examples == clusters && causes.contains(cause))
            };
            if last.len() == solution.len() && solution.iter().all(is_row) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    if let Err(tokio::time::error::Elapsed { .. }) = tokio::time::timeout(TIMEOUT, asking).await {
        panic!("the causes are not those of {solution:?}: {last:?}");
    }
}

/// No message stands twice on a page.
fn check_repetitions(text: &str) {
    let head = text.lines().skip(1).take_while(|line| !line.is_empty()).map(str::trim);
    for line in head.filter(|line| line.len() > 60) {
        let message = line.split_once(": ").map_or(line, |(_, message)| message);
        assert_eq!(text.matches(message).count(), 1, "{line}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_planted_cause_is_named_and_grouped_as_the_solution_says() {
    let folder = folder();
    let mut command = up(folder.path());
    command.args(["--scenario", "on-call-50"]);
    let fleet = Up::start(command).await;
    assert_eq!(fleet.place("scenario"), "on-call-50");
    let solution = solution();
    for planted in &solution {
        for id in &planted.clusters {
            let (page, text) = named(&fleet, id, &planted.words, &planted.next).await;
            check_repetitions(&text);
            assert!(page["changed"]["by"].is_string() && page["adapters"].as_array().unwrap().len() >= 4, "{page}");
        }
    }
    let planted: BTreeSet<&String> = solution.iter().flat_map(|planted| &planted.clusters).collect();
    for number in 1..=CLUSTERS {
        let id = format!("cls-{number:02}");
        if !planted.contains(&id) {
            fleet.player.until(&id, |cluster| condition(cluster, "Available")["status"] == "True").await;
            let (code, page, text) = explain(&fleet, &id).await;
            assert_eq!((code, page["state"].as_str()), (Some(0), Some("available")), "{text}");
        }
    }
    grouped(&fleet, &solution).await;
    fleet.output();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_ones_own_hits_one_project() {
    let folder = folder();
    let mut command = up(folder.path());
    command.args(["--fault", "createSecret in my-project-1:iam-denied*0"]);
    let fleet = Up::start(command).await;
    fleet.player.create("cls-1", &document("a")).await;
    fleet.player.make_ready(&fleet.cluster().await, "cls-1", 1).await;
    let grant = "gcloud projects add-iam-policy-binding my-project-1";
    let (page, _) = named(&fleet, "cls-1", &["PermissionDenied: Failed to create".to_owned()], grant).await;
    assert_eq!(page["state"], "failed", "{page}");
    fleet.output();
}
