//! Neither passwords nor tokens nor a registry's words in what is shown, whatever it repeats.

use registry_account::AccountError;
use rstest::rstest;
use serde_json::json;

use crate::rig::{DESCRIPTION, HARBOR_LOGIN, LOGIN, PASSWORD, TOKEN, Tested};
use testkit::fake::{Fake, json as document, page};

#[track_caller]
pub(crate) fn shows_no_secret(error: &AccountError) {
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
    for form in 0..6 {
        let fake = Fake::start(move |request| {
            let echo = format!("{} {:?} {PASSWORD}", request.body, request.headers.get("authorization"));
            match form {
                0 => page(status, &echo),
                1 => document(status, &json!({"detail": echo, "error_message": echo, "message": echo})),
                2 => document(status, &json!({"name": echo, "token": [echo], "description": {"a": echo}})),
                3 => document(status, &json!({"name": LOGIN, "token": PASSWORD, "description": echo})),
                4 => document(status, &json!({"message": format!("User {echo} is already")})),
                _ => document(
                    status,
                    &json!({"project_id": 7, "id": 1, "name": HARBOR_LOGIN, "secret": echo, "description": echo}),
                ),
            }
        })
        .await;
        for registry in Tested::all(fake.address) {
            for operation in registry.operations() {
                if let Err(error) = registry.attempt(operation).await {
                    shows_no_secret(&error);
                }
            }
        }
    }
}
