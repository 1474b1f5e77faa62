//! The shape of the configuration file.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

use crate::entity::Descriptor;
use crate::http::auth::Dimension;
use crate::http::jwt::IssuerSettings;

/// The settings as the file has them, every scalar given or defaulted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Settings {
    pub server: Server,
    pub database: DatabaseSettings,
    pub changes: Changes,
    #[serde(default)]
    pub pull_secret: PullSecret,
    pub logging: Logging,
    pub metrics: MetricsSettings,
    pub health: Health,
    #[serde(default)]
    pub entities: Option<Vec<Descriptor>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Server {
    pub host: String,
    pub port: u16,
    pub insecure: bool,
    pub openapi_schema_path: Option<PathBuf>,
    pub max_body: usize,
    pub timeouts: Timeouts,
    pub tls: Tls,
    pub jwt: Jwt,
    pub tenant: Tenant,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Timeouts {
    #[serde(deserialize_with = "duration")]
    pub read: Duration,
    #[serde(deserialize_with = "duration")]
    pub write: Duration,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Tls {
    pub enabled: bool,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Jwt {
    pub enabled: bool,
    #[serde(default)]
    pub configs: Vec<IssuerSettings>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Tenant {
    pub enabled: bool,
    pub system_header: Option<String>,
    #[serde(default)]
    pub dimensions: Vec<Dimension>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct DatabaseSettings {
    pub dialect: Dialect,
    pub path: PathBuf,
    pub host: String,
    pub port: u16,
    pub name: String,
    pub username: Option<String>,
    pub password: Option<SecretString>,
    pub password_file: Option<PathBuf>,
    pub ssl: Ssl,
    pub pool: Pool,
}

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// One file.
    Sqlite,
    /// A server.
    Postgres,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Ssl {
    pub mode: String,
    pub root_cert_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Pool {
    pub max_connections: u32,
    #[serde(deserialize_with = "duration")]
    pub conn_max_lifetime: Duration,
    #[serde(deserialize_with = "duration")]
    pub conn_max_idle_time: Duration,
    #[serde(deserialize_with = "duration")]
    pub acquire_timeout: Duration,
    #[serde(deserialize_with = "duration")]
    pub advisory_lock_timeout: Duration,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Changes {
    pub max_events: u32,
    #[serde(deserialize_with = "duration")]
    pub max_age: Duration,
    #[serde(deserialize_with = "duration")]
    pub bookmark_interval: Duration,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct PullSecret {
    #[serde(default)]
    pub keys: Vec<KeySettings>,
    pub digest_key_file: Option<PathBuf>,
    #[serde(default)]
    pub readers: Vec<String>,
    pub reader_token_file: Option<PathBuf>,
}

/// A key that pull secrets are encrypted with. The first of the list seals, all open.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySettings {
    /// The name under which what it has sealed refers to it.
    pub id: String,
    /// The file that holds its 32 bytes.
    pub file: PathBuf,
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
pub struct MetricsSettings {
    pub host: String,
    pub port: u16,
    #[serde(deserialize_with = "duration")]
    pub reconciliation_stuck_threshold: Duration,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Health {
    pub host: String,
    pub port: u16,
    #[serde(deserialize_with = "duration")]
    pub shutdown_timeout: Duration,
    #[serde(deserialize_with = "duration")]
    pub db_ping_timeout: Duration,
}

/// A duration is milliseconds by the time that it gets here.
fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}
