//! Settings of a component's database: which one, and how to connect to it. The keys are `database.…`; the variable
//! `DATABASE_URL` selects PostgreSQL.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use daemon::environment::Environment;
use daemon::host::is_loopback;
use daemon::settings::held::{secret_text, take};
use daemon::settings::{Kind, Row, Setting};
use secrecy::SecretString;
use serde::Deserialize;

use super::connect::{PoolSettings, SSL_MODE, Source, URL_VARIABLE};
use super::sql::Dialect;

/// The database. Its rows depend on the component: [`rows`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatabaseSettings {
    /// The kind of database.
    pub dialect: Dialect,
    /// File of the SQLite database.
    pub path: PathBuf,
    /// Host of PostgreSQL.
    pub host: String,
    /// File that holds the host.
    pub host_file: Option<PathBuf>,
    /// Port of PostgreSQL.
    pub port: u16,
    /// File that holds the port.
    pub port_file: Option<PathBuf>,
    /// Name of the database.
    pub name: String,
    /// File that holds the name.
    pub name_file: Option<PathBuf>,
    /// Role that connects.
    pub username: Option<String>,
    /// File that holds the name of the role.
    pub username_file: Option<PathBuf>,
    /// Password of the role.
    pub password: Option<SecretString>,
    /// File that holds the password.
    pub password_file: Option<PathBuf>,
    /// Encryption of connections.
    pub ssl: Ssl,
    /// Connections.
    pub pool: Pool,
}

/// Values of a component where none are given.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// File of the SQLite database.
    pub path: &'static str,
    /// Name of the database of PostgreSQL.
    pub name: &'static str,
}

daemon::settings! {
    /// Encryption of connections to PostgreSQL.
    pub struct Ssl {
        /// Encryption of connections: `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`
        pub mode: String = Row::at(SSL_MODE).flag("db-ssl-mode").default("prefer"),
        /// Certificate authorities to trust, PEM
        pub root_cert_file: Option<PathBuf> = Row::at("database.ssl.root_cert_file"),
    }
}

daemon::settings! {
    /// Connections to the database.
    #[derive(Copy)]
    pub struct Pool {
        /// Maximum number of open connections
        pub max_connections: u32 = Row::at("database.pool.max_connections").default("50").least("1"),
        /// Maximum age of a connection
        pub conn_max_lifetime: Duration = Row::at("database.pool.conn_max_lifetime").default("5m"),
        /// Maximum time that a connection stays idle
        pub conn_max_idle_time: Duration = Row::at("database.pool.conn_max_idle_time").default("1m"),
        /// Maximum time that a request waits for a connection before it is answered with 503
        pub acquire_timeout: Duration = Row::at("database.pool.acquire_timeout").default("3s"),
        /// Maximum time that a migration waits for another one
        pub advisory_lock_timeout: Duration = Row::at("database.pool.advisory_lock_timeout").default("5m"),
    }
}

impl Setting for DatabaseSettings {
    // Its rows depend on the component.
    const KIND: Kind = Kind::Section(&[]);
}

/// Returns the rows of a component's [`DatabaseSettings`], of which it makes the row of its field:
///
/// ```
/// use daemon::settings::{Kind, Row};
/// use database::settings::{DatabaseSettings, Defaults, rows};
///
/// const ROWS: &[Row] = &rows(Defaults { path: "notes.db", name: "notes" });
///
/// daemon::settings! {
///     /// Settings of a component.
///     pub struct Settings {
///         /// The database
///         pub database: DatabaseSettings = Row::section().of(Kind::Section(ROWS)),
///     }
/// }
/// ```
pub const fn rows(defaults: Defaults) -> [Row; 14] {
    const PATH: Kind = <PathBuf as Setting>::KIND;
    [
        Row::at("database.dialect")
            .default("sqlite")
            .of(<Dialect as Setting>::KIND)
            .help("Database: a SQLite file or a PostgreSQL server; `DATABASE_URL` selects PostgreSQL"),
        Row::at("database.path")
            .flag("db-path")
            .default(defaults.path)
            .of(PATH)
            .help("File of the SQLite database; created if it does not exist"),
        Row::at("database.host").flag("db-host").default("localhost").help("Host of PostgreSQL"),
        Row::at("database.host_file").of(PATH).help("File that holds the host; it takes precedence"),
        Row::at("database.port").flag("db-port").default("5432").of(<u16 as Setting>::KIND).help("Port of PostgreSQL"),
        Row::at("database.port_file").of(PATH).help("File that holds the port; it takes precedence"),
        Row::at("database.name").flag("db-name").default(defaults.name).help("Name of the database"),
        Row::at("database.name_file").of(PATH).help("File that holds the name of the database; it takes precedence"),
        Row::at("database.username").flag("db-username").help("Role that connects to the database"),
        Row::at("database.username_file").of(PATH).help("File that holds the name of the role; it takes precedence"),
        Row::at("database.password").of(<SecretString as Setting>::KIND).help("Password of the role"),
        Row::at("database.password_file")
            .flag("db-password-file")
            .of(PATH)
            .help("File that holds the password of the role"),
        Row::section().of(<Ssl as Setting>::KIND),
        Row::section().of(<Pool as Setting>::KIND),
    ]
}

