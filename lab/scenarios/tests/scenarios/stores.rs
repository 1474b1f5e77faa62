//! The fleet plane on a real OpenBao: the demo, a move to another folder, a deletion that leaves nothing; the demo at AWS, for
//! which moto stands in; the demo at Azure, for which an emulator does.

mod by_provider;

use std::path::{Path, PathBuf};

use hyperfleet_client::Resource;
use secret_store::SecretStore as _;
use serde_json::{Value, json};
use testkit::environment::{missing, variable};
use testkit::fleet::{Up, condition, document, folder, is_available, run, up, view};
use testkit::program;
use tokio::process::Command;

const ID: &str = "cls-vault-1";
/// The folder of clusters that choose none.
const BUILT_IN: &str = "pull-secrets";

/// A command with the server's address and token; `None` after a line that says why there is no server.
fn on_openbao(mut command: Command) -> Option<Command> {
    let Some(address) = variable("REAL_OPENBAO_ADDR") else {
        return missing("REAL_OPENBAO_ADDR is not set: no OpenBao; `make real-parts` starts one");
    };
    command.arg("--store=vault").env("VAULT_ADDR", address);
    command.env("VAULT_TOKEN_FILE", variable("REAL_OPENBAO_TOKEN_FILE").unwrap());
    Some(command)
}

/// The metadata of the cluster's secret in this folder, as OpenBao's own command line reads it; null if there is none.
async fn stored(folder: &str) -> Value {
    metadata(&format!("{folder}/hyperfleet-{ID}-pull-secret")).await
}

/// The metadata of a secret, as OpenBao's own command line reads them; null if there is none.
async fn metadata(path: &str) -> Value {
    bao(&["kv", "metadata", "get", "-format=json", "-mount=secret", path]).await
}

