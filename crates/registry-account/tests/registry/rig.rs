//! Clients of the registries over a server, and one way to call each operation.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use aws_credential_types::Credentials as Keys;
use aws_credential_types::provider::SharedCredentialsProvider;
use daemon::connections::ClientCertificate;
use google_cloud_auth::credentials::{CacheableResource, Credentials, CredentialsProvider, EntityTag};
use google_cloud_auth::errors::CredentialsError;
use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap};
use jiff::Timestamp;
use registry_account::{
    AccountError, AccountName, AcrRegistry, AcrSettings, CredentialId, EcrRegistry, EcrSettings, GarRegistry,
    GarSettings, HarborRegistry, HarborSettings, IdentitySecret, Image, Issuer, NewAccount, Operation, QuayRegistry,
    QuaySettings, RedHatRegistry, RedHatSettings, Registry, RobotPrefix,
};

/// The token or password of a client. No error and no `Debug` may show it.
pub(crate) const TOKEN: &str = "t0ken-m4rker-of-an-application";
/// The user of Harbor's client.
pub(crate) const USER: &str = "service";
/// The description of [`new_account`], which the registries' messages repeat.
pub(crate) const DESCRIPTION: &str = "d3scription-m4rker";
/// The login of [`name`] at Quay.
pub(crate) const LOGIN: &str = "fleet+hf-one";
/// The login of [`name`] at Harbor.
pub(crate) const HARBOR_LOGIN: &str = "robot$fleet+hf-one";
/// The credential of [`new_account`].
pub(crate) const CREDENTIAL: &str = "01932b5c-9f3e-7c2a-8e1d-0123456789ab";
/// A password as Quay makes them.
pub(crate) const PASSWORD: &str = "P4SSWORDM4RKER0123456789";

/// Longer than any test takes.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// Every operation of the contract that sends a request.
pub(crate) const OPERATIONS: [Operation; 7] = [
    Operation::Create,
    Operation::Find,
    Operation::Permit,
    Operation::Usage,
    Operation::Disable,
    Operation::Delete,
    Operation::List,
];

/// Those of them that Red Hat's registries do not have.
pub(crate) const UNSUPPORTED: [Operation; 2] = [Operation::Usage, Operation::Disable];

/// A client under test.
#[derive(Debug)]
pub(crate) enum Tested {
    Acr(Box<AcrRegistry>),
    Ecr(EcrRegistry),
    Gar(GarRegistry),
    Harbor(HarborRegistry),
    Quay(QuayRegistry),
    RedHat(RedHatRegistry),
}

// === impl Tested ===

impl Tested {
    /// Every client, at the same server.
    pub(crate) fn all(address: SocketAddr) -> [Self; 6] {
        Self::all_within(address, CALL_TIMEOUT)
    }

    pub(crate) fn all_within(address: SocketAddr, call_timeout: Duration) -> [Self; 6] {
        let acr = AcrSettings { call_timeout, ..acr_settings(address) };
        let ecr = EcrSettings { call_timeout, ..ecr_settings(address) };
        let gar = GarSettings { call_timeout, ..gar_settings(address) };
        let harbor = HarborSettings { call_timeout, ..harbor_settings(address) };
        let quay = QuaySettings { call_timeout, ..settings(address) };
        let red_hat = RedHatSettings { call_timeout, ..red_hat_settings(address) };
        [
            Self::Acr(AcrRegistry::connect(acr).unwrap().into()),
            Self::Ecr(EcrRegistry::connect_as(ecr, keys()).unwrap()),
            Self::Gar(GarRegistry::connect_as(gar, identity()).unwrap()),
            Self::Harbor(HarborRegistry::connect(harbor).unwrap()),
            Self::Quay(QuayRegistry::connect(quay).unwrap()),
            Self::RedHat(RedHatRegistry::connect(red_hat).unwrap()),
        ]
    }

    pub(crate) fn operations(&self) -> Vec<Operation> {
        match self {
            // There is nothing else to ask for.
            Self::Acr(_) | Self::Ecr(_) | Self::Gar(_) => vec![Operation::Create, Operation::List],
            Self::Harbor(_) => OPERATIONS.to_vec(),
            Self::RedHat(_) => OPERATIONS.into_iter().filter(|it| !UNSUPPORTED.contains(it)).collect(),
            Self::Quay(_) => [&OPERATIONS[..], &[Operation::Prepare, Operation::Federate]].concat(),
        }
    }

    /// Calls an operation on [`name`], and forgets what it answers.
    pub(crate) async fn attempt(&self, operation: Operation) -> Result<(), AccountError> {
        match self {
            Self::Acr(registry) => call(registry.as_ref(), operation).await,
            Self::Ecr(registry) => call(registry, operation).await,
            Self::Gar(registry) => call(registry, operation).await,
            Self::Harbor(registry) => call(registry, operation).await,
            Self::Quay(registry) => attempt(registry, operation).await,
            Self::RedHat(registry) => call(registry, operation).await,
        }
    }
}

/// An identity at Google Cloud: the bearer of [`TOKEN`].
#[derive(Debug)]
struct Bearer;

impl CredentialsProvider for Bearer {
    async fn headers(&self, _extensions: Extensions) -> Result<CacheableResource<HeaderMap>, CredentialsError> {
        let data = HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {TOKEN}").parse().unwrap())]);
        Ok(CacheableResource::New { entity_tag: EntityTag::new(), data })
    }

