//! The identity: Workload Identity through the metadata server, and its failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use emulators::secret_manager::Settings;
use tokio::process::Command;

use testkit::rig::{Outcome, Rig, pull_secret};

const TOKEN: &str = "ya29.workload-identity-token";

/// A metadata server as GKE has one; it answers `status`, and counts the tokens that it is asked for.
struct MetadataServer {
    address: String,
    asked: Arc<AtomicUsize>,
}

impl MetadataServer {
    async fn start(status: StatusCode) -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let answer = move |headers: HeaderMap, uri: Uri| async move {
            if headers.get("metadata-flavor").is_none_or(|flavor| flavor != "Google") {
                return (StatusCode::FORBIDDEN, String::new());
            }
            if !uri.path().ends_with("/token") {
                return (StatusCode::OK, "googleapis.com".to_owned());
            }
            counter.fetch_add(1, Ordering::SeqCst);
            let token = format!(r#"{{"access_token":"{TOKEN}","expires_in":3599,"token_type":"Bearer"}}"#);
            (status, token)
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        Self { address, asked }
    }
}

/// A Job as in a cluster: no emulator variable, an endpoint that wants a token, a metadata server.
fn in_cluster(rig: &Rig, metadata: &str) -> Command {
    let mut job = rig.job(&pull_secret("a"));
    job.env_remove("SECRET_MANAGER_EMULATOR_HOST")
        .env("GCP_SECRET_MANAGER_ENDPOINT", format!("http://{}", rig.emulator.address()))
        .env("GCE_METADATA_HOST", metadata)
        .env("HOME", rig.folder.path());
    job
}

async fn secured() -> Rig {
    Rig::with(Settings { required_token: Some(TOKEN.to_owned()), ..Settings::default() }).await
}

fn reported_missing_token(outcome: &Outcome) {
    let all = format!("{}{}{}", outcome.stdout, outcome.stderr, outcome.result);
    assert!(!all.contains(TOKEN), "{outcome:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workload_identity_gives_the_token() {
    let rig = secured().await;
    let metadata = MetadataServer::start(StatusCode::OK).await;
    let outcome = rig.run(&mut in_cluster(&rig, &metadata.address)).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(0), "SecretStored"), "{outcome:#?}");
    assert_eq!(metadata.asked.load(Ordering::SeqCst), 1, "one token serves the whole run");
    reported_missing_token(&outcome);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_store_does_not_take_is_named_as_such() {
    let rig = Rig::with(Settings { required_token: Some("another".to_owned()), ..Settings::default() }).await;
    let metadata = MetadataServer::start(StatusCode::OK).await;
    let outcome = rig.run(&mut in_cluster(&rig, &metadata.address)).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(4), "Unauthenticated"), "{outcome:#?}");
    reported_missing_token(&outcome);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_without_a_binding_ends_the_run_with_what_to_do() {
    let rig = secured().await;
    let metadata = MetadataServer::start(StatusCode::NOT_FOUND).await;
    let outcome = rig.run(&mut in_cluster(&rig, &metadata.address)).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(4), "Unauthenticated"), "{outcome:#?}");
    assert!(outcome.message().contains("Workload Identity binding"), "{outcome:#?}");
    reported_missing_token(&outcome);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metadata_server_that_fails_is_retried_within_the_runs_time() {
    let rig = secured().await;
    let metadata = MetadataServer::start(StatusCode::INTERNAL_SERVER_ERROR).await;
    let mut job = in_cluster(&rig, &metadata.address);
    let outcome = rig.run(job.env("RUN_TIMEOUT", "12s").env("GCP_API_TIMEOUT", "1s")).await;
    assert_eq!(outcome.code, Some(75), "{outcome:#?}");
    assert!(outcome.operations().contains(&"retry".to_owned()), "{outcome:#?}");
    reported_missing_token(&outcome);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_are_none_are_refused() {
    let rig = secured().await;
    let file = rig.path("credentials.json");
    daemon::file::replace(&file, br#"{"type": "no_such_type"}"#).unwrap();
    let outcome = rig.run(in_cluster(&rig, "127.0.0.1:9").env("GOOGLE_APPLICATION_CREDENTIALS", &file)).await;
    assert_eq!((outcome.code, outcome.reason()), (Some(4), "Unauthenticated"), "{outcome:#?}");
}
