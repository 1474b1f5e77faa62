//! The commands beside the Job: version, completion, and the usage.

use testkit::program::pull_secret as program;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn version_and_completion_are_printed() {
    let version = program(&["version"]).output().await.unwrap();
    let version_text = text(&version.stdout);
    let names: Vec<_> = version_text.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(names, ["pull-secret version info", "  Version", "  Commit", "  Built"]);
    let version = program(&["version", "--output", "json"]).output().await.unwrap();
    let json: serde_json::Value = serde_json::from_slice(&version.stdout).unwrap();
    assert!(version_text.contains(json["version"].as_str().unwrap()), "{json}");
    assert_eq!((&json["program"], json["commit"].is_string()), (&"pull-secret".into(), true), "{json}");
    let completion = program(&["completion", "bash"]).output().await.unwrap();
    assert!(text(&completion.stdout).contains("--pull-secret-file"));
}

#[tokio::test]
async fn what_is_no_command_is_refused_with_the_usage() {
    let refused = program(&["run-job", "pull-secret", "--no-such-flag"]).output().await.unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--no-such-flag"), "{refused:?}");
    assert!(program(&["run-job"]).output().await.unwrap().stderr.len() > 100);
}
