//! `retry`: a Job that has failed for good runs again at once, when a person says so.

use hyperfleet_client::Resource;
use serde_json::Value;
use testkit::fleet::{Up, condition, document, folder, is_available, run, up};
use testkit::program;
use testkit::rig::Rig;

/// The exit code, the lines and the last line of what is said beside them.
async fn retry(up: &Up, arguments: &[&str]) -> (Option<i32>, Vec<Value>, String) {
    let mut command = program::pull_secret(&["retry", "--api", up.place("api"), "--output", "json"]);
    command.args(arguments).env("KUBECONFIG", up.place("kubeconfig"));
    let (code, lines, stderr) = run(&mut command).await;
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (code, lines, stderr.lines().last().unwrap_or_default().to_owned())
}

fn has_failed(cluster: &Resource) -> bool {
    condition(cluster, "Available")["reason"] == "PermissionDenied"
}

/// Failures that only a person can fix are retried after half an hour: everything here happens before that.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_failed_for_good_runs_again_at_once() {
    let (rig, folder) = (Rig::new().await, folder());
    rig.emulator.inject("*:permission-denied*0".parse().unwrap());
    let mut command = up(folder.path());
    command.arg("--secret-manager").arg(rig.emulator.address().to_string());
    let up = Up::start(command).await;
    let cluster = up.cluster().await;
    for id in ["cls-1", "cls-2", "cls-3"] {
        up.player.try_create_named(id, &format!("prod-{id}"), &document("a")).await.unwrap();
    }
    for id in ["cls-1", "cls-2"] {
        up.player.make_ready(&cluster, id, 1).await;
        up.player.until(id, has_failed).await;
    }
    rig.emulator.clear_faults();

    // First it says what it would do.
    let (code, lines, summary) = retry(&up, &["cls-1"]).await;
    assert_eq!((code, lines[0]["result"].as_str()), (Some(0), Some("would_retry")), "{lines:?}");
    assert!(lines[0]["because"].as_str().unwrap().starts_with("PermissionDenied: "), "{lines:?}");
    assert!(summary.ends_with("nothing was changed: add --yes"), "{summary}");
    assert!(has_failed(&up.player.get("cls-1").await.unwrap()));

    // By a name, beside one that waits and one that does not exist.
    let (code, lines, summary) = retry(&up, &["prod-cls-1", "cls-3", "cls-9", "--yes"]).await;
    let results: Vec<_> = lines.iter().map(|line| (&line["cluster"], line["result"].as_str().unwrap())).collect();
    let expected = [("cls-1", "retried"), ("cls-3", "refused"), ("cls-9", "refused")];
    assert_eq!(code, Some(1));
    assert_eq!(results.iter().map(|(id, result)| (id.as_str().unwrap(), *result)).collect::<Vec<_>>(), expected);
    assert!(
        lines[1]["because"].as_str().unwrap().starts_with("it has no failed Job: PreconditionsNotMet: "),
        "{lines:?}"
    );
    assert_eq!(summary, "1 retried, 2 refused, 0 failed");
    up.player.until("cls-1", |cluster| is_available(cluster, 1)).await;

    // By the reason: only what still fails, and nothing of what is available.
    let search = "status.conditions.PullsecretSuccessful.reason = 'PermissionDenied'";
    let (code, lines, _) = retry(&up, &["--search", search, "--yes", "--rate", "600"]).await;
    assert_eq!((code, lines.len(), lines[0]["cluster"].as_str()), (Some(0), 1, Some("cls-2")), "{lines:?}");
    up.player.until("cls-2", |cluster| is_available(cluster, 1)).await;
    let (code, lines, _) = retry(&up, &["cls-2", "--yes"]).await;
    assert_eq!((code, lines[0]["because"].as_str()), (Some(1), Some("it is available: nothing has failed")));

    let mut blind = program::pull_secret(&["retry", "cls-1", "--api", up.place("api")]);
    let (code, _, stderr) = run(blind.env_remove("KUBECONFIG")).await;
    assert!(code == Some(2) && stderr.contains("give --kubeconfig, or set KUBECONFIG"), "{stderr}");
    up.output();
}
