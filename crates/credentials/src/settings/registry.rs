//! A registry of the settings, and the check of each of its values.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use daemon::endpoint::EndpointUrl;
use registry_account::{
    AccountError, GarSettings, HarborSettings, IdentitySecret, Image, NamePrefix, QuaySettings, RobotPrefix,
};
use serde::Deserialize;

use super::checks::Checks;
use super::policy::PolicySettings;
use crate::credential::{Policy, RegistryName};
use crate::registry::{AnyRegistry, ClientSettings};
use crate::run::Served;

/// Time limit of a call of a registry, all its requests included.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Calls a minute where none are given.
const CALLS_PER_MINUTE: u32 = 60;
/// Life of Harbor's bearer tokens where none is given: Harbor's own default.
const TOKEN_LIFE: Duration = Duration::from_mins(30);
/// Life of the tokens of Google Artifact Registry where none is given.
const GAR_TOKEN_LIFE: Duration = Duration::from_hours(1);
/// The longest life of those.
const LONGEST_GAR_TOKEN: Duration = Duration::from_hours(12);
/// Address of the API that mints them where none is given.
const IAM_URL: &str = "https://iamcredentials.googleapis.com";
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
    /// Quay: the organization that owns the accounts.
    #[serde(default)]
    pub organization: Option<String>,
    /// Quay: the team that may pull.
    #[serde(default)]
    pub team: Option<String>,
    /// Quay: file with the token of the identity; read at each request.
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
    /// Harbor: life of bearer tokens, `30m` by default. Google Artifact Registry: life of the tokens that are minted, `1h` by
    /// default.
    #[serde(default)]
    pub token_life: Option<String>,
    /// Google Artifact Registry: the service account whose tokens are minted.
    #[serde(default)]
    pub service_account: Option<String>,
    /// Google Artifact Registry: address of the IAM Service Account Credentials API, if it is another one than Google's.
    #[serde(default)]
    pub iam_url: Option<String>,
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
    /// Google Artifact Registry.
    Gar,
    /// Harbor.
    Harbor,
    /// Quay: quay.io, or Red Hat Quay.
    Quay,
}

/// A key that registries of some kinds have.
struct OwnKey {
    kinds: &'static [RegistryKind],
    key: &'static str,
    is_given: bool,
}

