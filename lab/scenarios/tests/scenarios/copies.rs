//! Every copy of a pull secret goes when it is not needed any more, and no cluster touches another one's.

use std::collections::BTreeMap;

use hyperfleet_client::{Generation, Resource, Status};
use kubernetes::{AppliedSecret, Form};
use secret_store::{NewSecret, NewVersion, Replication, SecretStore as _, VersionNumber};
use serde_json::{Value, json};
use tokio::process::Command;

use testkit::api::server_with;
use testkit::fleet::{
    PROJECT, Player, Up, condition, document, folder, is_available, namespace, run, secret_key, view,
};
use testkit::program;
use testkit::rig::{Signal, signal};

const ID: &str = "cls-1";
const OTHER_PROJECT: &str = "my-project-2";
/// Creation time of an earlier cluster.
const EARLIER: &str = "2026-01-01T00:00:00Z";

/// True if the project has a secret for the cluster.
async fn is_stored(up: &Up, project: &str) -> bool {
    let secret = format!("hyperfleet-{ID}-pull-secret").parse().unwrap();
    up.store(project).await.find(&secret).await.unwrap().is_some()
}

async fn available(up: &Up) {
    up.player.create(ID, &document("a")).await;
    up.player.make_ready(&up.cluster().await, ID, 1).await;
    up.player.until(ID, |cluster| is_available(cluster, 1)).await;
}

fn copies(cluster: &Resource) -> Vec<String> {
    let listed = view(cluster)["data"]["copies"].as_array().cloned().unwrap_or_default();
    let line = |copy: &Value| {
        let home = copy["project"].as_str().or(copy["namespace"].as_str()).unwrap_or_default();
        format!("{home}/{}", copy["name"].as_str().unwrap_or_default())
    };
    listed.iter().map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_to_another_project_deletes_the_former_copy() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    available(&up).await;
    up.player.move_to(ID, OTHER_PROJECT, &document("a")).await;
    up.player.make_ready(&up.cluster().await, ID, 2).await;
    let stored = "hyperfleet-cls-1-pull-secret";
    let moved = [format!("{OTHER_PROJECT}/{stored}"), format!("{}/cls-1-pull-secret", namespace(ID))];
    up.player.until(ID, |cluster| is_available(cluster, 2) && copies(cluster) == moved).await;
    assert!(is_stored(&up, OTHER_PROJECT).await);
    assert!(!is_stored(&up, PROJECT).await);
    assert_eq!(up.applied_secret(ID).await, Some(document("a")));
    let terminating = up.player.delete(ID).await;
    up.player.finalize(ID, terminating.generation).await;
    up.player.until_gone(ID).await;
    assert!(!is_stored(&up, OTHER_PROJECT).await);
    assert_eq!(up.applied_secret(ID).await, None);
}

