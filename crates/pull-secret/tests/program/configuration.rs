//! The Job's errors about an environment or a pull secret that it cannot use.

use rstest::rstest;
use testkit::rig::{Rig, pull_secret};

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_environment_gets_all_missing_settings_at_once() {
    let rig = Rig::new().await;
    let mut job = rig.job("");
    let outcome = rig.run(job.env_remove("CLUSTER_ID").env("GCP_PROJECT_ID", "  ").env("GENERATION", "x")).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(2), "InvalidConfiguration"), "{outcome:#?}");
    assert_eq!(outcome.operations(), ["validate-config"]);
    assert_eq!(outcome.stderr, "");
    assert_eq!(
        outcome.message(),
        "missing required environment variable: GCP_PROJECT_ID (or --gcp-project-id); \
         missing required environment variable: CLUSTER_ID (or --cluster-id); \
         GENERATION: must be a whole number from 1 to 9223372036854775807; \
         missing pull secret: set PULL_SECRET_FILE or PULL_SECRET_DATA (--fake-pull-secret for a test)"
    );
    assert_eq!(rig.calls(), 0);
}

/// A log line about invalid settings has the fields of every other one, as far as they are valid.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_settings_are_logged_with_the_cluster_and_the_project() {
    let rig = Rig::new().await;
    let outcome = rig.run(rig.job(&pull_secret("a")).env("LOG_LEVEL", "loud")).await;
    let line = outcome.lines().pop().unwrap();
    let valid = rig.run(&mut rig.job(&pull_secret("a"))).await.lines().pop().unwrap();
    for field in ["cluster_id", "gcp_project"] {
        assert!(line[field].is_string() && line[field] == valid[field], "{line}");
    }
    let outcome = rig.run(rig.job(&pull_secret("a")).env("CLUSTER_ID", "Hunter2{").env("LOG_LEVEL", "loud")).await;
    let line = outcome.lines().pop().unwrap();
    assert!(line.get("cluster_id").is_none() && line["gcp_project"] == valid["gcp_project"], "{line}");
}

