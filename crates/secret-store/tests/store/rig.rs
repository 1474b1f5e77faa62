//! Stores over a server, and one way to call each operation of the contract.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use emulators::secret_manager::{SecretManager, Settings as Emulator};
use secrecy::SecretSlice;
use secret_store::{
    Endpoint, GoogleSecretManager, Metadata, NewSecret, NewVersion, Operation, Permission, Replication, SecretId,
    SecretStore, Settings, StoreError, VersionNumber,
};

/// The full name of what [`attempt`] works on.
pub(crate) const PATH: &str = "projects/fleet-dev/secrets/pull-secret";

/// The content that [`attempt`] adds. No error and no `Debug` may show it.
pub(crate) const CONTENT: &str = "m4rker-of-a-secret";

/// Longer than any test takes.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// Every operation that sends a request.
pub(crate) const OPERATIONS: [Operation; 10] = [
    Operation::Find,
    Operation::Create,
    Operation::Update,
    Operation::Delete,
    Operation::AddVersion,
    Operation::ReadVersion,
    Operation::FindVersion,
    Operation::ListVersions,
    Operation::DestroyVersion,
    Operation::CheckPermissions,
];

/// Returns settings for a server on this machine that needs no identity.
pub(crate) fn settings(address: SocketAddr) -> Settings {
    Settings {
        project: "fleet-dev".parse().unwrap(),
        location: None,
        endpoint: Endpoint::emulator(address.to_string()),
        call_timeout: CALL_TIMEOUT,
        calls: None,
    }
}

pub(crate) async fn store_at(address: SocketAddr) -> GoogleSecretManager {
    GoogleSecretManager::connect(&settings(address)).await.unwrap()
}

/// A store over an emulator; the emulator ends when it is dropped.
pub(crate) async fn emulated(emulator: Emulator) -> (SecretManager, GoogleSecretManager) {
    let server = SecretManager::start(emulator).await.unwrap();
    let store = store_at(server.address()).await;
    (server, store)
}

/// An emulator with a scripted fault.
pub(crate) fn faulty(fault: &str) -> Emulator {
    Emulator { faults: vec![fault.parse().unwrap()], ..Emulator::default() }
}

pub(crate) fn secret_id() -> SecretId {
    "pull-secret".parse().unwrap()
}

pub(crate) fn number(number: u64) -> VersionNumber {
    VersionNumber::new(number).unwrap()
}

pub(crate) fn bytes(content: &[u8]) -> SecretSlice<u8> {
    content.to_vec().into()
}

pub(crate) fn texts(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
    texts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A secret to create with a label and an annotation.
pub(crate) fn new_secret(replication: Replication) -> NewSecret {
    NewSecret { labels: texts(&[("team", "fleet")]), annotations: texts(&[("note", "A note")]), replication }
}

/// Calls an operation on the first version of [`secret_id`], and forgets what it answers.
pub(crate) async fn attempt(store: &impl SecretStore, operation: Operation) -> Result<(), StoreError> {
    let (secret, first) = (secret_id(), VersionNumber::FIRST);
    match operation {
        Operation::Connect => Ok(()),
        Operation::Find => store.find(&secret).await.map(drop),
        Operation::List => store.list(&[("team", "fleet")], None).await.map(drop),
        Operation::Create => store.create(&secret, &new_secret(Replication::Automatic { kms_key: None })).await,
        Operation::Update => {
            let metadata =
                Metadata { labels: texts(&[("team", "fleet")]), etag: "e1".to_owned(), ..Metadata::default() };
            store.update(&secret, &metadata).await.map(drop)
        }
        Operation::Delete => store.delete(&secret, "e1").await.map(drop),
        Operation::AddVersion => {
            let content = bytes(CONTENT.as_bytes());
            store.add_version(&secret, &NewVersion::without_record(first, &content)).await.map(drop)
        }
        Operation::ReadVersion => store.read_version(&secret, first).await.map(drop),
        Operation::FindVersion => store.newest_version(&secret).await.map(drop),
        Operation::ListVersions => store.list_versions(&secret).await.map(drop),
        Operation::DestroyVersion => store.destroy_version(&secret, first).await,
        Operation::CheckPermissions => {
            let wanted = BTreeSet::from([Permission::Find, Permission::AddVersion]);
            store.permissions(&secret, &wanted).await.map(drop)
        }
    }
}
