//! Reads the settings of the credentials service, and checks them.

mod ams;
mod checks;
mod client;
mod policy;
mod registry;
mod server;
mod shape;
pub mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use daemon::environment::Environment;
use daemon::settings::dump::Dump;
use daemon::settings::{Given, Loaded, configuration};
use database::sealed::{KeyFiles, Keyring};

pub use ams::CheckedAms;
pub use daemon::settings::common::Address;
pub use policy::{ApprovalSetting, NodesSetting, PolicySettings, RetireSetting};
pub use registry::{CheckedRegistry, RegistryKind, RegistrySettings};
pub use shape::{Ams, Clients, ClusterSettings, ServerSettings, ServerTls, Settings};
pub use table::CONFIG_VARIABLE;

/// File that is read where none is named, if it exists.
pub const SEARCHED: &str = "/etc/hyperfleet/credentials.yaml";

/// Label of the digest key, which the keyring derives from its first key. The ledger stores no digests.
const DIGEST_LABEL: &str = "credentials/digest/1";

/// The settings, checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Client of the HyperFleet API.
    pub client: hyperfleet_client::Settings,
    /// The registries, each with a name of its own.
    pub registries: Vec<CheckedRegistry>,
    /// AMS, which clusters leave; `None` if none is configured.
    pub ams: Option<CheckedAms>,
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
        read(flags, environment)?.then(|settings| settings.check(environment))
    }

    /// Reads the settings as [`Checked::load`] does, and returns them with their sources.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn dump(flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Result<Dump, Vec<String>> {
        read(flags, environment)?.dumped(|settings| settings.check(environment))
    }

    /// Reads the keys of the ledger. Without any, one is generated beside a SQLite database.
    ///
    /// # Errors
    ///
    /// A line for a message that names the setting.
    pub fn keyring(&self) -> Result<Keyring, String> {
        let files = KeyFiles {
            keys: &self.settings.keys,
            keys_setting: "keys",
            digest_key: None,
            digest_key_setting: "keys",
            digest_label: DIGEST_LABEL,
            beside: self.settings.database.file(),
        };
        files.read()?.ok_or_else(|| "keys: no key is configured: passwords cannot be sealed".to_owned())
    }
}

// === impl Settings ===

impl Settings {
    /// Takes what files and `DATABASE_URL` hold, and checks the settings as a whole.
    fn check(mut self, environment: &impl Environment) -> Result<Checked, Vec<String>> {
        let mut faults = self.database.read_files();
        faults.extend(self.database.faults());
        faults.extend(self.database.take_url(environment));
        faults.extend(self.tracing.faults());
        self.server.check(&mut faults);
        let base_url = self.clients.hyperfleet_api.address(&mut faults);
        let registries = self.registries(&mut faults);
        let ams = self.ams.check(&registries, &mut faults);
        match base_url.filter(|_| faults.is_empty()) {
            Some(base_url) => {
                let agent = concat!("hyperfleet-credentials/", env!("CARGO_PKG_VERSION")).to_owned();
                let client = self.clients.hyperfleet_api.client(base_url, agent, self.clusters.poll_interval);
                Ok(Checked { client, registries, ams, settings: self })
            }
            None => Err(faults),
        }
    }

    fn registries(&self, faults: &mut Vec<String>) -> Vec<CheckedRegistry> {
        if self.registries.is_empty() {
            faults.push("registries: must name one or more".to_owned());
        }
        let mut names = BTreeSet::new();
        let mut registries: Vec<CheckedRegistry> = Vec::new();
        for (index, registry) in self.registries.iter().enumerate() {
            if !names.insert(&registry.name) {
                faults.push(format!("registries[{index}].name: another registry has this name"));
            }
            let Some(checked) = registry.check(index, faults) else { continue };
            // A pull secret has one entry for a host.
            let shares = |other: &&CheckedRegistry| other.client.host() == checked.client.host();
            if let Some(other) = registries.iter().find(shares)
                && (other.search.is_none() || checked.search.is_none())
            {
                faults.push(format!(
                    "registries[{index}].search: registry {} has the host {} too, and a pull secret has one entry for a host: \
                     give both a search, so that no cluster is in both",
                    other.name,
                    checked.client.host()
                ));
            }
            registries.push(checked);
        }
        registries
    }
}

fn read(
    flags: BTreeMap<&'static str, String>,
    environment: &impl Environment,
) -> Result<Loaded<Settings>, Vec<String>> {
    let flag = flags.get("config").map(String::as_str);
    let file = configuration(flag, environment, CONFIG_VARIABLE, &[SEARCHED]).map_err(|fault| vec![fault])?;
    Ok(daemon::settings::load(&table::TABLE, environment, &Given { file, flags, ignored: Vec::new() }))
}
