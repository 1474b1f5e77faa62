//! Reads the controller's settings, checks them, and makes a policy of them.

mod shape;
pub mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use daemon::environment::Environment;
use daemon::settings::dump::Dump;
use daemon::settings::{Given, Loaded, configuration};
use docker_config::Limits;
use docker_config::merge::{self, ConflictPolicy, InvalidEntries, Prefix};
use fleet_model::id::{is_dns_label, is_dns_subdomain};
use kubernetes::SecretKey;

use crate::finding::{Mode, Rules};
use crate::objects::Syncer;
use crate::policy::{Policy, Rollout};

use table::CONFIG_VARIABLE;

pub use daemon::settings::common::Address;
pub use shape::{
    ConflictChoice, InvalidChoice, ProbeChoice, ProbeSettings, RestartChoice, RolloutChoice, Settings, SyncerSettings,
};

/// The settings, checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The policy of decisions.
    pub policy: Policy,
    /// Namespace of the hosted control plane.
    pub namespace: String,
    /// The Secret that the original is copied from, if it is named.
    pub source: Option<SecretKey>,
    /// The settings that it was made of.
    pub settings: Settings,
}

// === impl Checked ===

impl Checked {
    /// Reads the settings from flags, environment and file, and checks them.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn load(flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Result<Self, Vec<String>> {
        read(flags, environment)?.then(Settings::check)
    }

    /// Reads the settings as [`Checked::load`] does, and returns them with their sources.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn dump(flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Result<Dump, Vec<String>> {
        read(flags, environment)?.dumped(Settings::check)
    }
}

fn read(
    flags: BTreeMap<&'static str, String>,
    environment: &impl Environment,
) -> Result<Loaded<Settings>, Vec<String>> {
    let flag = flags.get("config").map(String::as_str);
    let file = configuration(flag, environment, CONFIG_VARIABLE, &[]).map_err(|fault| vec![fault])?;
    Ok(daemon::settings::load(&table::TABLE, environment, &Given { file, flags, ignored: Vec::new() }))
}

// === impl Settings ===

impl Settings {
    /// Checks the settings as a whole.
    ///
    /// # Errors
    ///
    /// Every fault. A required setting that is missing is a fault of reading already.
    pub fn check(self) -> Result<Checked, Vec<String>> {
        let mut faults = self.tracing.faults();
        let merge = self.merge(&mut faults);
        let syncer = self.syncer(&mut faults);
        let invalid = match self.invalid_entries {
            InvalidChoice::RejectAll => InvalidEntries::RejectAll,
            InvalidChoice::Skip => InvalidEntries::Skip,
        };
        let rollout = match self.rollout {
            RolloutChoice::Immediate => Rollout::Immediate,
            RolloutChoice::Rolling => Rollout::Rolling,
        };
        let probe = self.probe.rules(&mut faults);
        let source = self.source(&mut faults);
        let (Some(namespace), Some(syncer)) = (self.control_plane_namespace.clone(), syncer) else {
            return Err(faults);
        };
        if !faults.is_empty() {
            return Err(faults);
        }
        let policy = Policy {
            merge,
            invalid,
            probe,
            rollout,
            syncer,
            running_images: self.running_images,
            node_deadline: self.node_deadline,
            cleanup_deadline: self.cleanup_deadline,
        };
        Ok(Checked { policy, namespace, source, settings: self })
    }

    /// Policy by which documents are merged.
    pub fn merge(&self, faults: &mut Vec<String>) -> merge::Policy {
        let conflict = match self.conflict_policy {
            ConflictChoice::AdditionalWins => ConflictPolicy::AdditionalWins,
            ConflictChoice::OriginalWins => ConflictPolicy::OriginalWins,
        };
        let mut protected = Vec::new();
        for text in parts(self.protected_prefix.as_deref()) {
            match Prefix::parse(text) {
                Ok(prefix) => protected.push(prefix),
                Err(kind) => faults.push(format!("protected_prefix: {kind}")),
            }
        }
        merge::Policy { conflict, protected, max_bytes: Limits::SECRET.max_bytes }
    }

    fn source(&self, faults: &mut Vec<String>) -> Option<SecretKey> {
        let given = self.source_secret.as_deref()?;
        let parts = given.split_once('/').filter(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name));
        if parts.is_none() {
            faults.push("source_secret: must be NAMESPACE/NAME".to_owned());
        }
        parts.map(|(namespace, name)| SecretKey { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    fn syncer(&self, faults: &mut Vec<String>) -> Option<Syncer> {
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
        Some(Syncer {
            image: image.clone()?,
            priority_class: priority_class.clone(),
            node_selector: labels,
            max_unavailable: max_unavailable.clone(),
            restart_policy: match restart_policy {
                RestartChoice::Always => "always".to_owned(),
                RestartChoice::Never => "never".to_owned(),
            },
        })
    }
}

// === impl ProbeSettings ===

impl ProbeSettings {
    fn rules(&self, faults: &mut Vec<String>) -> Rules {
        let mode = match self.credentials {
            ProbeChoice::Off => Mode::Off,
            ProbeChoice::Warn => Mode::Warn,
            ProbeChoice::Block => Mode::Block,
        };
        let is_host_part = |character: char| character.is_ascii_alphanumeric() || "-._:[]".contains(character);
        let deny: Vec<String> =
            parts(self.deny.as_deref()).map(|host| host.trim_matches('.').to_ascii_lowercase()).collect();
        if !deny.iter().all(|host| !host.is_empty() && host.chars().all(is_host_part)) {
            faults.push("probe.deny: must be hosts, without scheme and path".to_owned());
        }
        Rules { mode, deny }
    }
}

fn parts(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or_default().split(',').map(str::trim).filter(|part| !part.is_empty())
}
