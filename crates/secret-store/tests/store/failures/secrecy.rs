//! No content in what is shown: neither in errors nor in `Debug`.

use rstest::rstest;
use secret_store::{GoogleSecretManager, MemoryStore, Operation, SecretStore, Version, VersionNumber};
use serde_json::json;

use crate::rig::{CONTENT, attempt, emulated, faulty, secret_id, store_at};
use testkit::fake::{Fake, json as document, page};

/// [`CONTENT`] in the forms in which it travels or might be printed.
const FORMS: [&str; 3] = [CONTENT, "bTRya2VyLW9mLWEtc2VjcmV0", "109, 52, 114"];

#[track_caller]
fn shows_no_content(shown: &str) {
    for form in FORMS {
        assert!(!shown.contains(form), "{shown}");
    }
}

/// A store in which the content is.
async fn filled<S: SecretStore>(store: S) -> S {
    attempt(&store, Operation::Create).await.unwrap();
    attempt(&store, Operation::AddVersion).await.unwrap();
    store
}

#[tokio::test]
async fn a_store_shows_no_content() {
    let memory: MemoryStore = filled(MemoryStore::new()).await;
    shows_no_content(&format!("{memory:?} {memory:#?}"));
    let (_server, google) = emulated(emulators::secret_manager::Settings::default()).await;
    let google: GoogleSecretManager = filled(google).await;
    shows_no_content(&format!("{google:?} {google:#?}"));
    assert!(format!("{google:?}").contains("projects/fleet-dev"));
    for read in [
        memory.read_version(&secret_id(), VersionNumber::FIRST).await.unwrap(),
        google.read_version(&secret_id(), VersionNumber::FIRST).await.unwrap(),
    ] {
        assert!(matches!(read, Version::Live(_)));
        assert_eq!(format!("{read:?}"), "Live([redacted])");
    }
}

#[rstest]
#[case("addVersion:invalid-argument")]
#[case("addVersion:internal")]
#[case("addVersion:commit-then-cut")]
#[case("addVersion:commit-then-timeout")]
#[tokio::test]
async fn a_failed_addition_shows_no_content(#[case] fault: &str) {
    let (_server, store) = emulated(faulty(fault)).await;
    attempt(&store, Operation::Create).await.unwrap();
    let error = attempt(&store, Operation::AddVersion).await.unwrap_err();
    shows_no_content(&format!("{error} {error:?} {error:#?} {:?}", error.hint()));
}

/// A proxy's page may quote the request, and so may what a status holds beside its message.
#[tokio::test]
async fn what_echoes_the_request_is_not_repeated() {
    let echo = format!("{} {}", FORMS[0], FORMS[1]);
    let details = json!([
        {"@type": "type.googleapis.com/google.rpc.DebugInfo", "stackEntries": [echo], "detail": echo},
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": echo, "metadata": {"request": echo}},
        {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": "x", "description": echo}]},
    ]);
    let status = json!({"code": 400, "message": "Wrong.", "status": "INVALID_ARGUMENT", "details": details});
    let mut headers = document(503, &json!({"error": {"status": "UNAVAILABLE"}}));
    headers.headers_mut().insert("retry-after", echo.parse().unwrap());
    for answer in [page(400, &echo), page(502, &echo), document(400, &json!({ "error": status })), headers] {
        let fake = Fake::answering(answer).await;
        let error = attempt(&store_at(fake.address).await, Operation::AddVersion).await.unwrap_err();
        shows_no_content(&format!("{error} {error:?} {error:#?} {:?}", error.hint()));
    }
}
