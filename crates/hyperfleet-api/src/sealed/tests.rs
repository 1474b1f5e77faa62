//! Tests of encryption, its bindings and keys, and of the documents that are accepted.

use database::sealed::{DigestKey, KeyBytes, key_id};
use rstest::rstest;

use super::*;

fn keyring(ids: &[(&str, u8)]) -> Keyring {
    let keys = ids.iter().map(|(id, byte)| KeyBytes { id: (*id).to_owned(), bytes: vec![*byte; 32].into() });
    Keyring::new(keys.collect(), DigestKey::Derived(DIGEST_LABEL)).unwrap()
}

fn spec(data: &Value) -> Map<String, Value> {
    json!({ "pullSecret": { "data": data } }).as_object().unwrap().clone()
}

fn document() -> Value {
    json!(r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#)
}

fn binding(id: &str, created: i64, project: &str) -> Binding {
    let spec = json!({ "gcp": { "projectId": project } });
    Binding::new(id, Timestamp::from_second(created).unwrap(), spec.as_object().unwrap())
}

fn document_of(data: &Value) -> Document {
    let Ok(PullSecretInput::New(document)) = take(&mut spec(data)) else { panic!("must be accepted") };
    document
}

#[test]
fn a_sealed_secret_is_opened_for_the_same_resource_only() {
    let keyring = keyring(&[("new", 1), ("old", 2)]);
    let own = binding("cls-1", 1, "p");
    let sealed = own.seal(&keyring, &document_of(&document())).unwrap();
    assert!(!sealed.text.contains("quay"));
    assert_eq!(own.open(&keyring, &sealed.text), Ok(document()));
    for (what, other) in [
        ("resource", binding("cls-2", 1, "p")),
        ("incarnation", binding("cls-1", 2, "p")),
        ("destination", binding("cls-1", 1, "thief")),
    ] {
        assert_eq!(other.open(&keyring, &sealed.text), Err(Unopened::Damaged), "another {what}");
        assert_eq!(other.reseal(&keyring, &sealed.text, &other), Err(Unopened::Damaged), "another {what}");
    }
    assert_eq!(own.open(&keyring, "x.y"), Err(Unopened::Damaged));
    assert_eq!(own.open(&keyring, sealed.text.trim_start_matches("2:")), Err(Unopened::Damaged), "as the old form");
    let moved = binding("cls-1", 1, "q");
    let resealed = own.reseal(&keyring, &sealed.text, &moved).unwrap();
    assert_eq!(moved.open(&keyring, &resealed), Ok(document()));
    assert_eq!(own.open(&keyring, &resealed), Err(Unopened::Damaged));
}

#[test]
fn an_old_key_still_opens_and_a_lost_one_is_named() {
    let own = binding("cls-1", 1, "p");
    let sealed = own.seal(&keyring(&[("old", 2)]), &document_of(&document())).unwrap();
    let both = keyring(&[("new", 1), ("old", 2)]);
    assert_eq!(own.open(&both, &sealed.text), Ok(document()));
    assert_eq!(own.open(&keyring(&[("new", 1)]), &sealed.text), Err(Unopened::NoKey));
    assert!(!both.is_current(&sealed.text));
    let resealed = own.reseal(&both, &sealed.text, &own).unwrap();
    assert!(both.is_current(&resealed));
    assert_eq!(own.open(&keyring(&[("new", 1)]), &resealed), Ok(document()), "the old key is not needed any more");
}

#[test]
fn text_base64_and_object_mean_the_same() {
    let keyring = keyring(&[("a", 1)]);
    let text = document().as_str().unwrap().to_owned();
    let object: Value = serde_json::from_str(&text).unwrap();
    let placeholders =
        [json!(text), json!(STANDARD.encode(&text)), object].map(|data| document_of(&data).placeholder(&keyring));
    assert_eq!(placeholders[0], placeholders[1]);
    assert_eq!(placeholders[0], placeholders[2]);
    assert!(placeholders[0]["digest"].as_str().unwrap().starts_with("hmac-sha256:"));
}

#[test]
fn a_bad_document_is_refused_with_its_position_and_no_value() {
    let refused = |data: Value| take(&mut spec(&data)).unwrap_err().0;
    let text = refused(json!(r#"{"auths":{"quay.io":{"auth":"Zq7wordThatMustNotShow"}}}"#));
    assert!(text.contains("line 1") && !text.contains("Zq7word"), "{text}");
    assert!(!refused(json!(["Zq7wordThatMustNotShow"])).contains("Zq7"));
    assert!(!refused(json!("Zq7wordThatMustNotShow")).contains("Zq7"));
}

#[test]
fn a_placeholder_keeps_the_secret_and_null_removes_it() {
    assert!(matches!(take(&mut spec(&json!({ "redacted": true }))), Ok(PullSecretInput::Placeholder)));
    assert!(matches!(take(&mut spec(&Value::Null)), Ok(PullSecretInput::Absent)));
    assert!(matches!(take(&mut Map::new()), Ok(PullSecretInput::Absent)));
}

/// Version 0.1 bound a pull secret to the id only.
#[test]
fn the_form_of_older_versions_is_opened_and_sealed_anew() {
    let (keyring, own) = (keyring(&[("a", 1)]), binding("cls-1", 1, "p"));
    let current = keyring.seal(Bound::to("cls-1"), document().to_string().into());
    let old = current.unwrap().trim_start_matches("2:").to_owned();
    assert_eq!(own.open(&keyring, &old), Ok(document()));
    assert_eq!(binding("cls-2", 1, "p").open(&keyring, &old), Err(Unopened::Damaged));
    assert!(!keyring.is_current(&old));
    assert!(keyring.is_current(&own.reseal(&keyring, &old, &own).unwrap()));
}

/// Texts that another implementation of AES-256-GCM has made stand for existing databases. The keyed digest stays too: readers
/// compare it.
#[rstest]
#[case::current(
    "2:YQ==.AAECAwQFBgcICQoL.md3JBEGLchGNNsX+WzXq0tunEiSc/hkiS7FkosDySdoO8eD4U6dK5mY0buWGWdjNLJNiHj/5Nrj5o/h9vCsv7BF3zPYRNu64\
     qtTrDUiHOQ=="
)]
#[case::of_version_0_1(
    "YQ==.AAECAwQFBgcICQoL.md3JBEGLchGNNsX+WzXq0tunEiSc/hkiS7FkosDySdoO8eD4U6dK5mY0buWGWdjNLJNiHj/5Nrj5o/h9vCsvZuo/ghxF1YQn\
     jt10SLacZg=="
)]
fn stored_texts_are_opened(#[case] stored: &str) {
    let (keyring, own) = (keyring(&[("a", 1)]), binding("cls-1", 1, "p"));
    assert_eq!(own.open(&keyring, stored), Ok(document()));
    assert_eq!(keyring.is_current(stored), stored.starts_with("2:"));
    assert_eq!(key_id(stored.split('.').next().unwrap()), "a");
    let placeholder = json!({ "redacted": true, "digest": "hmac-sha256:7568ca0ae3faea3b65e5abe9b17070366d6953caa2f0fc148fcab90857ed22d7" });
    assert_eq!(document_of(&document()).placeholder(&keyring), placeholder);
}
