//! Neither passwords nor tokens nor Quay's words in what is shown, whatever it repeats.

use registry_account::{AccountError, Operation, QuayRegistry, Registry as _};
use rstest::rstest;
use serde_json::json;

use super::requests::{good, problem, robot};
use crate::rig::{DESCRIPTION, LOGIN, OPERATIONS, PASSWORD, TOKEN, attempt, new_account, quay};
use testkit::fake::{Fake, json as document, page};

#[track_caller]
fn shows_no_secret(error: &AccountError) {
    let shown = format!("{error} {error:?} {error:#?} {:?}", error.hint());
    for secret in [TOKEN, PASSWORD, DESCRIPTION, "m4rker", "M4RKER"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[rstest]
#[case(200)]
#[case(201)]
#[case(204)]
#[case(400)]
#[case(401)]
#[case(403)]
#[case(404)]
#[case(429)]
#[case(500)]
#[case(503)]
#[tokio::test]
async fn what_repeats_the_request_is_not_shown(#[case] status: u16) {
    for form in 0..5 {
        let fake = Fake::start(move |request| {
            let echo = format!("{} {:?} {PASSWORD}", request.body, request.headers["authorization"]);
            match form {
                0 => page(status, &echo),
                1 => document(status, &json!({"detail": echo, "error_message": echo, "message": echo})),
                2 => document(status, &json!({"name": echo, "token": [echo], "description": {"a": echo}})),
                3 => document(status, &json!({"name": LOGIN, "token": PASSWORD, "description": echo})),
                _ => document(status, &json!({"message": format!("User {echo} is already")})),
            }
        })
        .await;
        let registry = quay(fake.address);
        for operation in OPERATIONS {
            if let Err(error) = attempt(&registry, operation).await {
                shows_no_secret(&error);
            }
        }
    }
}

#[tokio::test]
async fn an_account_that_exists_shows_no_password() {
    let fake = Fake::start(|request| match request.method.as_str() {
        "PUT" => problem(&format!("Existing robot with name: {LOGIN} {PASSWORD}")),
        _ => document(200, &json!({"name": LOGIN, "token": PASSWORD, "description": DESCRIPTION})),
    })
    .await;
    shows_no_secret(&quay(fake.address).create(&new_account()).await.unwrap_err());
}

#[tokio::test]
async fn a_credential_and_a_registry_show_no_secret() {
    let fake = Fake::start(good).await;
    let registry = quay(fake.address);
    let created = registry.create(&new_account()).await.unwrap();
    let shown = format!("{registry:?} {registry:#?} {created:?} {:?}", created.login());
    assert!(shown.contains(LOGIN) && shown.contains("pullers"), "{shown}");
    assert!(!shown.contains(TOKEN) && !shown.contains(PASSWORD), "{shown}");
    let settings = crate::rig::settings(fake.address);
    assert!(!format!("{settings:?}").contains(TOKEN));
    drop(QuayRegistry::connect(settings).unwrap());
    assert_eq!(robot()["token"], PASSWORD);
    attempt(&registry, Operation::Find).await.unwrap();
}
