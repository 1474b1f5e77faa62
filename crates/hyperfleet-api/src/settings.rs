//! The API's settings: read, checked, and turned into parts.

mod shape;
pub mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::entity::Registry;
use crate::http::auth::Tenancy;
use crate::sealed::Keyring;
use crate::store::{PoolSettings, Retention, Source};
use daemon::environment::Environment;
use daemon::settings::Given;
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};

pub use shape::{
    Changes, DatabaseSettings, Dialect, Health, Jwt, KeySettings, Logging, MetricsSettings, Pool, PullSecret, Server,
    Settings, Ssl, Tenant, Timeouts, Tls,
};

/// Where the configuration is looked for when nothing says where it is.
pub const SEARCHED: [&str; 2] = ["/etc/hyperfleet/config.yaml", "./configs/config.yaml"];

// === impl Settings ===

impl Settings {
    /// The settings of flags, environment and file; or everything that is wrong with them.
    pub fn load(flags: BTreeMap<&'static str, String>, environment: &impl Environment) -> Result<Self, Vec<String>> {
        let file = configuration(flags.get("config").map(String::as_str), environment).map_err(|fault| vec![fault])?;
        let given = Given { file, flags };
        let mut settings: Self = daemon::settings::load(&table::TABLE, environment, &given)?;
        match environment.text("DATABASE_URL") {
            Ok(Some(_)) => settings.database.dialect = Dialect::Postgres,
            Ok(None) => {}
            Err(error) => return Err(vec![error.to_string()]),
        }
        let faults = settings.faults();
        if faults.is_empty() { Ok(settings) } else { Err(faults) }
    }

    /// What holds together in itself but not with the rest.
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut check = |right: bool, fault: &str| {
            if !right {
                faults.push(fault.to_owned());
            }
        };
        let Self { server, database, changes, health, pull_secret, .. } = self;
        check(
            server.jwt.enabled || server.insecure || is_loopback(&server.host),
            "server.host: without authentication only loopback is served; set server.jwt.enabled, or server.insecure to \
             allow everybody everything",
        );
        check(!server.insecure || !server.jwt.enabled, "server.insecure: has no effect while server.jwt.enabled");
        check(
            server.jwt.enabled || server.jwt.configs.is_empty(),
            "server.jwt.configs: has no effect without server.jwt.enabled",
        );
        check(
            server.tenant.enabled || server.tenant.dimensions.is_empty(),
            "server.tenant.dimensions: has no effect without server.tenant.enabled",
        );
        check(
            !server.tenant.enabled || !server.tenant.dimensions.is_empty(),
            "server.tenant.enabled: names no dimension in server.tenant.dimensions",
        );
        check(
            server.tls.enabled == (server.tls.cert_file.is_some() && server.tls.key_file.is_some()),
            "server.tls: enabled, cert_file and key_file belong together",
        );
        let header_name = |name: &str| http::HeaderName::try_from(name).is_ok();
        check(
            server.tenant.dimensions.iter().all(|one| header_name(&one.header)),
            "server.tenant.dimensions: a header is not the name of one",
        );
        check(
            server.tenant.system_header.as_deref().is_none_or(header_name),
            "server.tenant.system_header: is not the name of a header",
        );
        check((1..=16 << 20).contains(&server.max_body), "server.max_body: must be 1 to 16777216");
        check(database.pool.max_connections > 0, "database.pool.max_connections: must be at least 1");
        check(
            database.password.is_none() || database.password_file.is_none(),
            "database.password: exclude each other with database.password_file",
        );
        check(changes.max_events > 0, "changes.max_events: must be at least 1");
        check(
            (Duration::from_millis(100)..=Duration::from_secs(30)).contains(&changes.bookmark_interval),
            "changes.bookmark_interval: must be 100ms to 30s",
        );
        check(
            (Duration::from_secs(1)..=Duration::from_mins(2)).contains(&health.shutdown_timeout),
            "health.shutdown_timeout: must be 1s to 120s",
        );
        check(
            pull_secret.readers.is_empty() || server.jwt.enabled,
            "pull_secret.readers: has no effect without server.jwt.enabled",
        );
        faults
    }

    /// The kinds to serve: HyperFleet's own set where the file names none.
    pub fn registry(&self) -> Result<Registry, Vec<String>> {
        self.entities.clone().map_or_else(|| Ok(Registry::standard()), Registry::new)
    }

    /// Which database.
    pub fn source(&self, environment: &impl Environment) -> Result<Source, String> {
        if let Ok(Some(url)) = environment.text("DATABASE_URL") {
            return Ok(Source::PostgresUrl(url.into()));
        }
        let settings = &self.database;
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

    /// How many connections.
    pub fn pool(&self) -> PoolSettings {
        let pool = self.database.pool;
        PoolSettings {
            max_connections: pool.max_connections,
            acquire_timeout: pool.acquire_timeout,
            max_lifetime: pool.conn_max_lifetime,
            idle_timeout: pool.conn_max_idle_time,
        }
    }

    /// How much of the past the change stream keeps.
    pub fn retention(&self) -> Retention {
        Retention { events: i64::from(self.changes.max_events), age: self.changes.max_age }
    }

    /// Whose resources a caller creates.
    pub fn tenancy(&self) -> Option<Tenancy> {
        let Tenant { enabled, system_header, dimensions } = self.server.tenant.clone();
        enabled.then_some(Tenancy { system_header, dimensions })
    }

    /// The keys of pull secrets. With the embedded database and none configured, one is made beside it.
    pub fn keyring(&self) -> Result<Option<Keyring>, String> {
        let PullSecret { keys, digest_key_file, .. } = &self.pull_secret;
        let mut read = Vec::new();
        for (index, KeySettings { id, file }) in keys.iter().enumerate() {
            read.push((id.clone(), key(file, &format!("pull_secret.keys[{index}].file"))?));
        }
        if read.is_empty() && self.database.dialect == Dialect::Sqlite {
            read.push(("embedded".to_owned(), embedded_key(&self.database.path)?));
        }
        if read.is_empty() {
            return Ok(None);
        }
        let digest_key = digest_key_file.as_ref().map(|file| {
            let bytes = std::fs::read(file).map_err(|_error| "pull_secret.digest_key_file: cannot be read")?;
            if bytes.len() < 32 {
                Err("pull_secret.digest_key_file: must hold 32 bytes or more")
            } else {
                Ok(SecretSlice::from(bytes))
            }
        });
        let keyring = Keyring::new(read, digest_key.transpose()?);
        keyring.map(Some).ok_or_else(|| "pull_secret.keys: cannot be used".to_owned())
    }

    /// The token that may read pull secrets.
    pub fn reader_token(&self) -> Result<Option<SecretString>, String> {
        let file = self.pull_secret.reader_token_file.as_ref();
        file.map(|file| secret_text(file, "pull_secret.reader_token_file")).transpose()
    }
}