/// The clean-up of the former project is what a deletion waits for.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_right_after_a_move_leaves_no_copy() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    available(&up).await;
    let moved = up.player.move_to(ID, OTHER_PROJECT, &document("a")).await;
    assert_eq!(moved.generation, Generation::from(2));
    let terminating = up.player.delete(ID).await;
    up.player.finalize(ID, terminating.generation).await;
    up.player.until_gone(ID).await;
    assert!(!is_stored(&up, PROJECT).await && !is_stored(&up, OTHER_PROJECT).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_placement_has_moved_gets_the_secret_and_the_former_one_loses_it() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    available(&up).await;
    let cluster = up.cluster().await;
    cluster.ensure_namespace("clusters-moved").await.unwrap();
    let done =
        [("Applied", Status::True, "Done"), ("Available", Status::True, "Done"), ("Health", Status::True, "Done")];
    up.player.report(("placement", ID), 1, &done, json!({"namespace": "clusters-moved"})).await;
    let is_moved = |resource: &Resource| {
        is_available(resource, 1)
            && copies(resource)
                == [format!("{PROJECT}/hyperfleet-cls-1-pull-secret"), "clusters-moved/cls-1-pull-secret".to_owned()]
    };
    up.player.until(ID, is_moved).await;
    let key = kubernetes::SecretKey { namespace: "clusters-moved".to_owned(), name: "cls-1-pull-secret".to_owned() };
    assert!(cluster.find_secret(&key).await.unwrap().is_some());
    assert_eq!(up.applied_secret(ID).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_deleted_before_placement_is_finalized() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    up.player.create(ID, &document("a")).await;
    up.player.until(ID, |cluster| !view(cluster).is_null()).await;
    let terminating = up.player.delete(ID).await;
    up.player.until(ID, |cluster| condition(cluster, "Finalized")["status"] == "True").await;
    up.player.finalize(ID, terminating.generation).await;
    up.player.until_gone(ID).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_others_neither_block_a_deletion_nor_are_touched() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    let secret = format!("hyperfleet-{ID}-pull-secret").parse().unwrap();
    let theirs = NewSecret {
        labels: BTreeMap::from([("managed-by".to_owned(), "terraform".to_owned())]),
        annotations: BTreeMap::new(),
        replication: Replication::Automatic { kms_key: None },
    };
    up.store(PROJECT).await.create(&secret, &theirs).await.unwrap();
    let cluster = up.cluster().await;
    cluster.ensure_namespace(&namespace(ID)).await.unwrap();
    let unmanaged = AppliedSecret {
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        content: document("theirs").into_bytes().into(),
        form: Form::DockerConfigJson,
        owner: None,
    };
    cluster.create_secret(&secret_key(ID), &unmanaged, false).await.unwrap();
    up.player.create(ID, &document("a")).await;
    up.player.make_ready(&cluster, ID, 1).await;
    let refused = up.player.until(ID, |cluster| condition(cluster, "Available")["reason"] == "NameConflict").await;
    let message = condition(&refused, "Available")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the label `managed-by=terraform`") && !message.contains("gcloud"), "{message}");
    let terminating = up.player.delete(ID).await;
    let finalized = up.player.until(ID, |cluster| condition(cluster, "Finalized")["status"] == "True").await;
    let message = condition(&finalized, "Finalized")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("not managed for this cluster"), "{message}");
    up.player.finalize(ID, terminating.generation).await;
    up.player.until_gone(ID).await;
    assert!(is_stored(&up, PROJECT).await);
    assert_eq!(up.applied_secret(ID).await, Some(document("theirs")));
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The labels of both secrets of the cluster.
fn labels() -> BTreeMap<String, String> {
    texts(&[("managed-by", "hyperfleet"), ("adapter", "pullsecret"), ("cluster-id", ID)])
}

/// Stores a secret of a cluster with the id and this incarnation, as no adapter knows it.
async fn store_unknown_copy(up: &Up, incarnation: &str) {
    let (store, secret) = (up.store(PROJECT).await, format!("hyperfleet-{ID}-pull-secret").parse().unwrap());
    let annotations = texts(&[
        ("hyperfleet-generation", "3"),
        ("hyperfleet-version", "1"),
        ("hyperfleet-added", "1"),
        ("hyperfleet-incarnation", incarnation),
    ]);
    let new = NewSecret { labels: labels(), annotations, replication: Replication::Automatic { kms_key: None } };
    store.create(&secret, &new).await.unwrap();
    let content = document("tenant-a").into_bytes().into();
    store.add_version(&secret, &NewVersion::without_record(VersionNumber::FIRST, &content)).await.unwrap();
}

/// A restored database has an older destination, and the report of the adapter lists only that.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_the_report_of_a_living_cluster_does_not_list_is_swept_on_request() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    available(&up).await;
    up.player.move_to(ID, OTHER_PROJECT, &document("a")).await;
    up.player.make_ready(&up.cluster().await, ID, 2).await;
    let is_moved = |cluster: &Resource| is_available(cluster, 2) && !copies(cluster)[0].starts_with(PROJECT);
    let moved = up.player.until(ID, |cluster| is_moved(cluster) && copies(cluster).len() == 2).await;
    store_unknown_copy(&up, &moved.created_time.unwrap().to_string()).await;
    for flags in [&["--unknown"][..], &["--cluster", ID], &["--not-listed", "--dry-run"]] {
        let (code, lines) = sweep(&up, flags).await;
        let found: Vec<_> = lines.iter().filter(|line| line["cluster"] == ID).map(|line| &line["state"]).collect();
        assert_eq!((code, found.as_slice()), (Some(0), [&json!("notListed")].as_slice()), "{lines:#?}");
        assert!(is_stored(&up, PROJECT).await);
    }
    let (code, lines) = sweep(&up, &["--not-listed"]).await;
    assert_eq!((code, &lines.last().unwrap()["summary"]["deleted"]), (Some(0), &json!(1)), "{lines:#?}");
    assert!(!is_stored(&up, PROJECT).await && is_stored(&up, OTHER_PROJECT).await);
    assert_eq!(up.applied_secret(ID).await, Some(document("a")));
}

