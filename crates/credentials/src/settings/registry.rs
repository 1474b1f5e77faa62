//! A registry of the settings, and the check of each of its values.

use std::fmt;
use std::path::PathBuf;

use registry_account::{AccountError, Image, NamePrefix};
use serde::Deserialize;

use super::checks::Checks;
use super::policy::PolicySettings;
use crate::credential::{Policy, RegistryName};
use crate::registry::{AnyRegistry, ClientSettings};
use crate::run::Served;

/// Beginning of the names of accounts where none is given.
const PREFIX: &str = "hf";
/// Description of accounts where none is given.
const DESCRIPTION: &str = "pull credential of a hosted cluster";

/// A registry, an item of `registries[]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistrySettings {
    /// Its name in the ledger, a DNS label. It stays for ever.
    pub name: String,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: RegistryKind,
    /// Its address, such as `https://quay.io`.
    pub url: String,
    /// Host of images, if it is another one than the address's: the key in `auths`.
    #[serde(default)]
    pub host: Option<String>,
    /// Red Hat: the partner that owns the accounts.
    #[serde(default)]
    pub partner: Option<String>,
    /// Red Hat: file with the client's certificate, PEM; read again when it is replaced.
    #[serde(default)]
    pub cert_file: Option<PathBuf>,
    /// Red Hat: file with the key of that certificate, PEM.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Quay: the organization that owns the accounts.
    #[serde(default)]
    pub organization: Option<String>,
    /// Quay: the team that may pull.
    #[serde(default)]
    pub team: Option<String>,
    /// Quay: file with the token of the identity. Azure: file with the token that the application's federated credential trusts. Read
    /// at each request.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Harbor: the project that owns the accounts.
    #[serde(default)]
    pub project: Option<String>,
    /// Harbor: the identity, a user who administers the project, or a robot.
    #[serde(default)]
    pub username: Option<String>,
    /// Harbor: file with the password of the identity; read at each request.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// Harbor: the beginning of the names of robots, `robot$` by default.
    #[serde(default)]
    pub robot_prefix: Option<String>,
    /// Harbor and Red Hat: life of bearer tokens, `30m` and `1h` by default. Google Artifact Registry: life of the tokens that are minted, `1h` by
    /// default.
    #[serde(default)]
    pub token_life: Option<String>,
    /// Google Artifact Registry: the service account whose tokens are minted.
    #[serde(default)]
    pub service_account: Option<String>,
    /// Amazon: the region of the registry.
    #[serde(default)]
    pub region: Option<String>,
    /// Amazon: the role whose tokens are minted.
    #[serde(default)]
    pub role: Option<String>,
    /// Azure: the tenant of the application.
    #[serde(default)]
    pub tenant_id: Option<String>,
    /// Azure: the application whose tokens are minted.
    #[serde(default)]
    pub client_id: Option<String>,
    /// Amazon, Azure, Google: address of the service that mints tokens, if it is another one than theirs.
    #[serde(default)]
    pub token_url: Option<String>,
    /// Certificate authorities to trust, PEM.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// The image that probes ask for, without the host: `REPOSITORY`, `REPOSITORY:TAG` or `REPOSITORY@DIGEST`.
    pub image: String,
    /// Beginning of the names of accounts.
    #[serde(default)]
    pub prefix: Option<String>,
    /// Description of accounts, for people.
    #[serde(default)]
    pub description: Option<String>,
    /// Credentials that wait for new clusters.
    #[serde(default)]
    pub pool: u64,
    /// Calls that are made in a minute at most.
    #[serde(default)]
    pub calls_per_minute: Option<u32>,
    /// The clusters that get a credential, in the API's search language; all without it.
    #[serde(default)]
    pub search: Option<String>,
    /// The rules.
    #[serde(default)]
    pub policy: PolicySettings,
}

/// The kind of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegistryKind {
    /// Azure Container Registry.
    Acr,
    /// Amazon Elastic Container Registry.
    Ecr,
    /// Google Artifact Registry.
    Gar,
    /// Harbor.
    Harbor,
    /// Quay: quay.io, or Red Hat Quay.
    Quay,
    /// Red Hat's registries, such as registry.redhat.io.
    RedHat,
}

/// A registry, checked.
#[derive(Clone, Debug)]
pub struct CheckedRegistry {
    /// Its name.
    pub name: RegistryName,
    /// Its kind.
    pub kind: RegistryKind,
    /// Its client.
    pub client: ClientSettings,
    /// The image that probes ask for.
    pub image: Image,
    /// Beginning of the names of accounts.
    pub prefix: NamePrefix,
    /// Description of accounts.
    pub description: String,
    /// The rules.
    pub policy: Policy,
    /// Credentials that should be ready in the pool.
    pub pool: u64,
    /// Search that finds the clusters that get a credential; all without it.
    pub search: Option<String>,
}

// === impl RegistrySettings ===

impl RegistrySettings {
    /// Checks every value, and returns the registry. Each fault is added as a line for a message.
    pub(super) fn check(&self, index: usize, faults: &mut Vec<String>) -> Option<CheckedRegistry> {
        let before = faults.len();
        let mut checks = Checks::new(index, faults);
        let name = checks.parsed("name", &self.name);
        let client = self.client(&mut checks);
        let prefix = checks.parsed("prefix", self.prefix.as_deref().unwrap_or(PREFIX));
        let image = self.image(&mut checks);
        let policy = self.policy.check(&mut checks);
        let description = self.description.clone().unwrap_or_else(|| DESCRIPTION.to_owned());
        if description.is_empty() || description.chars().count() > 255 || description.chars().any(char::is_control) {
            checks.fault("description", "must be one line of 1 to 255 characters");
        }
        if faults.len() > before {
            return None;
        }
        Some(CheckedRegistry {
            name: name?,
            kind: self.kind,
            client: client?,
            image: image?,
            prefix: prefix?,
            description,
            policy,
            pool: self.pool,
            search: self.search.clone().filter(|search| !search.trim().is_empty()),
        })
    }

    fn image(&self, checks: &mut Checks<'_>) -> Option<Image> {
        let text = self.image.trim();
        let (repository, reference) = match (text.split_once('@'), text.split_once(':')) {
            (Some((repository, digest)), _) => (repository, Some(digest)),
            (None, Some((repository, tag))) => (repository, Some(tag)),
            (None, None) => (text, None),
        };
        let reference = match reference.map(|reference| checks.parsed("image", reference)) {
            None => None,
            Some(parsed) => Some(parsed?),
        };
        Some(Image { repository: checks.parsed("image", repository)?, reference })
    }
}

// === impl CheckedRegistry ===

impl CheckedRegistry {
    /// Sets up the client of the registry. No request is sent.
    ///
    /// # Errors
    ///
    /// A file of the settings that cannot be used.
    pub fn connect(&self) -> Result<Served<AnyRegistry>, AccountError> {
        Ok(Served {
            registry: self.client.connect()?,
            image: self.image.clone(),
            prefix: self.prefix.clone(),
            description: self.description.clone(),
            policy: self.policy.clone(),
            pool: self.pool,
            per_minute: None,
        })
    }
}

// === impl RegistryKind ===

impl fmt::Display for RegistryKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Acr => "acr",
            Self::Ecr => "ecr",
            Self::Gar => "gar",
            Self::Harbor => "harbor",
            Self::Quay => "quay",
            Self::RedHat => "red_hat",
        })
    }
}
