//! The HyperFleet API as its users start it.

use std::process::Output;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::api::{command as program, server};
use tokio::process::{Child, Command};

const PASSWORD: &str = "Zq7wordThatMustNotShow";

async fn stop(mut child: Child) -> Option<i32> {
    kill_process(Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap(), Signal::TERM).unwrap();
    child.wait().await.unwrap().code()
}

fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn the_commands_of_the_guide_work() {
    let guide = include_str!("../../../../docs/guides/api.md");
    let section = guide.split("## Try it\n").nth(1).unwrap().split("\n\nOpen ").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (child, address) = server(folder.path()).await;
    // The first line starts the server, the second names the usual address.
    let lines = section.trim_start().lines().skip(2).map(str::trim).collect::<Vec<_>>().join("\n");
    let script =
        format!("set -e; api=http://{address}/api/hyperfleet/v1\n{}", lines.replace("curl ", "curl -sS --fail "));
    let output = Command::new("bash").args(["-c", &script]).env("no_proxy", "*").output().await.unwrap();
    assert!(output.status.success(), "{}", output_text(&output));
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = serde_json::Deserializer::from_str(&answers).into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.len(), 5);
    let status = &answers[4]["status"];
    assert_eq!(status["adapters"]["validation"]["available"], "True");
    let reconciled = &status["conditions"][0];
    assert_eq!(reconciled["reason"], "ReconciledMissingAdapters");
    assert!(reconciled["message"].as_str().unwrap().ends_with("Currently reporting: [validation]"));
    assert_eq!(stop(child).await, Some(0));
}

#[tokio::test]
async fn what_was_stored_is_there_after_a_restart_and_the_schema_is_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = program(folder.path(), &["migrate", "--check"]).output().await.unwrap();
    assert_eq!(
        (fresh.status.code(), &fresh.stdout[..]),
        (Some(1), &b"0001-resources\n"[..]),
        "{}",
        output_text(&fresh)
    );
    let (child, address) = server(folder.path()).await;
    let create = format!(
        "curl -sS --fail http://{address}/api/hyperfleet/v1/channels -d '{{\"kind\": \"Channel\", \"id\": \"stable\", \"name\": \"stable\", \"spec\": {{}}}}'"
    );
    assert!(Command::new("bash").args(["-c", &create]).output().await.unwrap().status.success());
    assert_eq!(stop(child).await, Some(0));
    let current = program(folder.path(), &["migrate", "--check"]).output().await.unwrap();
    assert_eq!((current.status.code(), &current.stdout[..]), (Some(0), &b""[..]), "{}", output_text(&current));
    let (_child, address) = server(folder.path()).await;
    let read = format!("curl -sS --fail http://{address}/api/hyperfleet/v1/channels/stable");
    assert!(Command::new("bash").args(["-c", &read]).output().await.unwrap().status.success());
}

#[tokio::test]
async fn a_wrong_configuration_ends_at_once_and_names_everything() {
    let folder = tempfile::tempdir().unwrap();
    let output = program(folder.path(), &["--server-host=0.0.0.0", "--health-port=many"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        output_text(&output),
        "error: invalid configuration\n  --health-port: must be a whole number up to 65535\n  server.host: without \
         authentication only loopback is served; set server.jwt.enabled, or server.insecure to allow every caller \
         everything\n"
    );
    let output = program(folder.path(), &["--server-host=0.0.0.0"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        output_text(&output).contains("server.host: without authentication only loopback is served"),
        "{}",
        output_text(&output)
    );
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hyperfleet.db");
    let content = vec![b'x'; 10_000];
    daemon::file::replace(&path, &content).unwrap();
    let arguments = ["--server-port=0", "--health-port=0", "--metrics-port=0"];
    let output = program(folder.path(), &arguments).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", output_text(&output));
    assert!(output_text(&output).contains("the database cannot be used"), "{}", output_text(&output));
    assert_eq!(std::fs::read(&path).unwrap(), content);
}

/// The likeliest mistake: a credential where something else belongs.
#[tokio::test]
async fn a_credential_in_the_wrong_place_is_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let document = format!(r#"{{"auths":{{"quay.io":{{"auth":"{PASSWORD}"}}}}}}"#);
    let url = format!("mysql://user:{PASSWORD}@host/name");
    let variables = [
        "DATABASE_URL",
        "HYPERFLEET_CONFIG",
        "HYPERFLEET_DATABASE_PASSWORD_FILE",
        "HYPERFLEET_DATABASE_SSL_MODE",
        "HYPERFLEET_DATABASE_DIALECT",
        "HYPERFLEET_LOGGING_LEVEL",
        "HYPERFLEET_LOGGING_FORMAT",
        "HYPERFLEET_SERVER_HOST",
        "HYPERFLEET_SERVER_PORT",
        "HYPERFLEET_SERVER_TIMEOUTS_READ",
        "HYPERFLEET_SERVER_OPENAPI_SCHEMA_PATH",
        "HYPERFLEET_PULL_SECRET_READER_TOKEN_FILE",
    ];
    for variable in variables {
        for value in [document.as_str(), url.as_str(), PASSWORD] {
            let mut command = program(folder.path(), &["migrate", "--check"]);
            command.env("HYPERFLEET_DATABASE_POOL_ACQUIRE_TIMEOUT", "100ms").env(variable, value);
            let output = command.output().await.unwrap();
            assert!(!output_text(&output).contains(&PASSWORD[4..]), "{variable}: {}", output_text(&output));
            let mut command = program(folder.path(), &["openapi"]);
            let output = command.env(variable, value).output().await.unwrap();
            assert!(!output_text(&output).contains(&PASSWORD[4..]), "{variable}: {}", output_text(&output));
        }
    }
}
