//! Settings of a client: place, endpoint, identity, time limit.

use std::path::PathBuf;
use std::time::Duration;

use daemon::calls::CallLog;
pub use daemon::endpoint::{EndpointUrl, InvalidEndpoint};
use daemon::host::host_of;
use secrecy::SecretString;

use crate::{Location, ProjectId, StorePath};

/// The store of secrets, with the settings of its client.
#[derive(Clone, Debug)]
pub enum StoreSettings {
    /// Google Secret Manager.
    Google(Settings),
    /// OpenBao or Vault.
    Vault(VaultSettings),
    /// AWS Secrets Manager.
    Aws(AwsSettings),
    /// Azure Key Vault.
    Azure(AzureSettings),
}

/// Project, location and endpoint of the secrets, and the time limit of a call.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Project that contains the secrets.
    pub project: ProjectId,
    /// Location of regional secrets; `None` for global ones.
    pub location: Option<Location>,
    /// Endpoint of the store.
    pub endpoint: Endpoint,
    /// Time limit of a call, including the time for a token.
    pub call_timeout: Duration,
    /// Record of each call, for a program that runs once.
    pub calls: Option<CallLog>,
}

/// Address, place and identity of secrets in OpenBao or Vault (the KV engine, version 2), and the time limit of a call.
#[derive(Clone, Debug)]
pub struct VaultSettings {
    /// Address of the server.
    pub address: EndpointUrl,
    /// Namespace; `None` for the root.
    pub namespace: Option<StorePath>,
    /// Mount of the KV engine, such as `secret`.
    pub mount: StorePath,
    /// Folder of the secrets in the mount.
    pub folder: StorePath,
    /// Identity.
    pub login: VaultLogin,
    /// File with the certificate authorities of the server, in PEM; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// Time limit of a call, including the time for a token.
    pub call_timeout: Duration,
    /// Record of each call, for a program that runs once.
    pub calls: Option<CallLog>,
}

/// Identity at OpenBao or Vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaultLogin {
    /// A token in a file, which something else renews.
    TokenFile(PathBuf),
    /// A signed token of this workload, such as that of a Kubernetes service account.
    Jwt {
        /// Mount of the auth method: `kubernetes`, `jwt`.
        mount: String,
        /// Role at the auth method.
        role: String,
        /// File with the signed token.
        token_file: PathBuf,
    },
    /// An AppRole.
    AppRole {
        /// Mount of the auth method, such as `approle`.
        mount: String,
        /// Id of the role.
        role_id: String,
        /// File with the secret id.
        secret_id_file: PathBuf,
    },
}

/// Region, place and identity of secrets in AWS Secrets Manager, and the time limit of a call.
#[derive(Clone, Debug)]
pub struct AwsSettings {
    /// Region of the secrets.
    pub region: Location,
    /// Another address of the service (a private endpoint, a stand-in for tests); `None` for the provider's.
    pub endpoint: Option<EndpointUrl>,
    /// The part of the secrets' names before the last `/`.
    pub folder: StorePath,
    /// Identity.
    pub identity: AwsIdentity,
    /// Number of days, 7 to 30, for which a deleted secret can be restored; `None` if it cannot.
    pub recovery_days: Option<u8>,
    /// Time limit of a call of this crate, all its requests and the time for credentials included.
    pub call_timeout: Duration,
    /// Record of each request, for a program that runs once.
    pub calls: Option<CallLog>,
}

/// Identity at AWS.
#[derive(Clone, Debug, Default)]
pub enum AwsIdentity {
    /// That of the environment: variables, a profile, a web identity, the container's or the machine's role, in this order.
    #[default]
    Environment,
    /// Keys that the caller has.
    Keys(AwsKeys),
}

/// A pair of access keys.
#[derive(Clone, Debug)]
pub struct AwsKeys {
    /// Id of the key.
    pub id: String,
    /// The secret key.
    pub secret: SecretString,
}

