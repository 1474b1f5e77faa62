//! The requests of each operation, in order, with the names by which they count.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use daemon::calls::CallLog;
use http::{Method, Response};
use rstest::rstest;
use secret_store::{Metadata, Operation, SecretStore as _, VaultLogin, VaultSettings, VaultStore};
use serde_json::{Value, json};

use crate::rig::{CONTENT, attempt, secret_id, texts};
use testkit::fake::{Fake, Received, json as document};

/// The token of [`fake_settings`].
pub(super) const TOKEN: &str = "s.t0ken-of-a-test";

/// Settings for a server on this machine, with a token in a file that stays until the machine is cleaned.
pub(super) fn fake_settings(address: SocketAddr) -> VaultSettings {
    VaultSettings {
        address: format!("http://{address}").parse().unwrap(),
        namespace: None,
        mount: "secret".parse().unwrap(),
        folder: "pull-secrets".parse().unwrap(),
        login: VaultLogin::TokenFile(token_file()),
        ca_file: None,
        call_timeout: Duration::from_mins(1),
        calls: None,
    }
}

/// A file with [`TOKEN`]; one for all tests.
fn token_file() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("vault-token");
    daemon::file::replace(&path, TOKEN.as_bytes()).unwrap();
    path
}

pub(super) fn fake_store(address: SocketAddr) -> VaultStore {
    VaultStore::connect(&fake_settings(address)).unwrap()
}

/// The metadata of a secret with one version.
pub(super) fn info() -> Value {
    json!({"data": {
        "created_time": "2026-11-25T12:00:00Z", "updated_time": "2026-11-25T13:00:00Z", "current_metadata_version": 7,
        "current_version": 1, "custom_metadata": {"Owner": "Fleet"},
        "versions": {"1": {"created_time": "2026-11-25T13:00:00Z", "deletion_time": "", "destroyed": false}},
    }})
}

/// A server with one secret that has one version, and with no other.
fn with_one_secret(request: &Received) -> Response<String> {
    let path = request.target.split('?').next().unwrap();
    match (&request.method, path) {
        (&Method::GET, "/v1/secret/metadata/pull-secrets/pull-secret") => document(200, &info()),
        (&Method::GET, "/v1/secret/data/pull-secrets/pull-secret") => {
            document(200, &json!({"data": {"data": {"pull-secret": CONTENT}, "metadata": {"destroyed": false}}}))
        }
        (&Method::POST, "/v1/secret/data/pull-secrets/pull-secret") => document(200, &json!({"data": {"version": 1}})),
        (&Method::POST, "/v1/sys/capabilities-self") => document(200, &json!({"data": {}})),
        (&Method::GET, _) => document(404, &json!({"errors": []})),
        _ => document(204, &json!(null)),
    }
}

/// Method, path and name of a request.
type Line = (&'static str, &'static str, &'static str);

const FIND: Line = ("GET", "secret/metadata/pull-secrets/pull-secret", "get_secret");

#[rstest]
#[case(Operation::Find, &[FIND])]
#[case(Operation::List, &[("GET", "secret/detailed-metadata/pull-secrets?list=true&limit=200", "list_secrets")])]
#[case(Operation::Create, &[FIND])]
#[case(Operation::AddVersion, &[FIND, ("POST", "secret/data/pull-secrets/pull-secret", "add_secret_version")])]
#[case(Operation::ReadVersion, &[("GET", "secret/data/pull-secrets/pull-secret?version=1", "access_secret_version")])]
#[case(Operation::FindVersion, &[("GET", FIND.1, "get_secret_version")])]
#[case(Operation::ListVersions, &[("GET", FIND.1, "list_secret_versions")])]
#[case(Operation::DestroyVersion, &[
    ("GET", FIND.1, "get_secret_version"),
    ("PUT", "secret/destroy/pull-secrets/pull-secret", "destroy_secret_version"),
])]
#[case(Operation::CheckPermissions, &[("POST", "sys/capabilities-self", "test_iam_permissions")])]
#[tokio::test]
async fn an_operation_is_these_requests(#[case] operation: Operation, #[case] expected: &[Line]) {
    let (sent, names) = sent_by(with_one_secret, async |store| drop(attempt(store, operation).await)).await;
    assert_eq!(sent, expected.iter().map(|(method, path, _)| format!("{method} /v1/{path}")).collect::<Vec<_>>());
    assert_eq!(names, expected.iter().map(|(_, _, name)| (*name).to_owned()).collect::<Vec<_>>());
}

async fn sent_by(
    answer: fn(&Received) -> Response<String>,
    work: impl AsyncFn(&VaultStore),
) -> (Vec<String>, Vec<String>) {
    let (fake, log) = (Fake::start(answer).await, CallLog::default());
    let settings = VaultSettings { calls: Some(log.clone()), ..fake_settings(fake.address) };
    work(&VaultStore::connect(&settings).unwrap()).await;
    let sent = fake.received().iter().map(|request| format!("{} {}", request.method, request.target)).collect();
    (sent, log.calls().iter().map(|call| call.operation.to_string()).collect())
}

