//! The table of the API's settings; `docs/reference/api-settings.md` and `--help` are generated from it.

use daemon::settings::{Inert, Section as _, Table};
use database::connect::URL_VARIABLE;

use super::shape::Settings;

/// All settings of the API.
pub const TABLE: Table = Table {
    variable: |path| daemon::settings::variable("HYPERFLEET", path),
    rows: Settings::ROWS,
    retired: RETIRED,
    families: &["HYPERFLEET_"],
    further: &["HYPERFLEET_CONFIG", URL_VARIABLE],
};

/// Keys of older versions.
const RETIRED: &[(&str, &str)] = &[
    ("adapters", "name the adapters in entities[].required_adapters"),
    ("pull_secret.readers", "give the identity reads_pull_secrets in authorization.grants"),
    ("server.insecure", "authenticate callers (server.jwt.enabled); without authentication only loopback is served"),
];

/// Keys of HyperFleet's own server that are accepted and have no effect here.
pub const INERT: &Inert = &[
    ("server.hostname", "links are relative to the server"),
    ("database.debug", "set log.level to debug instead"),
    ("database.pool.max_idle_connections", "database.pool.conn_max_idle_time closes idle connections"),
    ("database.pool.request_timeout", "server.timeouts.write bounds requests"),
    ("database.pool.conn_retry_attempts", "the API retries until the database can be reached"),
    ("database.pool.conn_retry_interval", "the API retries until the database can be reached"),
    ("logging.output", "the log is written to stdout"),
    ("logging.masking", "no credential is logged"),
    ("logging.otel", "tracing.endpoint switches traces on"),
    ("metrics.tls", "metrics are served over plain HTTP"),
    ("metrics.label_metrics_inclusion_duration", "only resources that wait now are counted"),
    ("health.tls", "probes are served over plain HTTP"),
];