/// Leaves both secrets of an earlier cluster with the id, as a forced deletion does.
async fn leave_behind(up: &Up) {
    store_unknown_copy(up, EARLIER).await;
    let cluster = up.cluster().await;
    cluster.ensure_namespace(&namespace(ID)).await.unwrap();
    let applied = AppliedSecret {
        labels: labels(),
        annotations: texts(&[("hyperfleet.io/generation", "3"), ("hyperfleet.io/incarnation", EARLIER)]),
        content: document("tenant-a").into_bytes().into(),
        form: Form::DockerConfigJson,
        owner: None,
    };
    cluster.create_secret(&secret_key(ID), &applied, false).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recreated_cluster_neither_gets_nor_replaces_the_former_ones_credentials() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    leave_behind(&up).await;
    up.player.create(ID, &document("tenant-b")).await;
    up.player.make_ready(&up.cluster().await, ID, 1).await;
    let reason = |cluster: &Resource| condition(cluster, "Available")["reason"].clone();
    let refused = up.player.until(ID, |cluster| reason(cluster) == "DifferentIncarnation").await;
    assert_eq!(condition(&refused, "Available")["status"], "False");
    let message = condition(&refused, "Available")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("pull-secret sweep") && message.contains("--adopt"), "{message}");
    assert_eq!(up.versions(ID).await, [document("tenant-a")]);
    assert_eq!(up.applied_secret(ID).await, Some(document("tenant-a")));
    let (code, lines) = sweep(&up, &["--dry-run"]).await;
    let actions: Vec<_> = lines.iter().filter_map(|line| line["action"].as_str()).collect();
    assert_eq!((code, actions.as_slice()), (Some(0), ["would be deleted"; 2].as_slice()), "{lines:#?}");
    let (code, lines) = sweep(&up, &[]).await;
    let summary = json!({"listed": 2, "leftBehind": 2, "deleted": 2, "notDeleted": 0});
    assert_eq!((code, &lines.last().unwrap()["summary"]), (Some(0), &summary), "{lines:#?}");
    up.player.rotate(ID, &document("tenant-b2")).await;
    up.player.make_ready(&up.cluster().await, ID, 2).await;
    up.player.until(ID, |cluster| is_available(cluster, 2)).await;
    assert_eq!(up.versions(ID).await, [document("tenant-b2")]);
    assert_eq!(up.applied_secret(ID).await, Some(document("tenant-b2")));
    let (_, lines) = sweep(&up, &[]).await;
    assert_eq!(lines.last().unwrap()["summary"]["leftBehind"], 0, "{lines:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deletion_of_a_recreated_cluster_leaves_the_former_ones_secrets_to_the_sweeper() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    leave_behind(&up).await;
    up.player.create(ID, &document("tenant-b")).await;
    let terminating = up.player.delete(ID).await;
    up.player.finalize(ID, terminating.generation).await;
    up.player.until_gone(ID).await;
    assert!(is_stored(&up, PROJECT).await);
    // The cluster is unknown now, and another fleet may use the project: it must be named.
    let (_, lines) = sweep(&up, &[]).await;
    assert_eq!(lines[0]["state"], "unknown", "{lines:#?}");
    assert!(is_stored(&up, PROJECT).await);
    let (code, output, _) = run(&mut sweeping(&up, &["--unknown", "--max", "1"])).await;
    assert_eq!((code, output.as_str()), (Some(2), ""), "more than the maximum are left, so nothing is deleted");
    assert!(is_stored(&up, PROJECT).await);
    let (code, _) = sweep(&up, &["--cluster", ID]).await;
    assert_eq!(code, Some(0));
    assert!(!is_stored(&up, PROJECT).await);
    assert_eq!(up.applied_secret(ID).await, None);
}

/// Without a tombstone the secrets could be another fleet's, and would have to be named.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_forced_deletion_leaves_is_swept() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    available(&up).await;
    up.player.create("cls-2", &document("b")).await;
    up.player.make_ready(&up.cluster().await, "cls-2", 1).await;
    up.player.until("cls-2", |cluster| is_available(cluster, 1)).await;
    up.interrupt().await;
    // The API alone: an adapter would begin to clean up.
    let config = folder.path().join("api.yaml");
    let (mut api, address) = server_with(folder.path(), &[("HYPERFLEET_CONFIG", config.to_str().unwrap())]).await;
    Player::of(&format!("http://{address}")).delete(ID).await;
    let url = format!("http://{address}/api/hyperfleet/v1/clusters/{ID}/force-delete");
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--fail", &url, "-d", r#"{"reason": "the hosted cluster is lost"}"#]).env("no_proxy", "*");
    assert!(curl.status().await.unwrap().success());
    signal(&api, Signal::TERM);
    api.wait().await.unwrap();
    let up = Up::in_folder(folder.path()).await;
    assert!(is_stored(&up, PROJECT).await);
    let (code, lines) = sweep(&up, &[]).await;
    let of_cluster: Vec<_> = lines.iter().filter(|line| line["cluster"] == ID).collect();
    assert_eq!(code, Some(0), "{lines:#?}");
    assert!(of_cluster.iter().all(|line| line["state"] == "forceDeleted" && line["action"] == "deleted"), "{lines:#?}");
    assert!(!is_stored(&up, PROJECT).await);
    assert_eq!(up.applied_secret(ID).await, None);
    assert_eq!(up.applied_secret("cls-2").await, Some(document("b")), "a living cluster keeps its secrets");
}

fn sweeping(up: &Up, flags: &[&str]) -> Command {
    let kubeconfig = up.path("kubeconfig");
    let api = up.place("api").to_owned();
    let place = [
        "sweep",
        "--project",
        PROJECT,
        "--output",
        "json",
        "--api",
        &api,
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
    ];
    let mut command = program::pull_secret(&[&place[..], flags].concat());
    command.env("SECRET_MANAGER_EMULATOR_HOST", up.place("secret_manager").trim_start_matches("http://"));
    command.env("SECRET_MANAGER_EMULATOR_TOKEN_FILE", up.ready["secret_manager_token_file"].as_str().unwrap());
    command
}

/// Exit code and lines of a sweep.
async fn sweep(up: &Up, flags: &[&str]) -> (Option<i32>, Vec<Value>) {
    let (code, output, _) = run(&mut sweeping(up, flags)).await;
    (code, output.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}
