//! The caller's identity, as the server sees it. Other identities need another environment, which the program's own tests have.

use daemon::retry::Transient as _;
use emulators::secret_manager::Settings as Emulator;
use secret_store::ErrorKind;
use serde_json::json;

use crate::rig::{OPERATIONS, attempt, emulated, store_at};
use testkit::fake::{Fake, json as document};

#[tokio::test]
async fn an_emulator_receives_the_program_and_no_identity() {
    let fake = Fake::answering(document(200, &json!({}))).await;
    let store = store_at(fake.address).await;
    for operation in OPERATIONS {
        // Not every operation succeeds with such an answer; all of them have asked for it.
        drop(attempt(&store, operation).await);
    }
    let requests = fake.received();
    assert_eq!(requests.len(), OPERATIONS.len());
    for request in requests {
        let agent = request.headers.get("user-agent").unwrap().to_str().unwrap();
        assert!(agent.starts_with("pull-secret/"), "{agent}");
        for header in ["authorization", "x-goog-user-project", "x-goog-api-key"] {
            assert!(!request.headers.contains_key(header), "{header} in {}", request.target);
        }
    }
}

#[tokio::test]
async fn a_server_that_wants_an_identity_refuses_none() {
    let required_token = Some("ya29.token".to_owned());
    let (_server, store) = emulated(Emulator { required_token, ..Emulator::default() }).await;
    for operation in OPERATIONS {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.kind, error.is_transient()), (ErrorKind::Unauthenticated, false));
        assert!(error.hint().unwrap().contains("Workload Identity"));
    }
}
