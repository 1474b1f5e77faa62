//! Neither content nor credentials in what is shown, whatever a server repeats.

use rstest::rstest;
use secret_store::{Operation, StoreError, VaultLogin, VaultSettings, VaultStore};
use serde_json::json;

use super::requests::{TOKEN, fake_settings, fake_store};
use crate::rig::{CONTENT, OPERATIONS, attempt};
use testkit::fake::{Fake, json as document, page};

const JWT: &str = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJqb2IifQ.c2lnbmF0dXJl";

#[track_caller]
fn shows_no_secret(error: &StoreError) {
    let shown = format!("{error} {error:?} {error:#?} {:?}", error.hint());
    for secret in [CONTENT, TOKEN, JWT, "t0ken", "m4rker"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[rstest]
#[case(200)]
#[case(400)]
#[case(403)]
#[case(404)]
#[case(429)]
#[case(500)]
#[case(503)]
#[tokio::test]
async fn what_echoes_the_request_is_not_repeated(#[case] status: u16) {
    let echoing = [
        |status, echo: &str| page(status, echo),
        |status, echo: &str| {
            document(status, &json!({"errors": [echo], "data": {"data": [echo], "created_time": [echo]}}))
        },
        |status, echo: &str| document(status, &json!({"errors": ["No.", echo], "data": echo, "warnings": [echo]})),
    ];
    for answer in echoing {
        let fake = Fake::start(move |request| {
            let is_addition = request.body["data"].is_object();
            let token = request.headers["x-vault-token"].to_str().unwrap();
            let echo = format!("bad request: {} with {token}", request.body);
            // A first version is added to a secret that exists.
            if is_addition { answer(status, &echo) } else { document(200, &super::requests::info()) }
        })
        .await;
        let added = attempt(&fake_store(fake.address), Operation::AddVersion).await;
        shows_no_secret(&added.unwrap_err());
        let fake = Fake::start(move |request| answer(status, request.headers["x-vault-token"].to_str().unwrap())).await;
        for operation in OPERATIONS {
            if let Err(error) = attempt(&fake_store(fake.address), operation).await {
                shows_no_secret(&error);
            }
        }
    }
}

/// The content is refused after the secret was found.
#[tokio::test]
async fn a_refused_addition_shows_no_content() {
    for message in [CONTENT.to_owned(), format!("invalid character in \\\"{CONTENT}\\\"")] {
        let fake = Fake::start(move |request| match request.method {
            http::Method::GET => document(200, &super::requests::info()),
            _ => document(400, &json!({"errors": [message]})),
        })
        .await;
        let error = attempt(&fake_store(fake.address), Operation::AddVersion).await.unwrap_err();
        shows_no_secret(&error);
        assert_eq!(error.detail.as_deref(), Some("HTTP status 400"));
    }
}

#[tokio::test]
async fn a_refused_login_shows_no_credential() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credential");
    daemon::file::replace(&file, JWT.as_bytes()).unwrap();
    let mount = "m".to_owned();
    for login in [
        VaultLogin::Jwt { mount: mount.clone(), role: "job".to_owned(), token_file: file.clone() },
        VaultLogin::AppRole { mount, role_id: "job".to_owned(), secret_id_file: file.clone() },
    ] {
        for answer in [
            document(400, &json!({"errors": [format!("cannot verify {JWT}")]})),
            document(200, &json!({"auth": {"client_token": [TOKEN], "lease_duration": JWT}})),
            document(200, &json!({"auth": null})),
            page(403, JWT),
        ] {
            let fake = Fake::answering(answer).await;
            let settings = VaultSettings { login: login.clone(), ..fake_settings(fake.address) };
            let store = VaultStore::connect(&settings).unwrap();
            shows_no_secret(&attempt(&store, Operation::Find).await.unwrap_err());
        }
    }
}

#[tokio::test]
async fn a_store_shows_no_secret() {
    let fake = Fake::answering(document(200, &super::requests::info())).await;
    let store = fake_store(fake.address);
    for operation in OPERATIONS {
        drop(attempt(&store, operation).await);
    }
    let shown = format!("{store:?} {store:#?}");
    assert!(shown.contains("secret/pull-secrets") && !shown.contains(TOKEN), "{shown}");
}