    async fn universe_domain(&self) -> Option<String> {
        None
    }
}

pub(crate) fn acr_settings(address: SocketAddr) -> AcrSettings {
    AcrSettings {
        address: format!("http://{address}").parse().unwrap(),
        host: None,
        tenant: "5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0001".parse().unwrap(),
        application: "5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0002".parse().unwrap(),
        token: IdentitySecret::Value(TOKEN.into()),
        token_address: format!("http://{address}").parse().unwrap(),
        ca_file: None,
        call_timeout: CALL_TIMEOUT,
        calls_per_minute: 60,
        calls: None,
    }
}

pub(crate) fn ecr_settings(address: SocketAddr) -> EcrSettings {
    EcrSettings {
        address: format!("http://{address}").parse().unwrap(),
        host: None,
        region: "eu-central-1".parse().unwrap(),
        role: "arn:aws:iam::123456789012:role/puller".parse().unwrap(),
        token_address: format!("http://{address}").parse().unwrap(),
        ca_file: None,
        call_timeout: CALL_TIMEOUT,
        calls_per_minute: 60,
        calls: None,
    }
}

/// Credentials of a role at AWS, with [`TOKEN`] as the secret key and in the session's token.
pub(crate) fn keys() -> SharedCredentialsProvider {
    SharedCredentialsProvider::new(Keys::new("AKIDEXAMPLE", TOKEN, Some(format!("session-{TOKEN}")), None, "test"))
}

pub(crate) fn gar_settings(address: SocketAddr) -> GarSettings {
    GarSettings {
        address: format!("http://{address}").parse().unwrap(),
        host: None,
        service_account: "puller@fleet.iam.gserviceaccount.com".parse().unwrap(),
        token_life: Duration::from_hours(1),
        token_address: format!("http://{address}").parse().unwrap(),
        ca_file: None,
        call_timeout: CALL_TIMEOUT,
        calls_per_minute: 60,
        calls: None,
    }
}

pub(crate) fn identity() -> Credentials {
    Bearer.into()
}

pub(crate) fn gar(address: SocketAddr) -> GarRegistry {
    GarRegistry::connect_as(gar_settings(address), identity()).unwrap()
}

pub(crate) fn harbor_settings(address: SocketAddr) -> HarborSettings {
    HarborSettings {
        address: format!("http://{address}").parse().unwrap(),
        host: None,
        project: "fleet".parse().unwrap(),
        robot_prefix: RobotPrefix::default(),
        username: USER.parse().unwrap(),
        password: IdentitySecret::Value(TOKEN.into()),
        token_life: Duration::from_mins(30),
        ca_file: None,
        call_timeout: CALL_TIMEOUT,
        calls_per_minute: 60,
        calls: None,
    }
}

pub(crate) fn harbor(address: SocketAddr) -> HarborRegistry {
    HarborRegistry::connect(harbor_settings(address)).unwrap()
}

/// A client that does not show its certificate, as the address has no TLS.
pub(crate) fn red_hat_settings(address: SocketAddr) -> RedHatSettings {
    RedHatSettings {
        address: format!("http://{address}/management/v1").parse().unwrap(),
        host: address.to_string(),
        partner: "fleet".parse().unwrap(),
        certificate: ClientCertificate { cert_file: "tls.crt".into(), key_file: "tls.key".into() },
        token_life: Duration::from_mins(5),
        ca_file: None,
        call_timeout: CALL_TIMEOUT,
        calls_per_minute: 120,
        calls: None,
    }
}

pub(crate) fn red_hat(address: SocketAddr) -> RedHatRegistry {
    RedHatRegistry::connect(red_hat_settings(address)).unwrap()
}

pub(crate) fn settings(address: SocketAddr) -> QuaySettings {
    QuaySettings {
        address: format!("http://{address}").parse().unwrap(),
        host: None,
        organization: "fleet".parse().unwrap(),
        team: "pullers".parse().unwrap(),
        token: IdentitySecret::Value(TOKEN.into()),
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

/// Calls an operation of Quay's client on [`name`].
pub(crate) async fn attempt(registry: &QuayRegistry, operation: Operation) -> Result<(), AccountError> {
    match operation {
        Operation::Prepare => registry.prepare().await,
        Operation::Federate => registry.set_issuers(&name(), &issuers()).await,
        other => call(registry, other).await,
    }
}

/// Calls an operation of the contract on [`name`].
pub(crate) async fn call(registry: &impl Registry, operation: Operation) -> Result<(), AccountError> {
    let name = name();
    match operation {
        Operation::Create => registry.create(&new_account()).await.map(drop),
        Operation::Find => registry.find(&name).await.map(drop),
        Operation::Permit => registry.permit(&name).await,
        Operation::Usage => registry.usage(&name, time("2026-11-22T10:00:00Z")).await.map(drop),
        Operation::Disable => registry.disable(&name).await,
        Operation::Delete => registry.delete(&name).await.map(drop),
        Operation::List => registry.list(None).await.map(drop),
        other => panic!("{other:?} is not of the contract"),
    }
}

pub(crate) fn issuers() -> BTreeSet<Issuer> {
    let subject = "system:serviceaccount:kube-system:puller".to_owned();
    BTreeSet::from([Issuer { issuer: "https://issuer.example".to_owned(), subject }])
}