/// A registry, checked.
#[derive(Clone, Debug)]
pub struct RegistryPlan {
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
    /// Checks every value, and returns the plan of the registry. Each fault is added as a line for a message.
    pub(super) fn plan(&self, index: usize, faults: &mut Vec<String>) -> Option<RegistryPlan> {
        let before = faults.len();
        let mut checks = Checks::new(index, faults);
        let name = checks.parsed("name", &self.name);
        let client = self.client(&mut checks);
        let prefix = checks.parsed("prefix", self.prefix.as_deref().unwrap_or(PREFIX));
        let image = self.image(&mut checks);
        let policy = self.policy.plan(&mut checks);
        let description = self.description.clone().unwrap_or_else(|| DESCRIPTION.to_owned());
        if description.is_empty() || description.chars().count() > 255 || description.chars().any(char::is_control) {
            checks.fault("description", "must be one line of 1 to 255 characters");
        }
        if faults.len() > before {
            return None;
        }
        Some(RegistryPlan {
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

    /// Checks the settings of the client, of which each kind has some of its own.
    fn client(&self, checks: &mut Checks<'_>) -> Option<ClientSettings> {
        let is_wrong = |own: &OwnKey| own.is_given && !own.kinds.contains(&self.kind);
        for OwnKey { kinds, key, .. } in self.own_keys().into_iter().filter(is_wrong) {
            let kinds: Vec<_> = kinds.iter().map(ToString::to_string).collect();
            let (kinds, name, own) = (kinds.join(" or "), &self.name, self.kind);
            checks.fault(key, format!("a registry of type {kinds} has it; registry {name} is of type {own}"));
        }
        if self.calls_per_minute == Some(0) {
            checks.fault("calls_per_minute", "must be 1 or more");
        }
        let address = checks.parsed("url", &self.url);
        match self.kind {
            RegistryKind::Gar => self.gar(checks, address),
            RegistryKind::Harbor => self.harbor(checks, address),
            RegistryKind::Quay => self.quay(checks, address),
        }
    }

    fn gar(&self, checks: &mut Checks<'_>, address: Option<EndpointUrl>) -> Option<ClientSettings> {
        let meaning = "the service account whose tokens are minted";
        let service_account = checks.required("service_account", self.service_account.as_ref(), meaning);
        let iam_address = checks.parsed("iam_url", self.iam_url.as_deref().unwrap_or(IAM_URL));
        let token_life = checks.duration("token_life", self.token_life.as_ref(), GAR_TOKEN_LIFE);
        if token_life > LONGEST_GAR_TOKEN || token_life.subsec_nanos() != 0 {
            checks.fault("token_life", "must be whole seconds, and 12h at most");
        }
        if self.pool > 0 {
            checks.fault("pool", "tokens expire, so none are pooled: leave it out");
        }
        if !self.image.contains([':', '@']) {
            checks.fault(
                "image",
                "must name a tag or digest, whose manifest is asked for: tokens do not show what they permit",
            );
        }
        Some(ClientSettings::Gar(GarSettings {
            address: address?,
            host: self.host.clone(),
            service_account: service_account?,
            token_life,
            iam_address: iam_address?,
            ca_file: self.ca_file.clone(),
            call_timeout: CALL_TIMEOUT,
            calls_per_minute: self.calls_per_minute.unwrap_or(CALLS_PER_MINUTE),
            calls: None,
        }))
    }

    fn harbor(&self, checks: &mut Checks<'_>, address: Option<EndpointUrl>) -> Option<ClientSettings> {
        let project = checks.required("project", self.project.as_ref(), "the project that owns the accounts");
        let username = checks.required("username", self.username.as_ref(), "the user who administers the project");
        let password = checks.given("password_file", self.password_file.as_ref(), "the file with the user's password");
        let robot_prefix = match &self.robot_prefix {
            Some(prefix) => checks.parsed("robot_prefix", prefix),
            None => Some(RobotPrefix::default()),
        };
        let token_life = checks.duration("token_life", self.token_life.as_ref(), TOKEN_LIFE);
        Some(ClientSettings::Harbor(HarborSettings {
            address: address?,
            host: self.host.clone(),
            project: project?,
            robot_prefix: robot_prefix?,
            username: username?,
            password: IdentitySecret::File(password?.clone()),
            token_life,
            ca_file: self.ca_file.clone(),
            call_timeout: CALL_TIMEOUT,
            calls_per_minute: self.calls_per_minute.unwrap_or(CALLS_PER_MINUTE),
            calls: None,
        }))
    }

    fn quay(&self, checks: &mut Checks<'_>, address: Option<EndpointUrl>) -> Option<ClientSettings> {
        let owner = "the organization that owns the accounts";
        let organization = checks.required("organization", self.organization.as_ref(), owner);
        let team = checks.required("team", self.team.as_ref(), "the team that may pull");
        let token = checks.given("token_file", self.token_file.as_ref(), "the file with the token");
        Some(ClientSettings::Quay(QuaySettings {
            address: address?,
            host: self.host.clone(),
            organization: organization?,
            team: team?,
            token: IdentitySecret::File(token?.clone()),
            ca_file: self.ca_file.clone(),
            call_timeout: CALL_TIMEOUT,
            calls_per_minute: self.calls_per_minute.unwrap_or(CALLS_PER_MINUTE),
            calls: None,
        }))
    }

    fn own_keys(&self) -> [OwnKey; 10] {
        use RegistryKind::{Gar, Harbor, Quay};
        let gar = |key, is_given| OwnKey { kinds: &[Gar], key, is_given };
        let harbor = |key, is_given| OwnKey { kinds: &[Harbor], key, is_given };
        let quay = |key, is_given| OwnKey { kinds: &[Quay], key, is_given };
        [
            gar("service_account", self.service_account.is_some()),
            gar("iam_url", self.iam_url.is_some()),
            harbor("project", self.project.is_some()),
            harbor("username", self.username.is_some()),
            harbor("password_file", self.password_file.is_some()),
            harbor("robot_prefix", self.robot_prefix.is_some()),
            OwnKey { kinds: &[Gar, Harbor], key: "token_life", is_given: self.token_life.is_some() },
            quay("organization", self.organization.is_some()),
            quay("team", self.team.is_some()),
            quay("token_file", self.token_file.is_some()),
        ]
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

// === impl RegistryPlan ===

impl RegistryPlan {
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
            Self::Gar => "gar",
            Self::Harbor => "harbor",
            Self::Quay => "quay",
        })
    }
}
