//! A client of Quay over a server, and one way to call each operation.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use jiff::Timestamp;
use registry_account::{
    AccountError, AccountName, CredentialId, Image, Issuer, NewAccount, Operation, QuayRegistry, QuaySettings,
    QuayToken, Registry,
};

/// The token of the client. No error and no `Debug` may show it.
pub(crate) const TOKEN: &str = "t0ken-m4rker-of-an-application";
/// The description of [`new_account`], which Quay's messages repeat.
pub(crate) const DESCRIPTION: &str = "d3scription-m4rker";
/// The login of [`name`].
pub(crate) const LOGIN: &str = "fleet+hf-one";
/// The credential of [`new_account`].
pub(crate) const CREDENTIAL: &str = "01932b5c-9f3e-7c2a-8e1d-0123456789ab";
/// A password as Quay makes them.
pub(crate) const PASSWORD: &str = "P4SSWORDM4RKER0123456789";

/// Longer than any test takes.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// Every operation that sends a request.
pub(crate) const OPERATIONS: [Operation; 9] = [
    Operation::Create,
    Operation::Find,
    Operation::Permit,
    Operation::Usage,
    Operation::Disable,
    Operation::Delete,
    Operation::List,
    Operation::Prepare,
    Operation::Federate,
];

pub(crate) fn settings(address: SocketAddr) -> QuaySettings {
    QuaySettings {
        address: format!("http://{address}").parse().unwrap(),
        host: None,
        organization: "fleet".parse().unwrap(),
        team: "pullers".parse().unwrap(),
        token: QuayToken::Value(TOKEN.into()),
        ca_file: None,
        call_timeout: CALL_TIMEOUT,
        calls_per_minute: 60,
        calls: None,
    }
}

pub(crate) fn quay(address: SocketAddr) -> QuayRegistry {
    QuayRegistry::connect(settings(address)).unwrap()
}

pub(crate) fn name() -> AccountName {
    "hf-one".parse().unwrap()
}

pub(crate) fn credential() -> CredentialId {
    CREDENTIAL.parse().unwrap()
}

pub(crate) fn new_account() -> NewAccount {
    NewAccount { name: name(), credential: credential(), description: DESCRIPTION.to_owned() }
}

pub(crate) fn image() -> Image {
    Image { repository: "fleet/release".parse().unwrap(), reference: None }
}

pub(crate) fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Calls an operation on [`name`], and forgets what it answers.
pub(crate) async fn attempt(registry: &QuayRegistry, operation: Operation) -> Result<(), AccountError> {
    let name = name();
    match operation {
        Operation::Connect => Ok(()),
        Operation::Create => registry.create(&new_account()).await.map(drop),
        Operation::Find => registry.find(&name).await.map(drop),
        Operation::Permit => registry.permit(&name).await,
        Operation::Usage => registry.usage(&name, time("2026-11-22T10:00:00Z")).await.map(drop),
        Operation::Disable => registry.disable(&name).await,
        Operation::Delete => registry.delete(&name).await.map(drop),
        Operation::List => registry.list(None).await.map(drop),
        Operation::Prepare => registry.prepare().await,
        Operation::Federate => registry.set_issuers(&name, &issuers()).await,
    }
}

pub(crate) fn issuers() -> BTreeSet<Issuer> {
    let subject = "system:serviceaccount:kube-system:puller".to_owned();
    BTreeSet::from([Issuer { issuer: "https://issuer.example".to_owned(), subject }])
}
