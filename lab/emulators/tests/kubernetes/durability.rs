//! The folder: what was answered is there after a crash, one server at a time, unreadable files are named.

use std::path::{Path, PathBuf};

use emulators::kubernetes::{Authorization, Kubernetes, Settings};
use serde_json::json;

use super::client::{CONFIG_MAPS, Refused as _, SECRETS, Server, config_map, secret};

fn durable(folder: &Path) -> Settings {
    Settings { data_dir: Some(folder.join("data")), ..Settings::default() }
}

/// The stored file of a Secret.
fn file(folder: &Path) -> PathBuf {
    let entries = std::fs::read_dir(folder.join("data")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    paths.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("secrets~default~s~")).unwrap()
}

#[tokio::test]
async fn everything_survives_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(durable(folder.path())).await;
    server.post(SECRETS, &secret("s")).await.expect(201);
    server.apply(&format!("{CONFIG_MAPS}/c"), "job", &config_map("c", &json!({"a": "1"}))).await.expect(201);
    server.post(SECRETS, &secret("gone")).await.expect(201);
    server.delete(&format!("{SECRETS}/gone"), &json!({})).await.expect(200);
    let before = server.get("/api/v1/secrets").await.expect(200);
    let applied = server.get(&format!("{CONFIG_MAPS}/c")).await.expect(200);
    drop(server);

    let server = Server::start(durable(folder.path())).await;
    assert_eq!(server.get("/api/v1/secrets").await.expect(200), before);
    assert_eq!(server.get(&format!("{CONFIG_MAPS}/c")).await.expect(200), applied);
    let revision = before["metadata"]["resourceVersion"].as_str().unwrap();
    let mut watch = server.watch(&format!("{SECRETS}?resourceVersion={revision}")).await;
    server.post(SECRETS, &secret("t")).await.expect(201);
    assert_eq!(watch.next_event().await, "ADDED t");
    let mut late = server.watch(&format!("{SECRETS}?resourceVersion=2")).await;
    assert_eq!(late.next_event().await, "ERROR");
}

#[tokio::test]
async fn tokens_survive_too() {
    let folder = tempfile::tempdir().unwrap();
    let settings = || Settings { authorization: Authorization::Rbac, ..durable(folder.path()) };
    let server = Server::start(settings()).await;
    let config = server.kubernetes.kubeconfig();
    let master = config.split("token: \"").nth(1).unwrap().split('"').next().unwrap();
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let issued = server.with(master, "POST", path, &json!({})).await.expect(201);
    drop(server);
    let server = Server::start(settings()).await;
    let token = issued["status"]["token"].as_str().unwrap();
    let whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = server.with(token, "POST", whoami, &json!({})).await.expect(201);
    assert_eq!(review["status"]["userInfo"]["username"], "system:serviceaccount:default:default");
}

#[tokio::test]
async fn one_server_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(durable(folder.path())).await;
    let error = Kubernetes::start(durable(folder.path())).await.unwrap_err().to_string();
    assert!(error.ends_with("data is in use by another server"), "{error}");
    server.kubernetes.shutdown().await;
    Kubernetes::start(durable(folder.path())).await.unwrap();
}

#[tokio::test]
async fn an_unreadable_file_is_named_not_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(durable(folder.path())).await;
    server.post(SECRETS, &secret("s")).await.expect(201);
    drop(server);
    let path = file(folder.path());
    let text = std::fs::read_to_string(&path).unwrap();
    let cases = [
        (text.replace("\"storage\":", "\"topsecret\":"), "it is not a stored object"),
        (text.replace("\"format\": 1", "\"format\": 2"), "its format is 2, this server reads 1"),
        ("topsecret".to_owned(), "it is not a stored object (line 1, column"),
    ];
    for (content, reason) in cases {
        daemon::file::replace(&path, content.as_bytes()).unwrap();
        let error = Kubernetes::start(durable(folder.path())).await.unwrap_err().to_string();
        assert!(error.contains(&format!("{}: {reason}", path.display())), "{error}");
        assert!(!error.contains("topsecret"), "{error}");
    }
}

#[tokio::test]
async fn what_cannot_be_stored_does_not_happen() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(durable(folder.path())).await;
    server.post(SECRETS, &secret("s")).await.expect(201);
    std::fs::remove_dir_all(folder.path().join("data")).unwrap();
    let patch = json!({"metadata": {"labels": {"a": "1"}}});
    server.merge(&format!("{SECRETS}/s"), &patch).await.refused(500, "InternalError", "cannot replace file");
    assert_eq!(server.get(&format!("{SECRETS}/s")).await.expect(200)["metadata"].get("labels"), None);
}
