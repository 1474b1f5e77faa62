//! Reads the API's settings, checks them, and makes parts of them.

mod rules;
mod shape;
pub mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::authorization::Grants;
use crate::entity::Registry;
use crate::http::tenant::TenantHeaders;
use crate::sealed::DIGEST_LABEL;
use crate::store::Retention;
use daemon::environment::Environment;
use daemon::host::is_loopback;
use daemon::settings::dump::Dump;
use daemon::settings::held::secret_text;
use daemon::settings::{Given, Loaded, configuration};
use database::sealed::{KeyFiles, Keyring};
use secrecy::SecretString;

pub use shape::{
    Authorization, Changes, Health, Jwt, MetricsSettings, Notes, PullSecret, Server, Settings, Tenant, Timeouts, Tls,
};

/// Files that are read where none is named; the first that exists.
pub const SEARCHED: [&str; 2] = ["/etc/hyperfleet/config.yaml", "./configs/config.yaml"];

// === impl Settings ===

impl Settings {
    /// Reads the settings from flags, environment and file.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn load(flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Result<Self, Vec<String>> {
        let loaded = Self::read(flags, environment)?;
        let notes = loaded.notes().to_vec();
        loaded.then(|settings| settings.checked(notes, environment))
    }

    /// Reads the settings as [`Settings::load`] does, and returns them with their sources.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn dump(flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Result<Dump, Vec<String>> {
        Self::read(flags, environment)?.dumped(|settings| settings.checked(Vec::new(), environment))
    }

    fn read(
        flags: BTreeMap<&'static str, String>,
        environment: &impl Environment,
    ) -> Result<Loaded<Self>, Vec<String>> {
        let flag = flags.get("config").map(String::as_str);
        let file = configuration(flag, environment, "HYPERFLEET_CONFIG", &SEARCHED).map_err(|fault| vec![fault])?;
        let given = Given { file, flags, ignored: Vec::new() };
        Ok(daemon::settings::load_beside(&table::TABLE, table::INERT, environment, &given))
    }

    /// Takes what files and `DATABASE_URL` hold, and checks the settings as a whole.
    fn checked(mut self, notes: Vec<String>, environment: &impl Environment) -> Result<Self, Vec<String>> {
        self.notes = Notes(notes.into_iter().chain(rules::notes(&self)).collect());
        let mut faults = self.database.read_files();
        faults.extend(rules::faults(&self));
        faults.extend(self.database.take_url(environment));
        if faults.is_empty() { Ok(self) } else { Err(faults) }
    }

    /// The file that [`Settings::load`] reads, if there is one.
    pub fn file(flags: &BTreeMap<&'static str, String>, environment: &impl Environment) -> Option<PathBuf> {
        let flag = flags.get("config").cloned();
        let named = flag.or_else(|| environment.text("HYPERFLEET_CONFIG").ok().flatten()).map(PathBuf::from);
        named.or_else(|| SEARCHED.iter().map(PathBuf::from).find(|path| path.exists()))
    }

    /// The kinds to serve; HyperFleet's own set where the file names none.
    pub fn registry(&self) -> Result<Registry, Vec<String>> {
        self.entities.clone().map_or_else(|| Ok(Registry::standard()), Registry::new)
    }

    /// Events that the change stream retains.
    pub fn retention(&self) -> Retention {
        Retention { events: i64::from(self.changes.max_events), age: self.changes.max_age }
    }

    /// The headers that name the tenant of a caller, if tenants are isolated.
    pub fn tenants(&self) -> Option<TenantHeaders> {
        let Tenant { enabled, system_header, dimensions } = self.server.tenant.clone();
        enabled.then_some(TenantHeaders { system_header, dimensions })
    }

    /// The host to listen on. Without authentication only loopback is served.
    pub fn host(&self) -> &str {
        if self.server.jwt.enabled || is_loopback(&self.server.host) { &self.server.host } else { "localhost" }
    }

    /// The grants of callers.
    pub fn grants(&self, registry: &Registry) -> Result<Grants, Vec<String>> {
        let issuers: Vec<&str> = self.server.jwt.configs.iter().map(|issuer| issuer.issuer_url.as_str()).collect();
        Grants::new(&self.authorization.grants, registry, &issuers)
    }

    /// The encryption keys of pull secrets. Without any, one is generated beside an embedded database.
    pub fn keyring(&self) -> Result<Option<Keyring>, String> {
        let PullSecret { keys, digest_key_file, .. } = &self.pull_secret;
        let files = KeyFiles {
            keys,
            keys_setting: "pull_secret.keys",
            digest_key: digest_key_file.as_deref(),
            digest_key_setting: "pull_secret.digest_key_file",
            digest_label: DIGEST_LABEL,
            beside: self.database.file(),
        };
        files.read()
    }

    /// The bearer token that adds reading a pull secret.
    pub fn reader_token(&self) -> Result<Option<SecretString>, String> {
        let file = self.pull_secret.reader_token_file.as_ref();
        file.map(|file| secret_text(file, "pull_secret.reader_token_file")).transpose()
    }
}
