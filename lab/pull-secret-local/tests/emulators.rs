//! The emulators as processes.

#![expect(clippy::unwrap_used, reason = "in a test that is the right way to fail")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use testkit::http::{exchange_over, secured};
use testkit::program::{local, pull_secret};
use testkit::rig;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The variables that an emulator prints.
type Variables = Vec<(String, String)>;

/// An emulator process that stores its state in `folder`, and the variables that it prints, of which `last` is the last.
async fn emulator(kind: &str, folder: &Path, last: &str) -> (Child, Variables) {
    let mut command = local(&["emulator", kind, "--data-dir"]);
    let mut child = command.arg(folder).stderr(Stdio::null()).spawn().unwrap();
    let variables = variables(&mut child, last).await;
    (child, variables)
}

/// The variables that an emulator process prints, of which `last` is the last.
async fn variables(child: &mut Child, last: &str) -> Variables {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut variables = Variables::new();
    while variables.last().is_none_or(|(name, _)| name != last) {
        let line = lines.next_line().await.unwrap().unwrap();
        let (name, value) = line.strip_prefix("export ").unwrap().split_once('=').unwrap();
        variables.push((name.to_owned(), value.to_owned()));
    }
    variables
}

async fn secret_manager(folder: &Path) -> (Child, Variables) {
    emulator("secret-manager", folder, "SECRET_MANAGER_EMULATOR_HOST").await
}

fn job(variables: Variables) -> Command {
    let mut command = pull_secret(&["run-job", "pull-secret", "--cluster-id=cls-1", "--gcp-project-id=my-project-1"]);
    command.env("PULL_SECRET_DATA", rig::pull_secret("a")).envs(variables);
    command
}

#[tokio::test]
async fn an_emulator_with_a_folder_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, variables) = secret_manager(folder.path()).await;
    assert!(job(variables).output().await.unwrap().status.success());
    first.kill().await.unwrap();
    let (_second, variables) = secret_manager(folder.path()).await;
    let again = job(variables).output().await.unwrap();
    assert!(again.status.success());
    assert!(text(&again.stdout).contains("SecretUnchanged"), "{again:?}");
}

/// Reaching the port is not enough: requests need the token, which only its owner can read.
#[tokio::test]
async fn a_job_without_the_token_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_emulator, variables) = secret_manager(folder.path()).await;
    let token = &variables[0].1;
    assert_eq!(std::fs::metadata(token).unwrap().permissions().mode() & 0o777, 0o600);
    let refused = job(variables[1..].to_vec()).output().await.unwrap();
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert!(!text(&refused.stderr).contains(&std::fs::read_to_string(token).unwrap()));
}

#[tokio::test]
async fn a_kubernetes_emulator_with_a_folder_survives_kill_9() {
    let (objects, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_store, secret_manager) = secret_manager(store.path()).await;
    let store_and_apply = async |kubernetes: Variables| {
        let kubeconfig = &kubernetes[0].1;
        let mut command = job(secret_manager.clone());
        command.env("CLUSTER_NAME", "x").env("MANAGEMENT_NAMESPACE", "default");
        text(&command.env("MANAGEMENT_KUBECONFIG", kubeconfig).output().await.unwrap().stdout)
    };
    let (mut first, kubeconfig) = emulator("kubernetes", objects.path(), "KUBECONFIG").await;
    assert!(store_and_apply(kubeconfig).await.contains("SecretStored"));
    first.kill().await.unwrap();
    let (_second, kubeconfig) = emulator("kubernetes", objects.path(), "KUBECONFIG").await;
    assert!(store_and_apply(kubeconfig).await.contains("SecretUnchanged"));
}

/// Key Vault is found by the variables that Azure's clients know; who has the assertion gets a token.
#[tokio::test]
async fn a_key_vault_is_reached_by_its_variables() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    let mut command = local(&["emulator", "key-vault", "--write-files"]);
    let mut child = command.arg(&files).stderr(Stdio::null()).spawn().unwrap();
    let variables = variables(&mut child, "AZURE_KEY_VAULT_URL").await;
    let get = |wanted: &str| &variables.iter().find(|(name, _)| name == wanted).unwrap().1;
    let [authority, assertion] =
        ["AZURE_CA_FILE", "AZURE_FEDERATED_TOKEN_FILE"].map(|name| std::fs::read_to_string(get(name)).unwrap());
    assert_eq!(*get("AZURE_FEDERATED_TOKEN_FILE"), files.join("assertion").display().to_string());
    assert_eq!(std::fs::metadata(files.join("assertion")).unwrap().permissions().mode() & 0o777, 0o600);
    let address = get("AZURE_AUTHORITY_HOST").strip_prefix("https://").unwrap();
    let form = format!(
        "grant_type=client_credentials&client_id={}&scope=https://vault.azure.net/.default\
         &client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer&client_assertion={assertion}",
        get("AZURE_CLIENT_ID")
    );
    let send = async |method: &str, path: &str, body: &str, headers: &str| {
        let stream = secured(TcpStream::connect(address).await.unwrap(), &authority).await.unwrap();
        let headers = format!("host: {address}\r\n{headers}\r\n");
        exchange_over(stream, method, path, body, &headers).await.unwrap().expect(200)
    };
    let tenant = format!("/{}/oauth2/v2.0/token", get("AZURE_TENANT_ID"));
    let answer = send("POST", &tenant, &form, "content-type: application/x-www-form-urlencoded").await;
    let header = format!("authorization: Bearer {}", answer["access_token"].as_str().unwrap());
    let set = send("PUT", "/secrets/s?api-version=7.6", "{\"value\": \"a\"}", &header).await;
    assert!(set["id"].as_str().unwrap().starts_with(&format!("{}/secrets/s/", get("AZURE_KEY_VAULT_URL"))), "{set}");
}

/// The token of the file is enough to make a robot.
#[tokio::test]
async fn a_quay_is_reached_by_its_variables() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = local(&["emulator", "quay", "--organization", "o", "--write-files"]);
    let mut child = command.arg(folder.path()).stderr(Stdio::null()).spawn().unwrap();
    let variables = variables(&mut child, "QUAY_URL").await;
    let get = |wanted: &str| &variables.iter().find(|(name, _)| name == wanted).unwrap().1;
    let token = std::fs::read_to_string(get("QUAY_TOKEN_FILE")).unwrap();
    assert_eq!(std::fs::metadata(get("QUAY_TOKEN_FILE")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(get("QUAY_ISSUER_FILE")).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    let address = get("QUAY_URL").strip_prefix("http://").unwrap();
    let headers = format!("host: {address}\r\nauthorization: Bearer {token}\r\n");
    let path = format!("/api/v1/organization/{}/robots/a1", get("QUAY_ORGANIZATION"));
    let stream = TcpStream::connect(address).await.unwrap();
    let made = exchange_over(stream, "PUT", &path, "", &headers).await.unwrap().expect(201);
    assert_eq!(made["name"], "o+a1");
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
