//! The emulators as processes.

#![expect(clippy::unwrap_used, reason = "in a test that is the right way to fail")]

use std::path::Path;
use std::process::{Output, Stdio};

use testkit::program::{local, pull_secret};
use testkit::rig;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// An emulator process that keeps what it has in `folder`, and the value of the variable that it prints.
async fn emulator(kind: &str, folder: &Path, variable: &str) -> (Child, String) {
    let mut command = local(&["emulator", kind, "--data-dir"]);
    let mut child = command.arg(folder).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
    let value = line.trim().strip_prefix(&format!("export {variable}=")).unwrap().to_owned();
    (child, value)
}

async fn secret_manager(folder: &Path) -> (Child, String) {
    emulator("secret-manager", folder, "SECRET_MANAGER_EMULATOR_HOST").await
}

async fn job(address: &str) -> Output {
    let mut command = pull_secret(&["run-job", "pull-secret", "--cluster-id=cls-1", "--gcp-project-id=my-project-1"]);
    command
        .env("PULL_SECRET_DATA", rig::pull_secret("a"))
        .env("SECRET_MANAGER_EMULATOR_HOST", address)
        .output()
        .await
        .unwrap()
}

#[tokio::test]
async fn an_emulator_with_a_folder_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, address) = secret_manager(folder.path()).await;
    assert!(job(&address).await.status.success());
    first.kill().await.unwrap();
    let (_second, address) = secret_manager(folder.path()).await;
    let again = job(&address).await;
    assert!(again.status.success());
    assert!(text(&again.stdout).contains("SecretUnchanged"), "{again:?}");
}

#[tokio::test]
async fn a_kubernetes_emulator_with_a_folder_survives_kill_9() {
    let (objects, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_store, address) = secret_manager(store.path()).await;
    let store_and_apply = async |kubeconfig: &str| {
        let mut command =
            pull_secret(&["run-job", "pull-secret", "--cluster-id=cls-1", "--gcp-project-id=my-project-1"]);
        command.env("PULL_SECRET_DATA", rig::pull_secret("a")).env("SECRET_MANAGER_EMULATOR_HOST", &address);
        command.env("CLUSTER_NAME", "x").env("MANAGEMENT_NAMESPACE", "default");
        text(&command.env("MANAGEMENT_KUBECONFIG", kubeconfig).output().await.unwrap().stdout)
    };
    let (mut first, kubeconfig) = emulator("kubernetes", objects.path(), "KUBECONFIG").await;
    assert!(store_and_apply(&kubeconfig).await.contains("SecretStored"));
    first.kill().await.unwrap();
    let (_second, kubeconfig) = emulator("kubernetes", objects.path(), "KUBECONFIG").await;
    assert!(store_and_apply(&kubeconfig).await.contains("SecretUnchanged"));
}

#[tokio::test]
async fn a_second_emulator_on_the_same_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_first, _) = secret_manager(folder.path()).await;
    let second = local(&["emulator", "secret-manager", "--data-dir"]).arg(folder.path()).output().await.unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(text(&second.stderr).contains("is in use by another server"), "{second:?}");
}

#[tokio::test]
async fn a_fault_that_is_none_is_refused_with_what_may_stand_there() {
    let refused = local(&["emulator", "secret-manager", "--fault", "addVersion:explode"]).output().await.unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("commit-then-timeout"), "{refused:?}");
}
