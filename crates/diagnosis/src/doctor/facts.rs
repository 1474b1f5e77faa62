//! Facts about the parts that the service depends on, as they were observed.

use std::path::PathBuf;

use adapter::rights::Right;
use credentials::settings::RegistryKind;
use hyperfleet_client::{ConnectionFault, Error, Identity, Probe};
use jiff::Timestamp;
use kubernetes::{KubernetesError, NamespaceSummary, PodSummary};
use message_broker::{Inspection, Subscription};
use registry_account::AccountError;
use secret_store::{Permission, StoreError};

/// Everything that was observed.
#[derive(Debug)]
pub struct Facts {
    /// The time of the observation.
    pub now: Timestamp,
    /// The API; an error says that its settings cannot be used.
    pub api: Result<ApiFacts, String>,
    /// The Kubernetes cluster; `None` if no kubeconfig is given.
    pub kubernetes: Option<KubernetesFacts>,
    /// The broker; `None` if none is set, an error if its settings cannot be used.
    pub broker: Option<Result<BrokerFacts, String>>,
    /// The secret store; `None` if none is given, an error if its settings cannot be used.
    pub store: Option<Result<StoreFacts, String>>,
    /// The credentials service; `None` if it has no configuration here, an error if its settings cannot be used.
    pub credentials: Option<Result<CredentialsFacts, String>>,
    /// The files that are set.
    pub files: Vec<FileFacts>,
}

/// The message broker.
#[derive(Debug)]
pub struct BrokerFacts {
    /// The subscription of the adapter.
    pub subscription: Subscription,
    /// The broker.
    pub inspection: Inspection,
}

/// The secret store.
#[derive(Debug)]
pub struct StoreFacts {
    /// The store, and the place of the secrets in it.
    pub place: StorePlace,
    /// The number of secrets of this service on the first page of the list.
    pub listed: Result<usize, StoreError>,
    /// The permissions on one of them; `None` if there is none, and the store answers about existing secrets only.
    pub permissions: Option<Result<Vec<PermissionFacts>, StoreError>>,
}

/// A store, and the place of the secrets in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePlace {
    /// Google Secret Manager.
    Google {
        /// The project.
        project: String,
    },
    /// OpenBao or Vault.
    Vault {
        /// Address of the server.
        server: String,
        /// Namespace, mount and folder.
        folder: String,
    },
    /// AWS Secrets Manager.
    Aws {
        /// The region.
        region: String,
        /// The part of the secrets' names before the last '/'.
        folder: String,
    },
    /// Azure Key Vault.
    Azure {
        /// Address of the vault.
        vault: String,
    },
}

/// A permission of the identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionFacts {
    /// The permission.
    pub permission: Permission,
    /// Its name in the provider's authorization.
    pub name: &'static str,
    /// True if it is held; `None` if that is not known without trying.
    pub is_held: Option<bool>,
}

/// The parts that the credentials service depends on.
#[derive(Debug)]
pub struct CredentialsFacts {
    /// Its permissions at the API; an error says that its client cannot be set up.
    pub api: Result<ApiAccess, String>,
    /// The ledger; an error is the cause for which it cannot be read.
    pub ledger: Result<LedgerFacts, String>,
    /// The registries.
    pub registries: Vec<RegistryFacts>,
}

/// The answers of the API to the credentials service.
#[derive(Debug)]
pub struct ApiAccess {
    /// The answer to a list of clusters.
    pub list: Result<(), Refusal>,
    /// The answer to the request of the pull secret of a cluster that does not exist.
    pub read: Result<(), Refusal>,
    /// The answer to a change of a cluster that does not exist.
    pub update: Result<(), Refusal>,
}

/// The ledger of registry credentials.
#[derive(Clone, Debug, Default)]
pub struct LedgerFacts {
    /// True if no migration is missing.
    pub is_current: bool,
    /// The number of passwords.
    pub passwords: u64,
    /// The ids of keys that passwords are sealed with and that are not configured.
    pub missing_keys: Vec<String>,
    /// The number of passwords that a configured key other than the first seals.
    pub old: u64,
}

/// A registry of accounts.
#[derive(Clone, Debug)]
pub struct RegistryFacts {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: RegistryKind,
    /// The answer to a read of an account that need not exist.
    pub answer: Result<(), AccountError>,
}

/// A file that a setting names.
#[derive(Clone, Debug)]
pub struct FileFacts {
    /// The setting, such as `--ca-file`.
    pub setting: &'static str,
    /// Path of the file.
    pub path: PathBuf,
    /// The time at which its first certificate expires, if it has one; an error says that it cannot be read.
    pub certificate_end: Result<Option<Timestamp>, String>,
}

/// The HyperFleet API.
#[derive(Debug)]
pub struct ApiFacts {
    /// Its address.
    pub address: String,
    /// The identity that is sent; an error says that the token file cannot be read.
    pub identity: Result<Identity, String>,
    /// The server; an error is the cause for which there is no answer.
    pub probe: Result<Probe, Refusal>,
    /// The answer to a list of clusters.
    pub list: Result<(), Refusal>,
    /// The answer to the request of the pull secret of a cluster that does not exist.
    pub read: Result<(), Refusal>,
    /// The answer to a report about a cluster that does not exist.
    pub report: Result<(), Refusal>,
}

/// The failure of a call to the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There was no connection.
    Unconnected(ConnectionFault),
    /// No answer came in time.
    TimedOut,
    /// The API does not accept the identity, or asks for one, in these words.
    Unauthenticated(String),
    /// The API denies it, in these words.
    Denied(String),
    /// The server speaks HTTP, and its answers are not those of a HyperFleet API.
    Stranger(u16),
    /// Another failure.
    Other(String),
}

/// The Kubernetes cluster in which Jobs run.
#[derive(Debug)]
pub struct KubernetesFacts {
    /// Address of the API server; empty if the kubeconfig cannot be used.
    pub server: String,
    /// The namespace of Jobs.
    pub namespace: String,
    /// The name of the identity.
    pub user: Result<String, KubernetesError>,
    /// The namespace; `None` if it does not exist.
    pub found: Result<Option<NamespaceSummary>, KubernetesError>,
    /// The rights that the adapter needs, each with the verbs that are missing.
    pub rights: Vec<RightFacts>,
    /// The Pods of the adapter's Jobs.
    pub pods: Result<Vec<PodSummary>, KubernetesError>,
    /// The Secrets that those Pods are pulled with and that do not exist.
    pub missing_pull_secrets: Vec<String>,
}

/// A right, as the server's authorization answers.
#[derive(Debug)]
pub struct RightFacts {
    /// The right.
    pub right: Right,
    /// True if it is needed in the namespace of Jobs, false if in all namespaces.
    pub is_in_namespace: bool,
    /// The verbs that the identity lacks.
    pub missing: Result<Vec<&'static str>, KubernetesError>,
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        let detail = || error.detail().unwrap_or_default().to_owned();
        match (error.connection_fault(), error.status()) {
            (Some(fault), _) => return Self::Unconnected(fault),
            (_, Some(401)) => return Self::Unauthenticated(detail()),
            (_, Some(403)) if error.problem().is_some() => return Self::Denied(detail()),
            (_, Some(status @ 300..=499)) if error.problem().is_none() => return Self::Stranger(status),
            _ => {}
        }
        match error {
            Error::Token { .. } => Self::Unauthenticated("the token file cannot be read".to_owned()),
            Error::TimedOut { .. } => Self::TimedOut,
            Error::Interrupted { source: Some(last), .. } => Self::from(last.as_ref()),
            other => Self::Other(other.to_string()),
        }
    }
}