/// The result is written also where the settings of traces are the fault.
#[rstest]
#[case("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL: must be one of http/protobuf")]
#[case("OTEL_TRACES_SAMPLER_ARG", "all", "OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1")]
#[case(
    "OTEL_EXPORTER_OTLP_CERTIFICATE",
    "/nowhere/ca.pem",
    "OTEL_EXPORTER_OTLP_CERTIFICATE: cannot read /nowhere/ca.pem: make the file readable for this process: No such file or directory (os error 2)"
)]
#[tokio::test(flavor = "multi_thread")]
async fn wrong_settings_of_traces_are_named(#[case] variable: &str, #[case] value: &str, #[case] fault: &str) {
    let rig = Rig::new().await;
    let mut job = rig.job(&pull_secret("a"));
    job.env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://localhost:4318").env(variable, value);
    let outcome = rig.run(&mut job).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(2), "InvalidConfiguration"), "{outcome:#?}");
    assert_eq!(outcome.message(), fault);
    assert_eq!(rig.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flag_comes_before_its_variable() {
    let rig = Rig::new().await;
    let outcome = rig.run(rig.job(&pull_secret("a")).args(["--cluster-id", "cls-9"])).await;
    assert_eq!(outcome.result["details"]["secretName"], "hyperfleet-cls-9-pull-secret");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_problem_of_a_pull_secret_is_named_with_its_place() {
    let rig = Rig::new().await;
    let document =
        "{\n  \"auths\": {\n    \"quay.io\": {\"auth\": \"s3cr?t\"},\n    \"registry.redhat.io\": {}\n  }\n}";
    let outcome = rig.run(&mut rig.job(document)).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(3), "InvalidPullSecret"), "{outcome:#?}");
    assert_eq!(outcome.operations(), ["validate-pull-secret"]);
    let message = outcome.message();
    assert!(
        message.starts_with("Invalid pull secret format: auths[\"quay.io\"].auth: not base64 (line 3, column 25)"),
        "{message}"
    );
    assert!(message.contains("auths[\"registry.redhat.io\"]"), "{message}");
    assert!(message.contains("(line 4, column 27)"), "{message}");
    assert_eq!(rig.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_placeholders_of_the_specification_are_refused_as_such() {
    let rig = Rig::new().await;
    for placeholder in ["base64-encoded-credentials", "base64-encoded-username:password", "..."] {
        let document = format!(r#"{{"auths":{{"quay.io":{{"auth":"{placeholder}","email":"user@example.com"}}}}}}"#);
        let outcome = rig.run(&mut rig.job(&document)).await;
        assert_eq!(outcome.code, Some(3), "{placeholder}: {outcome:#?}");
        assert!(outcome.message().contains("placeholder"), "{placeholder}: {outcome:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_specification_is_stored() {
    let rig = Rig::new().await;
    let example = r#"{"auths":{"registry.redhat.io":{"auth":"dGVzdDp0ZXN0","email":"test@example.com"}}}"#;
    let outcome = rig.run(&mut rig.job(example)).await;
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
    // 83 bytes, as its sample log says.
    assert!(outcome.stdout.contains("Verified secret (83 bytes)"), "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fake_pull_secret_must_be_asked_for() {
    let rig = Rig::new().await;
    let mut job = rig.job("");
    let outcome = rig.run(job.arg("--fake-pull-secret")).await;
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_read_is_named() {
    let rig = Rig::new().await;
    let mut job = rig.job("");
    let outcome = rig.run(job.env("PULL_SECRET_FILE", "/nowhere/pull-secret.json")).await;
    assert_eq!(outcome.code, Some(2), "{outcome:#?}");
    assert!(outcome.message().contains("PULL_SECRET_FILE: cannot read the file: No such file"), "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_the_store_takes_is_refused_before_anything_is_sent() {
    let rig = Rig::new().await;
    let file = rig.path("pull-secret.json");
    let large = pull_secret("a") + &" ".repeat(65_536);
    daemon::file::replace(&file, large.as_bytes()).unwrap();
    let mut job = rig.job("");
    let outcome = rig.run(job.env("PULL_SECRET_FILE", &file)).await;
    assert_eq!(outcome.code, Some(3), "{outcome:#?}");
    assert!(outcome.message().contains("65536"), "{outcome:#?}");
    assert_eq!(rig.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_does_not_pass_a_proxy() {
    let rig = Rig::new().await;
    let refused = rig.run(rig.job(&pull_secret("a")).env("http_proxy", "http://127.0.0.1:9")).await;
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.message().contains("add that host to no_proxy"), "{refused:#?}");
    let mut job = rig.job(&pull_secret("a"));
    let outcome = rig.run(job.env("http_proxy", "http://127.0.0.1:9").env("no_proxy", "127.0.0.1")).await;
    assert_eq!(outcome.code, Some(0), "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_hangs_is_waited_for_within_the_runs_time() {
    let rig = Rig::new().await;
    let fifo = rig.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut job = rig.job("");
    let outcome = rig.run(job.env("PULL_SECRET_FILE", &fifo).env("RUN_TIMEOUT", "500ms")).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(75), "DeadlineExceeded"), "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_result_can_be_read_by_another_user_and_a_dry_run_has_none() {
    use std::os::unix::fs::PermissionsExt as _;
    let rig = Rig::new().await;
    rig.stored("a").await;
    let mode = std::fs::metadata(rig.path("result.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    let log = rig.path("termination-log");
    daemon::file::replace(&log, b"").unwrap();
    rig.run(rig.job(&pull_secret("a")).arg("--dry-run").env("TERMINATION_LOG_PATH", &log)).await;
    assert_eq!(std::fs::read(&log).unwrap(), b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_stored_as_it_was_given() {
    let rig = Rig::new().await;
    let given = pull_secret("a") + "\n";
    let outcome = rig.run(&mut rig.job(&given)).await;
    assert!(outcome.stdout.contains(&format!("Verified secret ({} bytes)", given.len())), "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_names_a_helper_program_is_refused_and_the_program_not_run() {
    let rig = Rig::new().await;
    let (kubeconfig, marker) = (rig.path("kubeconfig"), rig.path("marker"));
    let content = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "users": [{"name": "x", "user": {"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": "/bin/sh", "args": ["-c", format!("touch {}", marker.display())],
        }}}],
    });
    daemon::file::replace(&kubeconfig, content.to_string().as_bytes()).unwrap();
    for variable in ["MANAGEMENT_KUBECONFIG", "KUBECONFIG"] {
        let mut job = rig.job(&pull_secret("a"));
        job.env(variable, &kubeconfig).env("MANAGEMENT_NAMESPACE", "clusters-1").env("CLUSTER_NAME", "x");
        let outcome = rig.run(&mut job).await;
        assert_eq!((outcome.code, outcome.reason()), (Some(2), "InvalidConfiguration"), "{variable}: {outcome:#?}");
        assert!(outcome.message().contains("helper program (exec)"), "{variable}: {outcome:#?}");
        assert!(!marker.exists());
        assert_eq!(rig.calls(), 0);
    }
}
