//! Results for programs, of commands that print lines for people by default.

use serde_json::{Value, json};
use testkit::hyperfleet::HyperFleetApi;
use testkit::program;

#[tokio::test]
async fn the_commands_about_the_database_print_json() {
    let folder = tempfile::tempdir().unwrap();
    let run = async |arguments: &[&str]| {
        let mut command = program::pull_secret(&[&["api"], arguments, &["--output", "json"]].concat());
        let output = command.current_dir(folder.path()).output().await.unwrap();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        (output.status.code(), json)
    };
    let (code, pending) = run(&["migrate", "--check"]).await;
    assert_eq!((code, &pending["pending"][0]), (Some(1), &json!("0001-resources")));
    let (code, applied) = run(&["migrate"]).await;
    assert_eq!((code, &applied["applied"]), (Some(0), &pending["pending"]));
    assert_eq!(run(&["migrate"]).await, (Some(0), json!({"applied": []})));
    assert_eq!(run(&["migrate", "--check"]).await, (Some(0), json!({"pending": []})));
    let nothing = json!({"encryptedAnew": 0, "failed": [], "removed": [], "keys": {}});
    assert_eq!(run(&["rekey"]).await, (Some(0), nothing));
    let (code, restored) = run(&["restored"]).await;
    assert_eq!((code, &restored["raised"], &restored["raisedBy"]), (Some(0), &json!(0), &json!(1_000_000)));
    assert!(restored["begins"].as_str().unwrap().contains('-'), "{restored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sentinels_dry_run_prints_an_object_a_line() {
    let api = HyperFleetApi::start().await;
    api.create("cls-1").await;
    api.create("cls-2").await;
    let address = format!("http://{}", api.address);
    let arguments =
        ["sentinel", "--resource-type", "clusters", "--broker-topic", "topic", "--hyperfleet-api-base-url", &address];
    let run =
        async |further: &[&str]| program::pull_secret(&[&arguments[..], further].concat()).output().await.unwrap();
    let output = run(&["--dry-run", "--output", "json"]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["cls-1", "cls-2"], "{text}");
    assert!(lines.iter().all(|line| line["publishes"] == true && line["reason"].is_string()), "{text}");
    assert_eq!(run(&["--output", "json"]).await.status.code(), Some(2), "only a dry run has a result");
}
