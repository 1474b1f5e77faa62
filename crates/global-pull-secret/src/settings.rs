//! The controller's settings: read, checked, and turned into a policy.

pub mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use daemon::environment::Environment;
use daemon::settings::Given;
use docker_config::Limits;
use docker_config::merge::{self, ConflictPolicy, InvalidEntries, Prefix};
use serde::{Deserialize, Deserializer};

use crate::decide::probe::{Mode, Rules};
use crate::decide::{Policy, Rollout};
use crate::objects::Syncer;

/// The flag that names the configuration file.
pub const CONFIG: &str = "config";
/// The variable that does.
pub const CONFIG_VARIABLE: &str = "GLOBAL_PULL_SECRET_CONFIG";

/// The settings as the file has them, every scalar given or defaulted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Settings {
    pub hosted_kubeconfig: Option<PathBuf>,
    pub kubeconfig: Option<PathBuf>,
    pub control_plane_namespace: Option<String>,
    pub original_secret: String,
    pub syncer: SyncerSettings,
    pub conflict_policy: String,
    pub protected_prefix: Option<String>,
    pub invalid_entries: String,
    pub labelled_additional: bool,
    pub probe: ProbeSettings,
    pub rollout: String,
    #[serde(deserialize_with = "duration")]
    pub settle: Duration,
    #[serde(deserialize_with = "duration")]
    pub node_deadline: Duration,
    #[serde(deserialize_with = "duration")]
    pub cleanup_deadline: Duration,
    #[serde(deserialize_with = "duration")]
    pub call_timeout: Duration,
    pub log: Logging,
    pub health: Address,
    pub metrics: Address,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct SyncerSettings {
    pub image: Option<String>,
    pub priority_class: String,
    pub node_selector: Option<String>,
    pub max_unavailable: String,
    pub restart_policy: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct ProbeSettings {
    pub credentials: String,
    pub deny: Option<String>,
    pub allow_private: bool,
    pub ca_file: Option<PathBuf>,
    #[serde(deserialize_with = "duration")]
    pub timeout: Duration,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Logging {
    pub level: String,
    pub format: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Address {
    pub host: String,
    pub port: u16,
}

/// The settings, checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The rules.
    pub policy: Policy,
    /// The hosted control plane's namespace.
    pub namespace: String,
    /// The rest, as it was given.
    pub settings: Settings,
}

impl Settings {
    /// The settings of flags, environment and file; or everything that is wrong with them.
    pub fn load(flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Result<Self, Vec<String>> {
        let variable = environment.text(CONFIG_VARIABLE).map_err(|error| vec![error.to_string()])?;
        let flag = flags.get(CONFIG).map(|path| ("--config", path.clone()));
        let named = flag.or_else(|| variable.map(|path| (CONFIG_VARIABLE, path)));
        let read = |(origin, path): (&str, String)| {
            let text = std::fs::read_to_string(path);
            text.map_err(|error| vec![format!("{origin}: cannot be read: {}", error.kind())])
        };
        let file = named.map(read).transpose()?;
        daemon::settings::load(&table::TABLE, environment, &Given { file, flags })
    }

    /// The settings, checked; or everything that is wrong with them.
    pub fn check(self) -> Result<Checked, Vec<String>> {
        let mut faults = Vec::new();
        let namespace = required("control_plane_namespace", self.control_plane_namespace.as_deref(), &mut faults);
        let merge = self.merge(&mut faults);
        let syncer = self.syncer(&mut faults);
        let invalid = choice(
            ("invalid_entries", &self.invalid_entries),
            &[("reject-all", InvalidEntries::RejectAll), ("skip", InvalidEntries::Skip)],
            &mut faults,
        );
        let rollout = choice(
            ("rollout", &self.rollout),
            &[("immediate", Rollout::Immediate), ("rolling", Rollout::Rolling)],
            &mut faults,
        );
        let probe = self.probe.rules(&mut faults);
        if self.node_deadline < self.settle {
            faults.push("node_deadline: must not be shorter than settle".to_owned());
        }
        if self.cleanup_deadline < self.settle {
            faults.push("cleanup_deadline: must not be shorter than settle".to_owned());
        }
        if self.call_timeout < Duration::from_secs(1) {
            faults.push("call_timeout: must be 1s or more".to_owned());
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let (settle, node_deadline, cleanup_deadline) = (self.settle, self.node_deadline, self.cleanup_deadline);
        let policy = Policy { merge, invalid, probe, rollout, syncer, settle, node_deadline, cleanup_deadline };
        Ok(Checked { policy, namespace, settings: self })
    }

    /// How documents are merged.
    pub fn merge(&self, faults: &mut Vec<String>) -> merge::Policy {
        let conflict = choice(
            ("conflict_policy", &self.conflict_policy),
            &[("additional-wins", ConflictPolicy::AdditionalWins), ("original-wins", ConflictPolicy::OriginalWins)],
            faults,
        );
        let mut protected = Vec::new();
        for text in parts(self.protected_prefix.as_deref()) {
            match Prefix::parse(text) {
                Ok(prefix) => protected.push(prefix),
                Err(kind) => faults.push(format!("protected_prefix: {kind}")),
            }
        }
        merge::Policy { conflict, protected, max_bytes: Limits::SECRET.max_bytes }
    }

    fn syncer(&self, faults: &mut Vec<String>) -> Syncer {
        let SyncerSettings { image, priority_class, node_selector, max_unavailable, restart_policy } = &self.syncer;
        let mut labels = BTreeMap::new();
        for part in parts(node_selector.as_deref()) {
            match part.split_once('=') {
                Some((key, value)) if !key.is_empty() => drop(labels.insert(key.to_owned(), value.to_owned())),
                _ => faults.push("syncer.node_selector: must be KEY=VALUE,…".to_owned()),
            }
        }
        let number = max_unavailable.strip_suffix('%').unwrap_or(max_unavailable);
        let most = if number.len() < max_unavailable.len() { 100 } else { 1_000_000 };
        if !number.parse::<u32>().is_ok_and(|number| (1..=most).contains(&number)) {
            faults.push("syncer.max_unavailable: must be a number, or a percentage from 1% to 100%".to_owned());
        }
        choice(("syncer.restart_policy", restart_policy), &[("always", ()), ("never", ())], faults);
        Syncer {
            image: required("syncer.image", image.as_deref(), faults),
            priority_class: priority_class.clone(),
            node_selector: labels,
            max_unavailable: max_unavailable.clone(),
            restart_policy: restart_policy.clone(),
        }
    }
}

impl ProbeSettings {
    fn rules(&self, faults: &mut Vec<String>) -> Rules {
        let mode = choice(
            ("probe.credentials", &self.credentials),
            &[("off", Mode::Off), ("warn", Mode::Warn), ("block", Mode::Block)],
            faults,
        );
        let is_host_part = |character: char| character.is_ascii_alphanumeric() || "-._:[]".contains(character);
        let deny: Vec<String> =
            parts(self.deny.as_deref()).map(|host| host.trim_matches('.').to_ascii_lowercase()).collect();
        if !deny.iter().all(|host| !host.is_empty() && host.chars().all(is_host_part)) {
            faults.push("probe.deny: must be hosts, without scheme and path".to_owned());
        }
        if !(Duration::from_millis(100)..=Duration::from_mins(1)).contains(&self.timeout) {
            faults.push("probe.timeout: must be 100ms to 1m".to_owned());
        }
        Rules { mode, deny }
    }
}

fn required(path: &str, value: Option<&str>, faults: &mut Vec<String>) -> String {
    let value = value.map(str::trim).filter(|value| !value.is_empty());
    if value.is_none() {
        let variable = table::variable(path);
        let flag = table::TABLE.rows.iter().find(|row| row.path == path).and_then(|row| row.flag).unwrap_or_default();
        faults.push(format!("{path}: is missing; give it as --{flag} or {variable}"));
    }
    value.unwrap_or_default().to_owned()
}

fn choice<T: Copy + Default>((path, text): (&str, &str), choices: &[(&str, T)], faults: &mut Vec<String>) -> T {
    let found = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.unwrap_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        faults.push(format!("{path}: must be one of {}", names.join(", ")));
        T::default()
    })
}

fn parts(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or_default().split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}
