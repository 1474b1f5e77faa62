//! `pull-secret prune` on what Jobs have stored.

use serde_json::{Value, json};
use testkit::hyperfleet::HyperFleetApi;
use testkit::program;
use testkit::rig::{PROJECT, Rig, pull_secret};

struct Fleet {
    rig: Rig,
    api: HyperFleetApi,
}

impl Fleet {
    /// A cluster whose Jobs have stored five versions and kept all.
    async fn new() -> Self {
        let fleet = Self { rig: Rig::new().await, api: HyperFleetApi::start().await };
        fleet.api.create("cls-123").await;
        for name in ["a", "b", "c", "d", "e"] {
            fleet.store(name, "0").await;
        }
        fleet
    }

    async fn store(&self, name: &str, retain: &str) {
        let mut job = self.rig.job(&pull_secret(name));
        let outcome = self.rig.run(job.args(["--retain-versions", retain])).await;
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    }

    /// Prunes; returns the exit code, the lines about secrets, and the summary.
    async fn prune(&self, flags: &[&str]) -> (Option<i32>, Vec<Value>, Value) {
        let mut command = program::pull_secret(&["prune", "--project", PROJECT, "--output", "json"]);
        command.args(["--rate", "60000", "--api", &format!("http://{}", self.api.address)]).args(flags);
        command.env("SECRET_MANAGER_EMULATOR_HOST", self.rig.emulator.address().to_string());
        let output = command.output().await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let summary = lines.pop().unwrap_or_else(|| json!(String::from_utf8(output.stderr).unwrap()));
        (output.status.code(), lines, summary)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn superseded_versions_are_destroyed_on_request_only() {
    let fleet = Fleet::new().await;
    let before = fleet.rig.versions().await;
    let (code, lines, summary) = fleet.prune(&[]).await;
    assert_eq!((code, lines.len()), (Some(0), 1), "{summary}");
    assert_eq!((&lines[0]["action"], &lines[0]["versions"]), (&json!("wouldDestroy"), &json!([1, 2])));
    assert_eq!(summary["dryRun"], true);
    assert_eq!(fleet.rig.versions().await, before, "nothing was changed");
    let (code, lines, summary) = fleet.prune(&["--yes", "--retain-versions", "3"]).await;
    assert_eq!((code, &lines[0]["action"]), (Some(0), &json!("destroyed")), "{summary}");
    assert_eq!(summary["summary"], json!({"secrets": 1, "pruned": 1, "versions": 2, "failed": 0}));
    assert_eq!(fleet.rig.annotations().await["hyperfleet-added"], "3,4,5");
    let (_, lines, summary) = fleet.prune(&["--yes", "--retain-versions", "3"]).await;
    assert_eq!((lines, &summary["summary"]["versions"]), (vec![], &json!(0)));
    // The next run of the Job finds its record as it would have left it.
    fleet.store("e", "3").await;
    fleet.store("f", "3").await;
    assert_eq!(fleet.rig.annotations().await["hyperfleet-added"], "4,5,6");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_selected_clusters_and_only_known_ones_are_pruned() {
    let fleet = Fleet::new().await;
    fleet.api.create("cls-9").await;
    let dry = async |flags: &[&str]| {
        let (code, lines, summary) = fleet.prune(flags).await;
        (code, lines.len(), summary)
    };
    assert_eq!(dry(&["cls-9"]).await.1, 0);
    assert_eq!(dry(&["cls-123"]).await.1, 1);
    assert_eq!(dry(&["--search", "id = 'cls-9'"]).await.1, 0);
    assert_eq!(dry(&["--search", "id = 'cls-123'"]).await.1, 1);
    let (code, _, error) = dry(&["cls-7"]).await;
    assert!(
        code == Some(2) && error.to_string().contains("cls-7: there is no such cluster, by id or by name"),
        "{error}"
    );
    let other = Fleet { rig: fleet.rig, api: HyperFleetApi::start().await };
    assert_eq!(other.prune(&[]).await.1.len(), 0, "a secret of an unknown cluster is sweep's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_in_use_that_is_disabled_keeps_the_others() {
    let fleet = Fleet::new().await;
    fleet.rig.disable(5).await;
    let (code, lines, _) = fleet.prune(&["--yes", "--retain-versions", "3"]).await;
    assert_eq!((code, &lines[0]["action"]), (Some(0), &json!("kept")));
    assert_eq!(lines[0]["because"], "version 5, which is in use, is disabled");
    assert_eq!(fleet.rig.annotations().await["hyperfleet-added"], "1,2,3,4,5");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_ends_the_pruning_and_the_next_one_continues() {
    let fleet = Fleet::new().await;
    fleet.rig.emulator.inject("destroyVersion:permission-denied".parse().unwrap());
    let (code, lines, summary) = fleet.prune(&["--yes", "--retain-versions", "3"]).await;
    assert_eq!((code, &lines[0]["action"]), (Some(1), &json!("failed")), "{summary}");
    assert_eq!(
        fleet.rig.annotations().await["hyperfleet-added"],
        "1,2,3,4,5",
        "what is not destroyed stays in the record"
    );
    let (code, lines, _) = fleet.prune(&["--yes", "--retain-versions", "3"]).await;
    assert_eq!((code, &lines[0]["versions"]), (Some(0), &json!([1, 2])));
}

/// Jobs that store new content while their secret is pruned: neither loses a version that it needs.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_at_the_same_time_is_not_disturbed() {
    let fleet = Fleet::new().await;
    let jobs = async {
        for name in ["f", "g", "h"] {
            fleet.store(name, "0").await;
        }
    };
    let prunes = async {
        for _time in 0..4 {
            let (code, _, summary) = fleet.prune(&["--yes", "--retain-versions", "1"]).await;
            assert_eq!(code, Some(0), "{summary}");
        }
    };
    tokio::join!(jobs, prunes);
    let (code, _, summary) = fleet.prune(&["--yes", "--retain-versions", "1"]).await;
    assert_eq!(code, Some(0), "{summary}");
    let annotations = fleet.rig.annotations().await;
    assert_eq!((&*annotations["hyperfleet-version"], &*annotations["hyperfleet-added"]), ("8", "8"));
    fleet.store("h", "0").await;
    assert_eq!(fleet.rig.annotations().await["hyperfleet-version"], "8", "what is in use was never destroyed");
}
