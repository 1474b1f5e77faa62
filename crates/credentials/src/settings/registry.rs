//! A registry of the settings, and the check of each of its values.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use daemon::settings::duration;
use registry_account::{AccountError, Image, NamePrefix, QuayRegistry, QuaySettings, QuayToken};
use serde::Deserialize;

use crate::credential::{Approval, NodesEvidence, Policy, RegistryName, Retire};
use crate::run::Served;

/// Time limit of a call of a registry, all its requests included.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Calls a minute where none are given.
const CALLS_PER_MINUTE: u32 = 60;
/// Beginning of the names of accounts where none is given.
const PREFIX: &str = "hf";
/// Description of accounts where none is given.
const DESCRIPTION: &str = "pull credential of a hosted cluster";
/// The least time in which a lost request counts as carried out: beyond the lease of a claimed row.
const LEAST_LATE: Duration = Duration::from_mins(5);

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
    /// The organization that owns the accounts.
    pub organization: String,
    /// The team that may pull.
    pub team: String,
    /// File with the token of the identity; read at each request.
    pub token_file: PathBuf,
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
    /// Quay: quay.io, or Red Hat Quay.
    Quay,
}

/// The rules for the credentials of a registry. Durations are written such as `15m` or `24h`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// The condition for the retirement of a quiet credential: `manual` (default) or `when_adopted`.
    pub retire: Option<RetireSetting>,
    /// The source of the evidence about nodes: `required` (default) or `renounced`.
    pub nodes: Option<NodesSetting>,
    /// The condition for a revocation at once: `none` (default) or `another_person`.
    pub revocation: Option<ApprovalSetting>,
    /// See [`Policy::quiet`].
    pub quiet: Option<String>,
    /// See [`Policy::deadline`].
    pub deadline: Option<String>,
    /// See [`Policy::interval`].
    pub interval: Option<String>,
    /// See [`Policy::fresh`].
    pub fresh: Option<String>,
    /// See [`Policy::resync`].
    pub resync: Option<String>,
    /// See [`Policy::late`].
    pub late: Option<String>,
}

/// See [`Retire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetireSetting {
    /// A person's approval.
    Manual,
    /// None beside the evidence.
    WhenAdopted,
}

/// See [`NodesEvidence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodesSetting {
    /// Nodes are reported, or attested.
    Required,
    /// No system of the fleet reports nodes.
    Renounced,
}

/// See [`Approval`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalSetting {
    /// One person orders it.
    None,
    /// Another person orders it as well.
    AnotherPerson,
}

/// A registry, checked.
#[derive(Clone, Debug)]
pub struct RegistryPlan {
    /// Its name.
    pub name: RegistryName,
    /// Its client.
    pub quay: QuaySettings,
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

/// Collects the faults of one item of a list.
struct Checks<'a> {
    index: usize,
    faults: &'a mut Vec<String>,
}

// === impl Checks ===

impl Checks<'_> {
    fn fault(&mut self, key: &str, fault: impl Display) {
        self.faults.push(format!("registries[{}].{key}: {fault}", self.index));
    }

    fn parsed<T: FromStr<Err: Display>>(&mut self, key: &str, text: &str) -> Option<T> {
        text.trim().parse().map_err(|error| self.fault(key, error)).ok()
    }

    /// Reads a duration; `given` is `None` where the default holds.
    fn duration(&mut self, key: &str, given: Option<&String>, default: Duration) -> Duration {
        let Some(text) = given else { return default };
        let duration = duration::parse(text.trim()).filter(|duration| !duration.is_zero());
        if duration.is_none() {
            self.fault(&format!("policy.{key}"), duration::MUST);
        }
        duration.unwrap_or(default)
    }
}

// === impl RegistrySettings ===

impl RegistrySettings {
    /// Checks every value, and returns the plan of the registry. Each fault is added as a line for a message.
    pub(super) fn plan(&self, index: usize, faults: &mut Vec<String>) -> Option<RegistryPlan> {
        let before = faults.len();
        let mut checks = Checks { index, faults };
        let name = checks.parsed("name", &self.name);
        let address = checks.parsed("url", &self.url);
        let organization = checks.parsed("organization", &self.organization);
        let team = checks.parsed("team", &self.team);
        let prefix = checks.parsed("prefix", self.prefix.as_deref().unwrap_or(PREFIX));
        let image = self.image(&mut checks);
        let policy = self.policy.plan(&mut checks);
        let calls_per_minute = self.calls_per_minute.unwrap_or(CALLS_PER_MINUTE);
        if calls_per_minute == 0 {
            checks.fault("calls_per_minute", "must be 1 or more");
        }
        let description = self.description.clone().unwrap_or_else(|| DESCRIPTION.to_owned());
        if description.is_empty() || description.chars().count() > 255 || description.chars().any(char::is_control) {
            checks.fault("description", "must be one line of 1 to 255 characters");
        }
        if faults.len() > before {
            return None;
        }
        let RegistryKind::Quay = self.kind;
        let quay = QuaySettings {
            address: address?,
            host: self.host.clone(),
            organization: organization?,
            team: team?,
            token: QuayToken::File(self.token_file.clone()),
            ca_file: self.ca_file.clone(),
            call_timeout: CALL_TIMEOUT,
            calls_per_minute,
            calls: None,
        };
        Some(RegistryPlan {
            name: name?,
            quay,
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

// === impl RegistryPlan ===

impl RegistryPlan {
    /// Sets up the client of the registry. No request is sent.
    ///
    /// # Errors
    ///
    /// A file of the settings that cannot be used.
    pub fn connect(&self) -> Result<Served<QuayRegistry>, AccountError> {
        Ok(Served {
            registry: QuayRegistry::connect(self.quay.clone())?,
            image: self.image.clone(),
            prefix: self.prefix.clone(),
            description: self.description.clone(),
            policy: self.policy.clone(),
            pool: self.pool,
            per_minute: None,
        })
    }
}

// === impl PolicySettings ===

impl PolicySettings {
    fn plan(&self, checks: &mut Checks<'_>) -> Policy {
        let default = Policy::default();
        let policy = Policy {
            retire: match self.retire {
                Some(RetireSetting::WhenAdopted) => Retire::WhenAdopted,
                Some(RetireSetting::Manual) | None => Retire::Manual,
            },
            nodes: match self.nodes {
                Some(NodesSetting::Renounced) => NodesEvidence::Renounced,
                Some(NodesSetting::Required) | None => NodesEvidence::Required,
            },
            revocation: match self.revocation {
                Some(ApprovalSetting::AnotherPerson) => Approval::AnotherPerson,
                Some(ApprovalSetting::None) | None => Approval::None,
            },
            quiet: checks.duration("quiet", self.quiet.as_ref(), default.quiet),
            deadline: checks.duration("deadline", self.deadline.as_ref(), default.deadline),
            interval: checks.duration("interval", self.interval.as_ref(), default.interval),
            fresh: checks.duration("fresh", self.fresh.as_ref(), default.fresh),
            resync: checks.duration("resync", self.resync.as_ref(), default.resync),
            late: checks.duration("late", self.late.as_ref(), default.late),
            ..default
        };
        if policy.late < LEAST_LATE {
            checks.fault(
                "policy.late",
                "must be 5m or more: a request that was lost may still be carried out until then",
            );
        }
        policy
    }
}
