//! Reads the API's settings, checks them, and makes parts of them.

mod rules;
mod shape;
pub mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::authorization::Grants;
use crate::entity::Registry;
use crate::http::tenant::TenantHeaders;
use crate::sealed;
use crate::store::Retention;
use daemon::environment::Environment;
use daemon::host::is_loopback;
use daemon::settings::dump::Dump;
use daemon::settings::{Given, Loaded, configuration, unreadable};
use database::sealed::{KeyBytes, Keyring};
use database::{PoolSettings, Source};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use sha2::{Digest as _, Sha256};

pub use shape::{
    Authorization, Changes, DatabaseSettings, Dialect, Health, Jwt, KeySettings, MetricsSettings, Notes, Pool,
    PullSecret, Server, Settings, Ssl, Tenant, Timeouts, Tls,
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
        match environment.text("DATABASE_URL") {
            Ok(Some(url)) if url.starts_with("postgresql://") || url.starts_with("postgres://") => {
                self.database.dialect = Dialect::Postgres;
                faults.extend(rules::url_fault(&url).map(str::to_owned));
            }
            Ok(Some(_)) => {
                faults.push("DATABASE_URL: must be postgresql://USER:PASSWORD@HOST:PORT/NAME".to_owned());
            }
            Ok(None) => {}
            Err(error) => faults.push(error.to_string()),
        }
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

    /// The database that the settings name.
    pub fn source(&self, environment: &impl Environment) -> Result<Source, String> {
        let settings = &self.database;
        if let Ok(Some(url)) = environment.text("DATABASE_URL") {
            return Ok(Source::PostgresUrl(trusting(url, settings.ssl.root_cert_file.as_deref()).into()));
        }
        if settings.dialect == Dialect::Sqlite {
            return Ok(Source::Sqlite { path: settings.path.clone() });
        }
        let password = match &settings.password_file {
            Some(file) => Some(secret_text(file, "database.password_file")?),
            None => settings.password.clone(),
        };
        Ok(Source::Postgres {
            host: settings.host.clone(),
            port: settings.port,
            name: settings.name.clone(),
            username: settings.username.clone(),
            password,
            ssl_mode: settings.ssl.mode.clone(),
            root_cert_file: settings.ssl.root_cert_file.clone(),
        })
    }

    /// Limits of the connection pool.
    pub fn pool(&self) -> PoolSettings {
        let pool = self.database.pool;
        PoolSettings {
            max_connections: pool.max_connections,
            acquire_timeout: pool.acquire_timeout,
            max_lifetime: pool.conn_max_lifetime,
            idle_timeout: pool.conn_max_idle_time,
        }
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
        let mut read = Vec::new();
        for (index, KeySettings { id, file }) in keys.iter().enumerate() {
            let bytes = key(file, &format!("pull_secret.keys[{index}].file"))?;
            read.push(KeyBytes { id: id.clone(), bytes });
        }
        if read.is_empty() && self.database.dialect == Dialect::Sqlite {
            let key = embedded_key(&self.database.path)?;
            // A name that follows from the key distinguishes it from a later one.
            let digest = Sha256::digest(key.expose_secret());
            let id = digest.iter().take(4).fold("embedded-".to_owned(), |id, byte| format!("{id}{byte:02x}"));
            read.push(KeyBytes { id, bytes: key });
        }
        if read.is_empty() {
            return Ok(None);
        }
        let digest_key = digest_key_file.as_ref().map(|file| {
            let setting = "pull_secret.digest_key_file";
            let bytes = std::fs::read(file).map_err(|error| cannot_read(setting, file, &error))?;
            if bytes.len() < 32 {
                Err(format!("{setting}: must hold 32 bytes or more"))
            } else {
                Ok(SecretSlice::from(bytes))
            }
        });
        let keyring = sealed::keyring(read, digest_key.transpose()?);
        keyring.map(Some).ok_or_else(|| "pull_secret.keys: cannot be used".to_owned())
    }

    /// The bearer token that adds reading a pull secret.
    pub fn reader_token(&self) -> Result<Option<SecretString>, String> {
        let file = self.pull_secret.reader_token_file.as_ref();
        file.map(|file| secret_text(file, "pull_secret.reader_token_file")).transpose()
    }
}

fn cannot_read(setting: &str, file: &Path, error: &std::io::Error) -> String {
    format!("{setting}: {}", unreadable(&file.to_string_lossy(), error))
}

impl DatabaseSettings {
    /// Takes what files hold, as HyperFleet's chart mounts a Secret with them; returns every fault.
    fn read_files(&mut self) -> Vec<String> {
        let Self { host, host_file, port, port_file, name, name_file, username, username_file, .. } = self;
        let mut role = username.take().unwrap_or_default();
        let faults = [
            take(host, host_file.as_deref(), "database.host_file"),
            take(port, port_file.as_deref(), "database.port_file"),
            take(name, name_file.as_deref(), "database.name_file"),
            take(&mut role, username_file.as_deref(), "database.username_file"),
        ];
        *username = Some(role).filter(|role| !role.is_empty());
        faults.into_iter().filter_map(Result::err).collect()
    }
}

/// The URL with the file of authorities to trust, unless it names one itself.
fn trusting(url: String, authorities: Option<&Path>) -> String {
    let is_named = ["sslrootcert=", "ssl-root-cert=", "ssl-ca="].iter().any(|name| url.contains(name));
    let Some(path) = authorities.filter(|_| !is_named) else { return url };
    let separator = if url.contains('?') { '&' } else { '?' };
    let path: String = form_urlencoded::byte_serialize(path.as_os_str().as_encoded_bytes()).collect();
    format!("{url}{separator}sslrootcert={path}")
}

/// Replaces a value by that of a file, if one is given.
fn take<T: FromStr>(value: &mut T, file: Option<&Path>, setting: &str) -> Result<(), String> {
    let Some(file) = file else { return Ok(()) };
    let parsed = text(file, setting)?.parse();
    *value = parsed.map_err(|_repeats_it| format!("{setting}: {} holds no such value", file.display()))?;
    Ok(())
}

/// The text of a file without surrounding blanks.
fn text(file: &Path, setting: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| cannot_read(setting, file, &error))?;
    let text = text.trim();
    if text.is_empty() { Err(format!("{setting}: {} is empty", file.display())) } else { Ok(text.to_owned()) }
}

fn secret_text(file: &Path, setting: &str) -> Result<SecretString, String> {
    text(file, setting).map(SecretString::from)
}

fn key(file: &Path, setting: &str) -> Result<SecretSlice<u8>, String> {
    let bytes = std::fs::read(file).map_err(|error| cannot_read(setting, file, &error))?;
    if bytes.len() == 32 { Ok(bytes.into()) } else { Err(format!("{setting}: must hold exactly 32 bytes")) }
}

/// The key beside an embedded database: generated once, readable by its owner only.
fn embedded_key(database: &Path) -> Result<SecretSlice<u8>, String> {
    let mut name = database.as_os_str().to_owned();
    name.push(".key");
    let path = PathBuf::from(name);
    if !path.exists() {
        let bytes: [u8; 32] = rand::random();
        let made = daemon::file::create(&path, &bytes);
        made.map_err(|error| format!("database.path: the key beside it cannot be written: {}", error.kind()))?;
    }
    key(&path, "the key beside database.path")
}
