//! Every setting that a flag or a variable can give; `docs/reference/api-settings.md` is made from it.

use daemon::settings::{Kind, Row, Table};

/// All settings of the API.
pub const TABLE: Table = Table { variable, rows: SETTINGS, retired: RETIRED };

/// The variable of a setting.
fn variable(path: &str) -> String {
    daemon::settings::variable("HYPERFLEET", path)
}

/// Keys of HyperFleet's own server that have no effect here.
const RETIRED: &[(&str, &str)] = &[
    ("adapters", "name the adapters in entities[].required_adapters"),
    ("server.hostname", "links are relative to the server"),
    ("database.debug", "set logging.level to debug"),
    ("database.pool.max_idle_connections", "set database.pool.conn_max_idle_time"),
    ("database.pool.request_timeout", "set server.timeouts.write"),
    ("database.pool.conn_retry_attempts", "the database is waited for as long as it takes"),
    ("database.pool.conn_retry_interval", "the database is waited for as long as it takes"),
    ("logging.output", "the log is on stdout"),
    ("logging.masking", "nothing is logged that would have to be masked"),
    ("logging.otel", "no traces are exported yet; traceparent headers are logged"),
    ("tracing", "no traces are exported yet; traceparent headers are logged"),
    ("metrics.tls", "metrics are served in plain HTTP"),
    ("metrics.label_metrics_inclusion_duration", "what waits now is counted, and nothing else"),
    ("health.tls", "probes are answered in plain HTTP"),
];

/// All rows. What is a list (`entities`, `server.jwt.configs`, `server.tenant.dimensions`, `pull_secret.keys`,
/// `pull_secret.readers`) is in the file only.
const SETTINGS: &[Row] = &[
    Row::new("server.host", Some("server-host"), Kind::Text, "localhost", "Where the API listens"),
    Row::new("server.port", Some("server-port"), Kind::Number, "8000", "On which port; 0 takes a free one"),
    Row::new(
        "server.insecure",
        Some("insecure"),
        Kind::Switch,
        "false",
        "Serve without authentication on other addresses than loopback",
    ),
    Row::new(
        "server.openapi_schema_path",
        Some("server-openapi-schema-path"),
        Kind::Path,
        "",
        "The OpenAPI document whose components specs must satisfy (`entities[].spec_schema_name`)",
    ),
    Row::new("server.max_body", None, Kind::Number, "1048576", "The largest body of a request, in bytes"),
    Row::new(
        "server.timeouts.read",
        None,
        Kind::Duration,
        "5s",
        "A client has so long to send a request's head, and again for its body",
    ),
    Row::new(
        "server.timeouts.write",
        None,
        Kind::Duration,
        "30s",
        "A request is answered within this time; streams are not bounded",
    ),
    Row::new("server.tls.enabled", None, Kind::Switch, "false", "Speak HTTPS"),
    Row::new("server.tls.cert_file", None, Kind::Path, "", "The certificate and its chain, PEM"),
    Row::new("server.tls.key_file", None, Kind::Path, "", "The certificate's key, PEM"),
    Row::new(
        "server.jwt.enabled",
        Some("server-jwt-enabled"),
        Kind::Switch,
        "false",
        "Ask for a token of one of `server.jwt.configs`",
    ),
    Row::new(
        "server.tenant.enabled",
        Some("server-tenant-enabled"),
        Kind::Switch,
        "false",
        "Take a resource's tenancy from headers (`server.tenant.dimensions`)",
    ),
    Row::new(
        "server.tenant.system_header",
        None,
        Kind::Text,
        "",
        "A header whose value `true` marks callers that may only report",
    ),
    Row::new(
        "database.dialect",
        None,
        Kind::Text,
        "sqlite",
        "`sqlite` or `postgres`; `DATABASE_URL` decides by itself",
    ),
    Row::new(
        "database.path",
        Some("db-path"),
        Kind::Path,
        "hyperfleet.db",
        "The file of the SQLite database; it is made if it is not there",
    ),
    Row::new("database.host", Some("db-host"), Kind::Text, "localhost", "Where PostgreSQL listens"),
    Row::new("database.port", Some("db-port"), Kind::Number, "5432", "On which port"),
    Row::new("database.name", Some("db-name"), Kind::Text, "hyperfleet", "The database's name"),
    Row::new("database.username", Some("db-username"), Kind::Text, "", "The role"),
    Row::new("database.password", None, Kind::Secret, "", "The role's password"),
    Row::new("database.password_file", Some("db-password-file"), Kind::Path, "", "The file that holds it"),
    Row::new(
        "database.ssl.mode",
        Some("db-ssl-mode"),
        Kind::Text,
        "prefer",
        "`disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`",
    ),
    Row::new("database.ssl.root_cert_file", None, Kind::Path, "", "The certificates to trust, PEM"),
    Row::new("database.pool.max_connections", None, Kind::Number, "50", "How many connections are open at once"),
    Row::new("database.pool.conn_max_lifetime", None, Kind::Duration, "5m", "None lives longer"),
    Row::new("database.pool.conn_max_idle_time", None, Kind::Duration, "1m", "None idles longer"),
    Row::new(
        "database.pool.acquire_timeout",
        None,
        Kind::Duration,
        "3s",
        "So long a request waits for a connection before it is answered with 503",
    ),
    Row::new(
        "database.pool.advisory_lock_timeout",
        None,
        Kind::Duration,
        "5m",
        "So long a migration waits for another one",
    ),
    Row::new("changes.max_events", None, Kind::Number, "20000", "So many events of the change stream are kept"),
    Row::new("changes.max_age", None, Kind::Duration, "1h", "For so long"),
    Row::new(
        "changes.bookmark_interval",
        None,
        Kind::Duration,
        "15s",
        "A change stream says something at least this often; at most 30 s",
    ),
    Row::new(
        "pull_secret.digest_key_file",
        None,
        Kind::Path,
        "",
        "The fleet's digest key, 32 bytes or more; without it one is derived from the first of `pull_secret.keys`",
    ),
    Row::new(
        "pull_secret.reader_token_file",
        None,
        Kind::Path,
        "",
        "A bearer token that may read pull secrets, for this machine's own parts",
    ),
    Row::new("logging.level", Some("log-level"), Kind::Text, "info", "`debug`, `info`, `warn` or `error`"),
    Row::new("logging.format", Some("log-format"), Kind::Text, "json", "`json` or `text`"),
    Row::new("metrics.host", Some("metrics-host"), Kind::Text, "localhost", "Where metrics are served"),
    Row::new("metrics.port", Some("metrics-port"), Kind::Number, "9090", "On which port; 0 takes a free one"),
    Row::new(
        "metrics.reconciliation_stuck_threshold",
        None,
        Kind::Duration,
        "10m",
        "A resource that is not reconciled for longer counts as stuck",
    ),
    Row::new("health.host", Some("health-host"), Kind::Text, "localhost", "Where probes are answered"),
    Row::new("health.port", Some("health-port"), Kind::Number, "8080", "On which port; 0 takes a free one"),
    Row::new(
        "health.shutdown_timeout",
        None,
        Kind::Duration,
        "20s",
        "So long open requests may take to end at a shutdown; 1s to 120s",
    ),
    Row::new("health.db_ping_timeout", None, Kind::Duration, "2s", "So long the database may take to answer a probe"),
];
