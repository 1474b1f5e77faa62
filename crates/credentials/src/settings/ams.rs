//! AMS of the settings, and the check of each of its values.

use std::time::Duration;

use accounts_mgmt::AmsSettings;
use daemon::endpoint::EndpointUrl;

use super::registry::CheckedRegistry;
use super::shape::Ams;
use crate::ams::{BUDGET, Target};
use crate::publish::meaning::normal;

/// Time limit of a call of AMS, all its requests included.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// AMS, checked.
#[derive(Clone, Debug)]
pub struct CheckedAms {
    /// Its client.
    pub client: AmsSettings,
    /// Calls in a minute.
    pub per_minute: u32,
    /// Search that finds the clusters; all without it.
    pub search: Option<String>,
    /// The demanded time without a difference.
    pub compare_for: Duration,
    /// The registries that take hosts over.
    pub targets: Vec<Target>,
}

// === impl Ams ===

impl Ams {
    /// Checks every value; `None` if there is no AMS. Each fault is added as a line for a message.
    pub(super) fn check(&self, registries: &[CheckedRegistry], faults: &mut Vec<String>) -> Option<CheckedAms> {
        let before = faults.len();
        let Some(url) = &self.url else {
            let without_effect = [
                ("client_id", self.client_id.is_some()),
                ("client_secret_file", self.client_secret_file.is_some()),
                ("ca_file", self.ca_file.is_some()),
                ("search", self.search.is_some()),
            ];
            let given = without_effect.iter().filter(|(_, given)| *given);
            faults.extend(given.map(|(key, _)| format!("ams.{key}: has no effect without `ams.url`")));
            return None;
        };
        let mut address = |key: &str, text: &str| {
            let parsed = text.trim().parse::<EndpointUrl>();
            parsed.map_err(|error| faults.push(format!("ams.{key}: {error}"))).ok()
        };
        let (url, token_url) = (address("url", url), address("token_url", &self.token_url));
        if self.client_id.as_ref().is_none_or(|id| id.trim().is_empty()) {
            faults.push("ams.client_id: missing: the service account with which AMS is called".to_owned());
        }
        if self.client_secret_file.is_none() {
            faults.push("ams.client_secret_file: missing: the file with the secret of the service account".to_owned());
        }
        if registries.iter().any(|registry| registry.name.as_str() == BUDGET) {
            faults.push(format!("registries[].name: `{BUDGET}` is the name of AMS in the ledger: choose another one"));
        }
        let kept: Vec<String> = self.keep_hosts.split(',').map(|host| normal(host.trim())).collect();
        let is_taken = |registry: &&CheckedRegistry| !kept.contains(&normal(registry.client.host()));
        let target = |registry: &CheckedRegistry| Target {
            registry: registry.name.clone(),
            host: registry.client.host().to_owned(),
        };
        let targets: Vec<Target> = registries.iter().filter(is_taken).map(target).collect();
        for (index, target) in targets.iter().enumerate() {
            let is_same = |other: &&Target| normal(&other.host) == normal(&target.host);
            if let Some(Target { registry, host }) = targets.iter().take(index).find(is_same) {
                faults.push(format!(
                    "ams.keep_hosts: {host} would leave AMS for both {registry} and {}: name it here, or configure one registry for it",
                    target.registry
                ));
            }
        }
        if faults.len() > before {
            return None;
        }
        Some(CheckedAms {
            client: AmsSettings {
                address: url?,
                token_address: token_url?,
                client_id: self.client_id.clone()?,
                client_secret_file: self.client_secret_file.clone()?,
                ca_file: self.ca_file.clone(),
                call_timeout: CALL_TIMEOUT,
            },
            per_minute: self.calls_per_minute,
            search: self.search.clone().filter(|search| !search.trim().is_empty()),
            compare_for: self.compare_for,
            targets,
        })
    }
}