/// The answer of OpenBao's own command line; null if it is not JSON.
async fn bao(arguments: &[&str]) -> Value {
    let output = Command::new(variable("REAL_OPENBAO_CLI").unwrap()).args(arguments).output().await.unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// True if the adapter's report names this folder, and no copy in another.
fn is_stored_in(cluster: &Resource, folder: &str) -> bool {
    let data = &view(cluster)["data"];
    let copies = data["copies"].as_array().cloned().unwrap_or_default();
    let folders: Vec<_> = copies.iter().filter_map(|copy| copy["folder"].as_str()).collect();
    data["secretPath"] == format!("secret/{folder}/hyperfleet-{ID}-pull-secret") && folders == [folder]
}

/// A command that reaches moto with the identity of a file; `None` after a line that says why there is none.
fn on_moto(mut command: Command) -> Option<Command> {
    let Some(address) = variable("REAL_MOTO_ADDR") else {
        return missing("REAL_MOTO_ADDR is not set: no AWS; `make real-parts` starts a stand-in");
    };
    command.arg("--store=aws").env("AWS_REGION", "eu-central-1").env("AWS_ENDPOINT_URL_SECRETS_MANAGER", address);
    command.env("AWS_SHARED_CREDENTIALS_FILE", variable("REAL_MOTO_CREDENTIALS").unwrap());
    command.env("AWS_EC2_METADATA_DISABLED", "true");
    Some(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_runs_on_openbao() {
    let Some(demo) = on_openbao(program::local(&["demo", "--output", "json"])) else { return };
    assert_eq!(demonstrated(demo).await, [r#""3" "enabled""#, r#""2" "destroyed""#, r#""1" "enabled""#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_runs_at_aws() {
    let Some(demo) = on_moto(program::local(&["demo", "--output", "json"])) else { return };
    assert_eq!(demonstrated(demo).await.first().map(String::as_str), Some(r#""3" "enabled""#));
}

/// The emulator of Azure Key Vault is in the demo's process.
#[tokio::test(flavor = "multi_thread")]
async fn the_demo_runs_at_azure() {
    let demo = program::local(&["demo", "--store", "azure", "--output", "json"]);
    assert_eq!(demonstrated(demo).await.first().map(String::as_str), Some(r#""3" "enabled""#));
}

/// The versions that the demo has listed, with their states.
async fn demonstrated(mut demo: Command) -> Vec<String> {
    let (code, stdout, stderr) = run(&mut demo).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let versions = lines.iter().find(|line| line["event"] == "table").unwrap()["rows"].as_array().unwrap().clone();
    versions.iter().map(|row| format!("{} {}", row["version"], row["state"])).collect()
}

/// The adapter's check finds it, without an event.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_in_openbao_is_stored_again() {
    const ID: &str = "cls-vault-2";
    let folder = folder();
    let Some(command) = on_openbao(up(folder.path())) else { return };
    let up = Up::start(command).await;
    up.player.create(ID, &document("a")).await;
    up.player.make_ready(&up.cluster().await, ID, 1).await;
    let stored = up.player.until(ID, |cluster| is_available(cluster, 1)).await;
    let path = format!("{BUILT_IN}/hyperfleet-{ID}-pull-secret");
    let before = metadata(&path).await["data"].take();
    bao(&["kv", "metadata", "delete", "-mount=secret", &path]).await;
    // It may be stored again by now: that it was gone is seen from its new beginning.
    up.player.until_repaired(&stored, &format!("secret secret/{path} at ")).await;
    let after = metadata(&path).await["data"].take();
    assert_eq!((&before["current_version"], &after["current_version"]), (&json!(1), &json!(1)));
    assert_ne!(before["created_time"], after["created_time"]);
    let terminating = up.player.delete(ID).await;
    up.player.finalize(ID, terminating.generation).await;
    up.player.until_gone(ID).await;
    up.output();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_moves_to_another_folder_leaves_nothing_behind() {
    let folder = folder();
    let Some(command) = on_openbao(up(folder.path())) else { return };
    let up = Up::start(command).await;
    assert_eq!(Some(up.place("vault")), variable("REAL_OPENBAO_ADDR").as_deref());
    // The name of a folder of this machine is no other test's either.
    let unique = folder.path().file_name().unwrap().to_string_lossy().trim_matches('.').to_owned();
    let second = format!("scenario-{unique}/second");

    up.player.create(ID, &document("a")).await;
    up.player.make_ready(&up.cluster().await, ID, 1).await;
    up.player.until(ID, |cluster| is_available(cluster, 1) && is_stored_in(cluster, BUILT_IN)).await;
    assert_eq!(stored(BUILT_IN).await["data"]["custom_metadata"]["cluster-id"], ID);
    assert_eq!(up.applied_secret(ID).await, Some(document("a")));

    up.player.move_to_folder(ID, &format!("/{second}/"), &document("b")).await;
    up.player.make_ready(&up.cluster().await, ID, 2).await;
    up.player.until(ID, |cluster| is_available(cluster, 2) && is_stored_in(cluster, &second)).await;
    assert_eq!(
        (stored(BUILT_IN).await, stored(&second).await["data"]["current_version"].as_u64()),
        (Value::Null, Some(1))
    );
    assert_eq!(up.applied_secret(ID).await, Some(document("b")));

    // A folder that cannot be is refused before anything is recorded there; what is stored stays.
    up.player.move_to_folder(ID, "../elsewhere", &document("b")).await;
    up.player.make_ready(&up.cluster().await, ID, 3).await;
    let is_refused = |cluster: &Resource| condition(cluster, "Available")["reason"] == "DestinationNotAllowed";
    let refused = up.player.until(ID, is_refused).await;
    let message = condition(&refused, "Available")["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("spec.pullSecret.folder: must be parts of"), "{message}");
    assert!(is_stored_in(&refused, &second), "{refused:?}");

    let terminating = up.player.delete(ID).await;
    up.player.finalize(ID, terminating.generation).await;
    up.player.until_gone(ID).await;
    assert_eq!((stored(&second).await, up.applied_secret(ID).await), (Value::Null, None));
    up.output();
}

/// The fleet plane of this folder, started again with these flags.
async fn restarted(former: Up, folder: &Path, flags: &[&str]) -> Up {
    former.interrupt().await;
    let mut command = up(folder);
    command.args(flags).env("VAULT_ADDR", variable("REAL_OPENBAO_ADDR").unwrap());
    command.env("VAULT_TOKEN_FILE", variable("REAL_OPENBAO_TOKEN_FILE").unwrap());
    Up::start(command).await
}

/// The page of `explain`, as programs read it.
async fn explained(up: &Up, id: &str) -> Value {
    let kubeconfig = up.place("kubeconfig");
    let mut command = program::pull_secret(&["explain", "cluster", id, "--output", "json", "--kubeconfig", kubeconfig]);
    let (_, text, said) = run(command.args(["--api", up.place("api")])).await;
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{said}"))
}

/// The steps of `docs/operations/move-to-another-store.md` up to the exchange, then a deletion; each is another configuration of the adapter.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_moves_from_secret_manager_to_openbao_by_way_of_a_mirror() {
    const ID: &str = "cls-vault-3";
    if variable("REAL_OPENBAO_ADDR").is_none() {
        return missing("REAL_OPENBAO_ADDR is not set: no OpenBao; `make real-parts` starts one").unwrap_or_default();
    }
    let path = format!("{BUILT_IN}/hyperfleet-{ID}-pull-secret");
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    up.player.create(ID, &document("a")).await;
    up.player.make_ready(&up.cluster().await, ID, 1).await;
    up.player.until(ID, |cluster| is_available(cluster, 1)).await;

    let up = restarted(up, folder.path(), &["--mirror=vault"]).await;
    let is_mirrored =
        |cluster: &Resource| is_available(cluster, 1) && view(cluster)["data"]["mirror"]["secretVersion"] == 1;
    let mirrored = up.player.until(ID, is_mirrored).await;
    assert_eq!(view(&mirrored)["data"]["copies"].as_array().unwrap().len(), 3);
    assert_eq!((up.versions(ID).await.len(), metadata(&path).await["data"]["current_version"].as_u64()), (1, Some(1)));
    let copies = explained(&up, ID).await["copies"].clone();
    assert_eq!(copies["parity"]["reason"], "SameContent", "{copies}");
    assert_eq!((&copies["first"]["store"], &copies["mirror"]["store"]), (&json!("google"), &json!("vault")));

    // What is lost in the mirror is stored there again: the check reads both.
    bao(&["kv", "metadata", "delete", "-mount=secret", &path]).await;
    let repaired = up.player.until_repaired(&mirrored, &format!("secret secret/{path} at ")).await;
    assert!(is_mirrored(&repaired), "{:?}", view(&repaired));
    assert_eq!(metadata(&path).await["data"]["current_version"], 1);

    let up = restarted(up, folder.path(), &["--store=vault", "--mirror=google"]).await;
    let is_exchanged = |cluster: &Resource| {
        let data = &view(cluster)["data"];
        is_available(cluster, 1) && data["vaultAddress"].is_string() && data["mirror"]["gcpProject"].is_string()
    };
    up.player.until(ID, is_exchanged).await;
    assert_eq!(metadata(&path).await["data"]["current_version"], 1, "nothing was written");
    assert_eq!(explained(&up, ID).await["copies"]["parity"]["message"], "mirror holds the same content");
    assert_eq!(up.applied_secret(ID).await, Some(document("a")));

    let terminating = up.player.delete(ID).await;
    up.player.finalize(ID, terminating.generation).await;
    up.player.until_gone(ID).await;
    let google = &up.ready["mirror"];
    let host = google["secret_manager"].as_str().unwrap().trim_start_matches("http://");
    let token_file = google["secret_manager_token_file"].as_str().map(PathBuf::from);
    let store = testkit::fleet::store(host, token_file, testkit::fleet::PROJECT).await;
    let secret = format!("hyperfleet-{ID}-pull-secret").parse().unwrap();
    assert!(store.find(&secret).await.unwrap().is_none(), "the mirror's copy is deleted");
    assert_eq!((metadata(&path).await, up.applied_secret(ID).await), (Value::Null, None));
    up.output();
}
