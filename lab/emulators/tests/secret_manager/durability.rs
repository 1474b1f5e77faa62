//! The folder: what was answered is there after a crash, one server at a time, unreadable files are named.

use std::path::Path;
use std::time::Duration;

use emulators::secret_manager::{SecretManager, Settings};
use serde_json::json;

use super::client::{PARENT, SecretManagerReply as _, Server};

fn durable(folder: &Path) -> Settings {
    Settings { data_dir: Some(folder.join("data")), ..Settings::default() }
}

/// The stored files.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder.join("data")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

#[tokio::test]
async fn everything_survives_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_secret(durable(folder.path())).await;
    server.create("S", json!({"ttl": "3600s"})).await.expect(200);
    server.add("a").await.expect(200);
    server.add("b").await.expect(200);
    server.change("1", "destroy").await.expect(200);
    server.patch("versionAliases", json!({"versionAliases": {"blue": 2}})).await.expect(200);
    let before = server.get(&format!("{PARENT}/secrets")).await.expect(200);
    let versions = server.get(&format!("{PARENT}/secrets/s/versions")).await.expect(200);
    drop(server);

    let lagging = Settings { metadata_lag: Duration::from_mins(1), ..durable(folder.path()) };
    let server = Server::start(lagging).await;
    assert_eq!(server.get(&format!("{PARENT}/secrets")).await.expect(200), before);
    assert_eq!(server.get(&format!("{PARENT}/secrets/s/versions")).await.expect(200), versions);
    assert_eq!(server.access("blue").await.content(), "b");
    server.access("1").await.refused(400, "FAILED_PRECONDITION", "DESTROYED state");
    assert!(server.add("c").await.expect(200)["name"].as_str().unwrap().ends_with("/versions/3"));
    let stored = files(folder.path());
    assert_eq!(stored.len(), 2);
    server.manager.advance_clock(Duration::from_hours(1));
    server.call("DELETE", &format!("{PARENT}/secrets/s"), json!({})).await.expect(200);
    assert_eq!(files(folder.path()).len(), 0);
}

#[tokio::test]
async fn one_server_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(durable(folder.path())).await;
    let error = SecretManager::start(durable(folder.path())).await.unwrap_err().to_string();
    assert!(error.ends_with("data is in use by another server"), "{error}");
    server.manager.shutdown().await;
    SecretManager::start(durable(folder.path())).await.unwrap();
}

#[tokio::test]
async fn an_unreadable_file_is_named_not_quoted() {
    let folder = tempfile::tempdir().unwrap();
    drop(Server::with_secret(durable(folder.path())).await);
    let path = files(folder.path()).pop().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let cases = [
        (text.replace("\"secret\":", "\"topsecret\":"), "it is not a stored secret (line 3, column"),
        (text.replace("\"format\": 1", "\"format\": 2"), "its format is 2, this server reads 1"),
        ("topsecret".to_owned(), "it is not a stored secret (line 1, column"),
    ];
    for (content, reason) in cases {
        daemon::file::replace(&path, content.as_bytes()).unwrap();
        let error = SecretManager::start(durable(folder.path())).await.unwrap_err().to_string();
        assert!(error.contains(&format!("{}: {reason}", path.display())), "{error}");
        assert!(!error.contains("topsecret"), "{error}");
    }
}

#[tokio::test]
async fn what_cannot_be_stored_does_not_happen() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_secret(durable(folder.path())).await;
    server.add("a").await.expect(200);
    std::fs::remove_dir_all(folder.path().join("data")).unwrap();
    server.add("b").await.refused(500, "INTERNAL", "could not be stored");
    assert_eq!(server.access("latest").await.content(), "a");
}
