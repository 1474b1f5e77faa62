//! `pull-secret validate`: its output for people and programs.

use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Exit code, stdout and stderr of a verdict on `document`, given on standard input.
async fn verdict(document: &str, flags: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(testkit::program::path("pull-secret"));
    command.args(["validate", "-"]).args(flags).env_clear();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(document.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn a_valid_pull_secret_is_shown_as_a_table() {
    let document = r#"{"auths": {
  "registry.redhat.io": {"auth": "dXNlcjpwYXNzd29yZA==", "email": "user@example.com"},
  "https://quay.io/v1/": {"auth": "cm9ib3Q6d29yZA=="}
}}"#;
    let expected = "\
REGISTRY             CREDENTIAL                 USER  LINE
https://quay.io/v1/  user and password in auth  r***  3
registry.redhat.io   user and password in auth  u***  2

valid: 2 registries
";
    assert_eq!(verdict(document, &[]).await, (Some(0), expected.to_owned(), String::new()));
}

#[tokio::test]
async fn problems_stand_beside_what_is_good() {
    let document = r#"{"auths": {
  "quay.io": {"auth": "dXNlcjpwYXNzd29yZA=="},
  "registry.redhat.io": {"auth": "base64-encoded-credentials"}
}}"#;
    let (code, stdout, stderr) = verdict(document, &[]).await;
    assert_eq!((code, stderr.as_str()), (Some(3), ""));
    let mut lines = stdout.lines();
    assert_eq!(lines.next(), Some("REGISTRY  CREDENTIAL                 USER  LINE"));
    assert_eq!(lines.next(), Some("quay.io   user and password in auth  u***  2"));
    let problem = r#"problem: auths["registry.redhat.io"].auth: a placeholder, not a credential (line 3, column 34)"#;
    assert!(stdout.contains(problem), "{stdout}");
    assert_eq!(stdout.lines().last(), Some("invalid: 1 problem"));
}

#[tokio::test]
async fn programs_read_json() {
    let (code, stdout, _) =
        verdict(r#"{"auths": {"quay.io": {"auth": "dXNlcjpwYXNzd29yZA"}}}"#, &["--output", "json"]).await;
    assert_eq!(code, Some(0));
    let verdict: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(verdict["valid"], true);
    assert_eq!(verdict["registries"][0]["key"], "quay.io");
    assert_eq!(verdict["registries"][0]["user"], "u***");
    let warning = &verdict["warnings"][0];
    assert_eq!((&warning["path"], &warning["line"]), (&"auths[\"quay.io\"].auth".into(), &1.into()));
    assert_eq!(verdict["problems"], serde_json::json!([]));
}

#[tokio::test]
async fn a_file_that_is_not_there_is_no_verdict() {
    let mut command = Command::new(testkit::program::path("pull-secret"));
    let output = command.args(["validate", "/nowhere/x.json"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output_text.starts_with("error: cannot read the file: No such file"), "{output_text}");
}
