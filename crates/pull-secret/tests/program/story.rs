//! The main job: stored, unchanged, rotated, pruned; what it calls, logs, labels and reports.

use serde_json::json;
use testkit::rig::STORE_WRITES;

use testkit::rig::{Rig, SECRET, pull_secret};

#[tokio::test]
async fn a_first_run_makes_four_calls_and_logs_the_lines_of_the_specification() {
    let rig = Rig::new().await;
    let outcome = rig.stored("a").await;
    assert_eq!(rig.methods_since(0), ["getSecret", "createSecret", "addVersion", "accessVersion"]);
    assert_eq!(rig.versions().await, ["a"]);
    assert_eq!(outcome.stderr, "");
    let lines = outcome.lines();
    let logged: Vec<_> = lines
        .iter()
        .map(|line| format!("{}: {}", line["operation"].as_str().unwrap(), line["message"].as_str().unwrap()))
        .collect();
    assert_eq!(
        logged,
        [
            "start: Starting pull secret storage operation",
            "client-initialized: Successfully initialized Secret Manager client",
            "create-secret: Creating new secret: hyperfleet-cls-123-pull-secret",
            "create-secret: Successfully created secret",
            "add-secret-version: Adding secret version with pull secret data",
            "add-secret-version: Successfully created secret version",
            &format!("verify-secret: Verified secret ({} bytes)", pull_secret("a").len()),
            "skip: Skipping the Kubernetes Secret: MANAGEMENT_NAMESPACE is not set",
            "completed: Successfully created/updated pull secret",
        ]
    );
    for line in &lines {
        assert_eq!(line["cluster_id"], "cls-123");
        assert_eq!(line["gcp_project"], "my-project-1");
        assert_eq!(line["level"], "info");
        assert_eq!(line["component"], "pullsecret-job");
        assert_eq!(line["phase"], "gcp-secret-manager");
        assert_eq!(line["secret_name"], SECRET);
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
        assert!(line.as_object().unwrap().values().all(|value| !value.is_object() && !value.is_array()));
    }
    assert_eq!(lines[5]["version"], "projects/my-project-1/secrets/hyperfleet-cls-123-pull-secret/versions/1");
}

#[tokio::test]
async fn an_unchanged_run_reads_three_times_and_writes_nothing() {
    let rig = Rig::new().await;
    rig.stored("a").await;
    let calls = rig.calls();
    let outcome = rig.stored("a").await;
    assert_eq!(rig.methods_since(calls), ["getSecret", "accessVersion", "accessVersion"]);
    assert_eq!(rig.versions().await, ["a"]);
    assert_eq!(outcome.reason(), "SecretUnchanged");
    let expected =
        ["start", "client-initialized", "secret-exists", "secret-unchanged", "verify-secret", "skip", "completed"];
    assert_eq!(outcome.operations(), expected);
}

#[tokio::test]
async fn the_same_meaning_in_other_bytes_is_unchanged() {
    let rig = Rig::new().await;
    rig.stored("a").await;
    let spaced =
        pull_secret("a").replace(':', " : ").replace("quay.io", "https://quay.io/v1/").replace("word : ", "word:");
    let outcome = rig.run(&mut rig.job(&spaced)).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(0), "SecretUnchanged"));
}

#[tokio::test]
async fn a_change_is_announced_added_verified_and_confirmed() {
    let rig = Rig::new().await;
    rig.stored("a").await;
    let calls = rig.calls();
    let outcome = rig.stored("b").await;
    assert_eq!(
        rig.methods_since(calls),
        ["getSecret", "accessVersion", "accessVersion", "updateSecret", "addVersion", "accessVersion", "updateSecret"]
    );
    assert_eq!(rig.versions().await, ["a", "b"]);
    assert_eq!(outcome.reason(), "SecretStored");
    assert_eq!(outcome.result["details"]["secretVersion"], 2);
}

#[tokio::test]
async fn old_versions_are_destroyed_but_the_last_few() {
    let rig = Rig::new().await;
    for name in ["a", "b", "c"] {
        rig.stored(name).await;
    }
    assert_eq!(rig.versions().await, ["a", "b", "c"]);
    let calls = rig.calls();
    rig.stored("d").await;
    let written = |method: &&str| STORE_WRITES.contains(method);
    let written: Vec<_> = rig.methods_since(calls).into_iter().filter(written).collect();
    assert_eq!(written, ["updateSecret", "addVersion", "destroyVersion", "updateSecret"], "a rotation is four writes");
    assert_eq!(rig.versions().await, ["destroyed", "b", "c", "d"]);
    let one = rig.run(rig.job(&pull_secret("e")).args(["--retain-versions", "1"])).await;
    assert_eq!(one.code, Some(0));
    assert_eq!(rig.versions().await, ["destroyed", "destroyed", "destroyed", "destroyed", "e"]);
    assert_eq!(one.result["details"]["versionsDestroyed"], 3);
    assert_eq!(rig.annotations().await["hyperfleet-added"], "5");
}