/// The text of the configuration file, wherever it is.
fn configuration(flag: Option<&str>, environment: &impl Environment) -> Result<Option<String>, String> {
    let variable = environment.text("HYPERFLEET_CONFIG").map_err(|error| error.to_string())?;
    let flag = flag.map(|path| ("--config", path.to_owned()));
    let named = flag.or_else(|| variable.map(|path| ("HYPERFLEET_CONFIG", path)));
    if let Some((origin, path)) = named {
        return std::fs::read_to_string(path)
            .map(Some)
            .map_err(|error| format!("{origin}: cannot be read: {}", error.kind()));
    }
    for path in SEARCHED {
        match std::fs::read_to_string(path) {
            Ok(text) => return Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{path}: cannot be read: {}", error.kind())),
        }
    }
    Ok(None)
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

fn secret_text(file: &Path, setting: &str) -> Result<SecretString, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{setting}: cannot be read: {}", error.kind()))?;
    let text = SecretString::from(text.trim().to_owned());
    if text.expose_secret().is_empty() { Err(format!("{setting}: is empty")) } else { Ok(text) }
}

fn key(file: &Path, setting: &str) -> Result<SecretSlice<u8>, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{setting}: cannot be read: {}", error.kind()))?;
    if bytes.len() == 32 { Ok(bytes.into()) } else { Err(format!("{setting}: must hold exactly 32 bytes")) }
}

/// The key beside an embedded database: made once, readable by its owner only.
fn embedded_key(database: &Path) -> Result<SecretSlice<u8>, String> {
    let mut name = database.as_os_str().to_owned();
    name.push(".key");
    let path = PathBuf::from(name);
    if !path.exists() {
        let bytes: [u8; 32] = rand::random();
        let failed = |error: daemon::file::ReplaceError| {
            format!("database.path: the key beside it cannot be written: {}", error.kind())
        };
        daemon::file::replace(&path, &bytes).map_err(failed)?;
    }
    key(&path, "the key beside database.path")
}