/// Vault and identity of secrets in Azure Key Vault, and the time limit of a call.
#[derive(Clone, Debug)]
pub struct AzureSettings {
    /// Address of the vault, such as `https://NAME.vault.azure.net`; `https` also on this machine.
    pub vault: EndpointUrl,
    /// Identity.
    pub identity: AzureIdentity,
    /// File with the certificate authorities of the vault and of the service for tokens, in PEM; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// True if a deleted secret is purged at once, so that its name can be used again. A vault with purge protection refuses
    /// that.
    pub purge: bool,
    /// Time limit of a call of this crate, all its requests and the time for a token included.
    pub call_timeout: Duration,
    /// Record of each request, for a program that runs once.
    pub calls: Option<CallLog>,
}

/// Identity at Azure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AzureIdentity {
    /// A workload identity: a signed token of this workload, such as that of a Kubernetes service account, is exchanged.
    Workload {
        /// Address of the service for tokens: `https://login.microsoftonline.com`, or that of another cloud.
        authority: EndpointUrl,
        /// Id of the tenant.
        tenant: String,
        /// Id of the application or of the managed identity.
        client_id: String,
        /// File with the signed token.
        token_file: PathBuf,
    },
    /// The managed identity of the machine or of the App Service.
    ManagedIdentity {
        /// Id of a user-assigned identity; `None` for the system-assigned one.
        client_id: Option<String>,
    },
}

/// Endpoint of a store, and the identity that is sent to it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Endpoint {
    /// The provider's own, with the identity of the environment.
    #[default]
    Provider,
    /// An emulator, by plain HTTP.
    Emulator {
        /// Its `HOST:PORT`.
        host: String,
        /// File with the bearer token that it requires; without one no identity is sent.
        token_file: Option<PathBuf>,
    },
    /// Another address of the provider (a private endpoint, a proxy), with the identity of the environment.
    Custom(EndpointUrl),
}

// === impl StoreSettings ===

impl StoreSettings {
    /// Returns the name of the store, for people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Google(_) => "Secret Manager",
            Self::Vault(_) => "Vault",
            Self::Aws(_) => "AWS Secrets Manager",
            Self::Azure(_) => "Azure Key Vault",
        }
    }

    /// Returns true if this build has a client of the store.
    pub fn is_built(&self) -> bool {
        match self {
            Self::Google(_) => cfg!(feature = "google"),
            Self::Vault(_) => cfg!(feature = "vault"),
            Self::Aws(_) => cfg!(feature = "aws"),
            Self::Azure(_) => cfg!(feature = "azure"),
        }
    }

    /// Returns the host that requests are sent to without encryption, if they are.
    pub fn plain_host(&self) -> Option<&str> {
        match self {
            Self::Google(settings) => settings.plain_host(),
            Self::Vault(settings) => settings.address.plain_host(),
            Self::Aws(settings) => settings.endpoint.as_ref().and_then(EndpointUrl::plain_host),
            Self::Azure(settings) => settings.vault.plain_host(),
        }
    }
}

// === impl Settings ===

impl Settings {
    /// Returns the host that requests are sent to without encryption, if they are.
    pub fn plain_host(&self) -> Option<&str> {
        let address = match &self.endpoint {
            Endpoint::Provider => return None,
            Endpoint::Emulator { host, .. } => host,
            Endpoint::Custom(url) => return url.plain_host(),
        };
        host_of(address)
    }
}

// === impl VaultSettings ===

impl VaultSettings {
    /// Number of versions that a secret keeps, as the server is asked to when the secret is created.
    pub const VERSIONS_KEPT: usize = 100;
}

// === impl AwsSettings ===

impl AwsSettings {
    /// Number of versions that a secret keeps: each has two of the twenty labels that AWS allows a secret, and four are
    /// AWS's own and people's.
    pub const VERSIONS_KEPT: usize = 8;
}

// === impl Endpoint ===

impl Endpoint {
    /// Returns an emulator at `HOST:PORT` that requires no token.
    pub fn emulator(host: impl Into<String>) -> Self {
        Self::Emulator { host: host.into(), token_file: None }
    }
}
