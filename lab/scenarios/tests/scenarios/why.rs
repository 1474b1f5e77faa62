//! `status --why`: the causes for which clusters are not available, from our API and from one without the superset.

use std::process::Stdio;

use hyperfleet_client::{NewCondition, NewReport, Status};
use rstest::rstest;
use serde_json::{Value, json};
use testkit::fleet::run;
use testkit::go_api::GoApi;
use testkit::hyperfleet::{HyperFleetApi, report};
use testkit::program;
use testkit::rig::{Signal, signal};
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// A report that the pull secret is not available.
fn blocked(reason: &str, message: &str) -> NewReport {
    let mut report = report("pullsecret", 1, Status::False);
    let available = &mut report.conditions[0];
    *available =
        NewCondition { reason: Some(reason.to_owned()), message: Some(message.to_owned()), ..available.clone() };
    report
}

/// Eight clusters: one available, three without permission in different projects, two that wait for `dns` and one for
/// `placement`, one without a report.
async fn fleet(api: &HyperFleetApi) {
    for number in 0..8 {
        api.create(&format!("cls-{number}")).await;
    }
    api.report("cls-0", &report("pullsecret", 1, Status::True)).await;
    for number in 1..4 {
        let message = format!("project customer-{number}: permission secretmanager.secrets.create denied");
        api.report(&format!("cls-{number}"), &blocked("PermissionDenied", &message)).await;
    }
    let waiting = |adapter: &str| format!("waiting for {adapter}: not reported yet at generation 1");
    for (number, adapter) in [(4, "dns"), (5, "placement"), (6, "dns")] {
        api.report(&format!("cls-{number}"), &blocked("PreconditionsNotMet", &waiting(adapter))).await;
    }
}

async fn why(address: &str, more: &[&str]) -> (Option<i32>, String) {
    let address = format!("http://{address}");
    let arguments = [&["status", "--why", "--api", &address], more].concat();
    let (code, text, stderr) = run(&mut program::pull_secret(&arguments)).await;
    assert_eq!(stderr, "");
    (code, text)
}

#[rstest]
#[case::grouped_by_the_api(false)]
#[case::grouped_from_a_list(true)]
#[tokio::test(flavor = "multi_thread")]
async fn each_cause_is_one_row(#[case] is_go: bool) {
    let api = HyperFleetApi::start().await;
    fleet(&api).await;
    let front = if is_go { GoApi::before(&api).await } else { GoApi::transparent(&api).await };
    let (code, json) = why(&front.address, &["--output", "json"]).await;
    let found: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &found["clusters"], &found["available"]), (Some(0), &json!(8), &json!(1)));
    let row = |row: &Value| (row["count"].clone(), row["reason"].clone(), row["examples"][0]["id"].clone());
    let rows: Vec<_> = found["causes"].as_array().unwrap().iter().map(row).collect();
    assert_eq!(rows[0], (json!(3), json!("PermissionDenied"), json!("cls-1")));
    assert_eq!(rows[1], (json!(2), json!("PreconditionsNotMet"), json!("cls-4")));
    assert_eq!(rows.len(), 4, "{json}");
    assert!(rows.contains(&(json!(1), json!("PreconditionsNotMet"), json!("cls-5"))), "{json}");
    assert!(rows.contains(&(json!(1), Value::Null, json!("cls-7"))), "{json}");
    let lists = front.asked().iter().filter(|asked| *asked == "GET /clusters").count();
    assert_eq!(lists > 0, is_go, "{:?}", front.asked());

    let (_, text) = why(&front.address, &[]).await;
    assert!(text.contains("\n    waiting for placement: not reported yet at generation 1\n"), "{text}");
    assert!(text.contains("cls-1 (cls-1), cls-2 (cls-2), cls-3 (cls-3)"), "{text}");
    assert!(text.contains("\n8 clusters: 1 available, 7 not, for 4 causes\n"), "{text}");
    let (_, text) = why(&front.address, &["--search", "name = 'cls-5'"]).await;
    assert!(text.contains("\n1 cluster: 0 available, 1 not, for 1 cause\n"), "{text}");
    // The search that the last line gives finds the clusters of a reason, where the API knows reasons.
    if !is_go {
        let search = "status.conditions.PullsecretSuccessful.reason = 'PermissionDenied'";
        let (_, text) = why(&front.address, &["--search", search]).await;
        assert!(text.contains("\n3 clusters: "), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_shows_what_changes_until_it_is_stopped() {
    let api = HyperFleetApi::start().await;
    api.create("cls-1").await;
    let address = format!("http://{}", api.address);
    let arguments = ["status", "--why", "--watch", "--output", "json", "--api", &address];
    let mut watch = program::pull_secret(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = async || -> Value { serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap() };
    assert_eq!(next().await["causes"][0]["reason"], Value::Null);
    api.report("cls-1", &blocked("PermissionDenied", "denied")).await;
    while next().await["causes"][0]["reason"] != "PermissionDenied" {}
    api.report("cls-1", &report("pullsecret", 1, Status::True)).await;
    while next().await["available"] != 1 {}
    signal(&watch, Signal::INT);
    assert_eq!(watch.wait().await.unwrap().code(), Some(0));
}
