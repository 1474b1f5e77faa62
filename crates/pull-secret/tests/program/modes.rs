//! Dry run, delete, generations, regional secrets.

use emulators::secret_manager::Settings;
use serde_json::Value;
use testkit::rig::STORE_WRITES;

use testkit::rig::{Outcome, Rig, pull_secret};

fn logged_messages(outcome: &Outcome) -> Vec<String> {
    let lines = outcome.lines();
    let dry_run = lines.iter().filter(|line| line["operation"] == "dry-run");
    dry_run.map(|line| line["message"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_on_an_empty_project_prints_the_plan_and_what_cannot_be_checked() {
    let rig = Rig::new().await;
    let outcome = rig.run(rig.job(&pull_secret("a")).arg("--dry-run")).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(0), "DryRunPassed"), "{outcome:#?}");
    assert_eq!(rig.methods_since(0), ["getSecret"]);
    assert_eq!(
        logged_messages(&outcome),
        [
            "DRY RUN: Skipping secret creation/update operations",
            "DRY RUN: Would create/update secret: hyperfleet-cls-123-pull-secret (the secret does not exist)",
            "DRY RUN: Step 1: would create the secret with 5 labels",
            "DRY RUN: Step 2: would add version 1 and read it back",
            "DRY RUN: Permission secretmanager.secrets.create: not checkable without writing",
            "DRY RUN: Permission secretmanager.versions.add: not checkable without writing",
            "DRY RUN: Permission secretmanager.versions.access: not checkable without writing",
        ]
    );
    let lines = outcome.lines();
    let last = lines.last().map(|line| line["message"].as_str().unwrap());
    assert_eq!(last, Some("DRY RUN completed successfully - authentication validated"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_of_a_change_checks_permissions_and_changes_nothing() {
    let rig = Rig::new().await;
    rig.stored("a").await;
    let calls = rig.calls();
    let outcome = rig.run(rig.job(&pull_secret("b")).arg("--dry-run")).await;
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    assert_eq!(rig.methods_since(calls), ["getSecret", "accessVersion", "accessVersion", "testIamPermissions"]);
    assert!(
        logged_messages(&outcome).contains(&"DRY RUN: Permission secretmanager.versions.add: held".to_owned()),
        "{outcome:#?}"
    );
    assert_eq!(rig.versions().await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_ends_as_the_real_run_would() {
    let denied = ["secretmanager.versions.add".to_owned()].into();
    let rig = Rig::with(Settings { denied_permissions: denied, ..Settings::default() }).await;
    // On an empty project it cannot be known.
    let empty = rig.run(rig.job(&pull_secret("a")).arg("--dry-run")).await;
    assert_eq!(empty.code, Some(0), "{empty:#?}");
    let first = rig.run(&mut rig.job(&pull_secret("a"))).await;
    assert_eq!((first.code, first.reason()), (Some(4), "PermissionDenied"), "{first:#?}");
    let outcome = rig.run(rig.job(&pull_secret("a")).arg("--dry-run")).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(4), "PermissionDenied"), "{outcome:#?}");
    assert!(outcome.message().contains("secretmanager.versions.add"), "{outcome:#?}");
    let invalid = rig.run(rig.job("{}").arg("--dry-run")).await;
    assert_eq!(invalid.code, Some(3), "{invalid:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_meets_a_conflict_for_real() {
    let rig = Rig::new().await;
    rig.unmanaged(&[]).await;
    let outcome = rig.run(rig.job(&pull_secret("a")).arg("--dry-run")).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(5), "NameConflict"), "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_of_nothing_says_so() {
    let rig = Rig::new().await;
    rig.stored("a").await;
    let outcome = rig.run(rig.job(&pull_secret("a")).arg("--dry-run")).await;
    assert_eq!(
        logged_messages(&outcome).last().unwrap(),
        "DRY RUN: Would change nothing: version 1, the newest, holds this pull secret"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_needs_no_pull_secret_and_is_a_success_twice() {
    let rig = Rig::new().await;
    rig.stored("a").await;
    let planned = rig.run(rig.job("").args(["--delete", "--dry-run"])).await;
    assert_eq!(planned.code, Some(0), "{planned:#?}");
    assert_eq!(rig.versions().await, ["a"]);
    let deleted = rig.run(rig.job("").arg("--delete")).await;
    assert_eq!((deleted.code, deleted.reason()), (Some(0), "SecretDeleted"), "{deleted:#?}");
    assert_eq!(deleted.operations(), ["start", "client-initialized", "delete-secret", "completed"]);
    let again = rig.run(rig.job("").arg("--delete")).await;
    assert_eq!((again.code, again.reason()), (Some(0), "SecretAbsent"), "{again:#?}");
    rig.stored("b").await;
    assert_eq!(rig.versions().await, ["b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unanswered_deletion_is_a_success() {
    let rig = Rig::new().await;
    rig.stored("a").await;
    rig.emulator.inject("deleteSecret:commit-then-cut".parse().unwrap());
    let deleted = rig.run(rig.job("").arg("--delete")).await;
    assert_eq!((deleted.code, deleted.reason()), (Some(0), "SecretDeleted"), "{deleted:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_generation_changes_nothing_and_ends_well() {
    let rig = Rig::new().await;
    rig.run(rig.job(&pull_secret("b")).args(["--generation", "2"])).await;
    let calls = rig.calls();
    let older = rig.run(rig.job(&pull_secret("a")).args(["--generation", "1"])).await;
    assert_eq!((older.code, older.reason()), (Some(0), "Superseded"), "{older:#?}");
    assert!(rig.methods_since(calls).iter().all(|method| !STORE_WRITES.contains(method)), "{older:#?}");
    assert_eq!(rig.versions().await, ["b"]);
    let deletion = rig.run(rig.job("").args(["--delete", "--generation", "1"])).await;
    assert_eq!(deletion.reason(), "Superseded", "{deletion:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_regional_secret_rests_at_its_location() {
    let rig = Rig::new().await;
    let outcome = rig.run(rig.job(&pull_secret("a")).env("GCP_LOCATION", "europe-west1")).await;
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let path = "projects/my-project-1/locations/europe-west1/secrets/hyperfleet-cls-123-pull-secret";
    assert_eq!(outcome.result["details"]["secretPath"], path);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_where_the_policy_says() {
    let rig = Rig::new().await;
    let policy = "user-managed:europe-west1,europe-west4";
    let outcome = rig.run(rig.job(&pull_secret("a")).env("REPLICATION_POLICY", policy)).await;
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    let secret: Value = rig.raw("GET", "/v1/projects/my-project-1/secrets/hyperfleet-cls-123-pull-secret").await;
    let replicas = secret["replication"]["userManaged"]["replicas"].as_array().unwrap();
    let locations: Vec<_> = replicas.iter().map(|replica| replica["location"].as_str().unwrap()).collect();
    assert_eq!(locations, ["europe-west1", "europe-west4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_can_read_the_log() {
    let rig = Rig::new().await;
    let outcome = rig.run(rig.job(&pull_secret("a")).env("LOG_FORMAT", "text")).await;
    let first = outcome.stdout.lines().next().unwrap();
    assert!(
        first.contains(" info  start              Starting pull secret storage operation  cluster_id=cls-123"),
        "{first}"
    );
}