#[tokio::test]
async fn labels_and_record_are_those_of_the_specification() {
    let rig = Rig::new().await;
    let key = rig.path("key");
    daemon::file::replace(&key, &[7; 32]).unwrap();
    let mut job = rig.job(&pull_secret("a"));
    job.env("CLUSTER_NAME", "Production Cluster").env("GENERATION", "4").env("DIGEST_KEY_FILE", &key);
    let outcome = rig.run(job.env("SECRET_LABELS", "cost-center=42")).await;
    assert_eq!(outcome.code, Some(0));
    assert_eq!(outcome.operations()[0], "sanitize-label");
    assert_eq!(
        json!(rig.labels().await),
        json!({
            "managed-by": "hyperfleet",
            "adapter": "pullsecret",
            "cluster-id": "cls-123",
            "cluster-name": "production-cluster",
            "resource-type": "pull-secret",
            "hyperfleet-version": "v1",
            "cost-center": "42",
        })
    );
    let annotations = rig.annotations().await;
    assert_eq!(annotations["hyperfleet-generation"], "4");
    assert_eq!(annotations["hyperfleet-version"], "1");
    assert_eq!(annotations["hyperfleet-added"], "1");
    assert!(annotations["hyperfleet-digest"].starts_with("hmac-sha256:"));
    assert_eq!(outcome.result["details"]["digest"], annotations["hyperfleet-digest"].as_str());
}

#[tokio::test]
async fn changed_labels_are_repaired() {
    use secret_store::SecretStore as _;
    let rig = Rig::new().await;
    rig.stored("a").await;
    let mut metadata = rig.store.find(&testkit::rig::secret()).await.unwrap().unwrap().metadata;
    metadata.labels.remove("adapter");
    metadata.labels.insert("team".to_owned(), "images".to_owned());
    rig.store.update(&testkit::rig::secret(), &metadata).await.unwrap();
    let outcome = rig.stored("a").await;
    assert_eq!(outcome.reason(), "SecretUnchanged");
    let labels = rig.labels().await;
    assert_eq!((labels["adapter"].as_str(), labels["team"].as_str()), ("pullsecret", "images"));
}

#[tokio::test]
async fn the_result_is_what_the_status_reporter_and_the_adapter_read() {
    let rig = Rig::new().await;
    let termination_log = rig.path("termination-log");
    daemon::file::replace(&termination_log, b"").unwrap();
    let outcome = rig.run(rig.job(&pull_secret("a")).env("TERMINATION_LOG_PATH", &termination_log)).await;
    let logged = std::fs::read_to_string(&termination_log).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&logged).unwrap(), outcome.result);
    let mut result = outcome.result;
    let duration = result["details"].as_object_mut().unwrap().remove("durationMs");
    assert!(duration.is_some_and(|duration| duration.is_u64()));
    assert_eq!(
        testkit::rig::calls(&mut result, "apiCalls"),
        ["1 access_secret_version 200", "1 add_secret_version 200", "1 create_secret 200", "1 get_secret 404"]
    );
    assert_eq!(
        result,
        json!({
            "status": "success",
            "reason": "SecretStored",
            "message": "A new version holds the pull secret and was read back by number. Version 1. Observed before: the secret does not exist",
            "details": {
                "clusterId": "cls-123",
                "secretName": SECRET,
                "secretPath": "projects/my-project-1/secrets/hyperfleet-cls-123-pull-secret",
                "secretVersion": 1,
                "gcpProject": "my-project-1",
                "versionsAdded": 1,
                "versionsDestroyed": 0,
                "retries": 0,
            },
        })
    );
}

#[tokio::test]
async fn the_mvps_habit_of_adding_a_version_every_run_can_be_had() {
    let rig = Rig::new().await;
    for _ in 0..3 {
        rig.run(rig.job(&pull_secret("a")).env("ALWAYS_ADD_VERSION", "true")).await;
    }
    assert_eq!(rig.versions().await, ["a", "a", "a"]);
}

#[tokio::test]
async fn a_secret_that_the_mvp_has_made_is_taken_over() {
    let rig = Rig::new().await;
    rig.unmanaged(&[("managed-by", "hyperfleet"), ("adapter", "pullsecret"), ("cluster-id", "cls-123")]).await;
    let outcome = rig.stored("a").await;
    assert_eq!(outcome.reason(), "SecretStored");
    assert_eq!(rig.versions().await, ["theirs", "a"]);
    for name in ["b", "c", "d"] {
        rig.stored(name).await;
    }
    // What we did not add stays, however many versions there are.
    assert_eq!(rig.versions().await, ["theirs", "destroyed", "b", "c", "d"]);
}
