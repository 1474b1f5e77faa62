//! The commands beside the fleet plane and the emulators.

use testkit::program::local;

#[tokio::test]
async fn version_and_completion_are_printed() {
    let print = async |arguments: &[&str]| String::from_utf8(local(arguments).output().await.unwrap().stdout).unwrap();
    let text = print(&["version"]).await;
    let json: serde_json::Value = serde_json::from_str(&print(&["version", "--output", "json"]).await).unwrap();
    assert_eq!(json["program"], "pull-secret-local");
    for member in ["version", "commit", "buildDate"] {
        assert!(text.contains(json[member].as_str().unwrap()), "{member}: {text}");
    }
    assert!(print(&["completion", "bash"]).await.contains("--data-dir"));
}