#[tokio::test]
async fn changes_carry_their_condition() {
    let fake = Fake::start(with_one_secret).await;
    let store = fake_store(fake.address);
    let etag = "2026-11-25T12:00:00Z/7".to_owned();
    let wanted =
        Metadata { labels: texts(&[("team", "fleet"), ("empty", "")]), annotations: texts(&[("a", "é")]), etag };
    assert_eq!(store.update(&secret_id(), &wanted).await.unwrap(), "2026-11-25T12:00:00Z/8");
    assert!(store.delete(&secret_id(), &wanted.etag).await.unwrap());
    attempt(&store, Operation::AddVersion).await.unwrap();
    let requests = fake.received();
    let update = json!({
        "metadata_cas": 7,
        "custom_metadata": {"Owner": "Fleet", "team": "fleet", "empty": "\"\"", "annotations": "{\"a\":\"\\u00e9\"}"},
    });
    assert_eq!((requests[1].method.as_str(), &requests[1].body), ("POST", &update));
    assert_eq!(requests[3].method, Method::DELETE);
    assert_eq!(requests[5].body, json!({"options": {"cas": 0}, "data": {"pull-secret": CONTENT}}));
}

#[tokio::test]
async fn a_new_secret_must_not_exist_and_keeps_100_versions() {
    let fake = Fake::start(|request| match request.method {
        Method::GET => document(404, &json!({"errors": []})),
        _ => document(204, &json!(null)),
    })
    .await;
    attempt(&fake_store(fake.address), Operation::Create).await.unwrap();
    let requests = fake.received();
    let targets: Vec<_> = requests.iter().map(|request| request.target.as_str()).collect();
    let metadata = "/v1/secret/metadata/pull-secrets/pull-secret";
    assert_eq!(targets, [metadata, "/v1/sys/internal/ui/mounts/secret", metadata]);
    let custom = json!({"team": "fleet", "annotations": "{\"note\":\"A note\"}"});
    assert_eq!(requests[2].body, json!({"metadata_cas": 0, "max_versions": 100, "custom_metadata": custom}));
}

#[tokio::test]
async fn every_request_carries_program_token_and_namespace() {
    let fake = Fake::start(with_one_secret).await;
    let settings = VaultSettings { namespace: "team/fleet".parse().ok(), ..fake_settings(fake.address) };
    let store = VaultStore::connect(&settings).unwrap();
    assert_eq!(store.path(&secret_id()), "team/fleet/secret/pull-secrets/pull-secret");
    for operation in crate::rig::OPERATIONS {
        drop(attempt(&store, operation).await);
    }
    for request in fake.received() {
        let header = |name: &str| request.headers.get(name).unwrap().to_str().unwrap();
        assert_eq!(
            [header("x-vault-token"), header("x-vault-namespace"), header("x-vault-request")],
            [TOKEN, "team/fleet", "true"]
        );
        assert!(header("user-agent").starts_with("pull-secret/"));
    }
}

/// Folders in the folder are skipped; a full page is followed by the next one.
#[tokio::test]
async fn a_list_is_read_page_by_page() {
    let fake = Fake::start(|request| {
        if request.target.ends_with("&after=k199") {
            return document(200, &json!({"data": {"keys": ["z"], "key_info": {"z": info()["data"]}}}));
        }
        let mut keys: Vec<_> = (0..199).map(|number| format!("k{number:03}")).collect();
        let infos: serde_json::Map<_, _> = keys.iter().map(|key| (key.clone(), info()["data"].clone())).collect();
        keys.insert(0, "folder/".to_owned());
        let last = keys.pop().unwrap();
        keys.push(last.replace("k198", "k199"));
        let mut infos = infos;
        infos.insert("k199".to_owned(), info()["data"].clone());
        infos.insert("folder/".to_owned(), json!({}));
        document(200, &json!({"data": {"keys": keys, "key_info": infos}}))
    })
    .await;
    let store = fake_store(fake.address);
    let first = store.list(&[], None).await.unwrap();
    assert_eq!((first.secrets.len(), first.next.as_deref()), (199, Some("k199")));
    let last = store.list(&[], first.next.as_deref()).await.unwrap();
    assert_eq!((last.secrets.len(), last.next), (1, None));
}

/// HashiCorp's server lists names; each secret is then read, 100 in one call.
#[rstest]
#[case(404, json!({"data": null, "warnings": ["Invalid path for a versioned K/V secrets engine."]}))]
#[case(405, json!({"errors": ["unsupported operation"]}))]
#[tokio::test]
async fn names_alone_are_read_one_by_one(#[case] status: u16, #[case] refusal: Value) {
    let fake = Fake::start(move |request| {
        if request.target.contains("/detailed-metadata/") {
            return document(status, &refusal);
        }
        if request.target.ends_with("/metadata/pull-secrets?list=true") {
            let names: Vec<_> = (0..150).map(|number| format!("k{number:03}")).chain(["folder/".to_owned()]).collect();
            return document(200, &json!({"data": {"keys": names}}));
        }
        // One was deleted meanwhile.
        if request.target.ends_with("/k007") { document(404, &json!({"errors": []})) } else { document(200, &info()) }
    })
    .await;
    let store = fake_store(fake.address);
    let first = store.list(&[], None).await.unwrap();
    assert_eq!((first.secrets.len(), first.next.as_deref()), (99, Some("k099")));
    let last = store.list(&[], first.next.as_deref()).await.unwrap();
    assert_eq!((last.secrets.len(), last.next), (50, None));
}