// === impl DatabaseSettings ===

impl DatabaseSettings {
    /// Takes what files hold, as HyperFleet's chart mounts a Secret with them; returns every fault, as a line for a message.
    pub fn read_files(&mut self) -> Vec<String> {
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

    /// Returns every contradiction between the settings, as a line for a message.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.password.is_some() && self.password_file.is_some() {
            faults.push("database.password: give either it or database.password_file".to_owned());
        }
        if self.dialect == Dialect::Postgres && !is_loopback(&self.host) && !is_decided(&self.ssl.mode) {
            faults.push(format!(
                "{SSL_MODE}: whether the connection is encrypted would be up to the network; set verify-full, or another \
                 mode than allow and prefer"
            ));
        }
        faults
    }

    /// Selects PostgreSQL if the environment has a URL; returns its fault, as a line for a message.
    pub fn take_url(&mut self, environment: &impl Environment) -> Option<String> {
        match environment.text(URL_VARIABLE) {
            Ok(Some(url)) if url.starts_with("postgresql://") || url.starts_with("postgres://") => {
                self.dialect = Dialect::Postgres;
                url_fault(&url)
            }
            Ok(Some(_)) => Some(format!("{URL_VARIABLE}: must be postgresql://USER:PASSWORD@HOST:PORT/NAME")),
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        }
    }

    /// Returns the database to open.
    ///
    /// # Errors
    ///
    /// A line for a message, if the file of the password cannot be read.
    pub fn source(&self, environment: &impl Environment) -> Result<Source, String> {
        if let Ok(Some(url)) = environment.text(URL_VARIABLE) {
            return Ok(Source::PostgresUrl(trusting(url, self.ssl.root_cert_file.as_deref()).into()));
        }
        if self.dialect == Dialect::Sqlite {
            return Ok(Source::Sqlite { path: self.path.clone() });
        }
        let password = match &self.password_file {
            Some(file) => Some(secret_text(file, "database.password_file")?),
            None => self.password.clone(),
        };
        Ok(Source::Postgres {
            host: self.host.clone(),
            port: self.port,
            name: self.name.clone(),
            username: self.username.clone(),
            password,
            ssl_mode: self.ssl.mode.clone(),
            root_cert_file: self.ssl.root_cert_file.clone(),
        })
    }

    /// Returns the file of a SQLite database.
    pub fn file(&self) -> Option<&Path> {
        (self.dialect == Dialect::Sqlite).then_some(self.path.as_path())
    }
}

impl From<Pool> for PoolSettings {
    fn from(pool: Pool) -> Self {
        Self {
            max_connections: pool.max_connections,
            acquire_timeout: pool.acquire_timeout,
            max_lifetime: pool.conn_max_lifetime,
            idle_timeout: pool.conn_max_idle_time,
        }
    }
}

/// Returns the URL with the file of authorities to trust, unless it names one itself.
fn trusting(url: String, authorities: Option<&Path>) -> String {
    let is_named = ["sslrootcert=", "ssl-root-cert=", "ssl-ca="].iter().any(|name| url.contains(name));
    let Some(path) = authorities.filter(|_| !is_named) else { return url };
    let separator = if url.contains('?') { '&' } else { '?' };
    let path: String = form_urlencoded::byte_serialize(path.as_os_str().as_encoded_bytes()).collect();
    format!("{url}{separator}sslrootcert={path}")
}

/// Checks that a URL of PostgreSQL says how the connection to another machine is encrypted.
fn url_fault(url: &str) -> Option<String> {
    let (rest, parameters) = url.split_once('?').unwrap_or((url, ""));
    let authority = rest.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    let address = authority.rsplit('@').next().unwrap_or_default();
    let host = match address.strip_prefix('[') {
        Some(ip) => ip.split(']').next().unwrap_or_default(),
        None => address.split(':').next().unwrap_or_default(),
    };
    let mode = form_urlencoded::parse(parameters.as_bytes()).find(|(name, _)| name == "sslmode" || name == "ssl-mode");
    let is_safe = host.is_empty() || is_loopback(host) || mode.is_some_and(|(_, mode)| is_decided(&mode));
    (!is_safe).then(|| {
        format!(
            "{URL_VARIABLE}: does not say how the connection is encrypted: append ?sslmode=verify-full, or another mode than \
             allow and prefer"
        )
    })
}

/// False for the modes with which the network decides whether a connection is encrypted.
fn is_decided(mode: &str) -> bool {
    !matches!(mode, "allow" | "prefer")
}
