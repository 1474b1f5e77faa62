//! The fleet plane on a real OpenBao: the demo, a move to another folder, a deletion that leaves nothing.

use hyperfleet_client::Resource;
use serde_json::Value;
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
    let mut command = Command::new(variable("REAL_OPENBAO_CLI").unwrap());
    let path = format!("{folder}/hyperfleet-{ID}-pull-secret");
    let output =
        command.args(["kv", "metadata", "get", "-format=json", "-mount=secret", &path]).output().await.unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// True if the adapter's report names this folder, and no copy in another.
fn is_stored_in(cluster: &Resource, folder: &str) -> bool {
    let data = &view(cluster)["data"];
    let copies = data["copies"].as_array().cloned().unwrap_or_default();
    let folders: Vec<_> = copies.iter().filter_map(|copy| copy["folder"].as_str()).collect();
    data["secretPath"] == format!("secret/{folder}/hyperfleet-{ID}-pull-secret") && folders == [folder]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_runs_on_openbao() {
    let Some(mut demo) = on_openbao(program::local(&["demo", "--output", "json"])) else { return };
    let (code, stdout, stderr) = run(&mut demo).await;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let versions = lines.iter().find(|line| line["event"] == "table").unwrap()["rows"].as_array().unwrap().clone();
    let states: Vec<_> = versions.iter().map(|row| format!("{} {}", row["version"], row["state"])).collect();
    assert_eq!(states, [r#""3" "enabled""#, r#""2" "destroyed""#, r#""1" "enabled""#]);
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
