//! Declares the API's settings: each with its key, flag, type, default, bounds and sentence.

use std::path::PathBuf;
use std::time::Duration;

use daemon::settings::common::{self, Log};
use daemon::settings::traces::Tracing;
use daemon::settings::{Kind, Row, Setting};
use database::sealed::KeySettings;
use database::settings::{DatabaseSettings, Defaults, rows};

use crate::authorization::GrantSettings;
use crate::entity::Descriptor;
use crate::http::jwt::IssuerSettings;
use crate::http::tenant::Dimension;

const DATABASE: &[Row] = &rows(Defaults { path: "hyperfleet.db", name: "hyperfleet" });

daemon::settings! {
    /// Settings of the API, every one given or defaulted.
    pub struct Settings {
        /// The API's listener
        pub server: Server,
        /// The database
        pub database: DatabaseSettings = Row::section().of(Kind::Section(DATABASE)),
        /// The change stream
        pub changes: Changes,
        /// Tombstones of forced deletions
        pub tombstones: Tombstones,
        /// Permissions of callers
        #[serde(default)]
        pub authorization: Authorization,
        /// Encryption of pull secrets
        pub pull_secret: PullSecret,
        /// The log
        pub log: Log,
        /// Traces
        pub tracing: Tracing,
        /// The metrics
        pub metrics: MetricsSettings,
        /// Probes and shutdown
        pub health: Health,
        /// Kinds of resources that are served; without it HyperFleet's own
        #[serde(default)]
        pub entities: Option<Vec<Descriptor>> = Row::at("entities"),
        /// Settings that are given and have no effect
        #[serde(skip)]
        pub notes: Notes,
    }
}

/// Settings that are given and have no effect, each as a line for the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes(pub Vec<String>);

impl Setting for Notes {
    const KIND: Kind = Kind::Section(&[]);
}

daemon::settings! {
    /// The API's listener.
    pub struct Server {
        /// Host name or IP address that the API listens on
        pub host: String = Row::at("server.host").flag("server-host").default("localhost"),
        /// Port that the API listens on; 0 takes a free one
        pub port: u16 = Row::at("server.port").flag("server-port").default("8000"),
        /// OpenAPI document whose components specs are validated against (`entities[].spec_schema_name`)
        pub openapi_schema_path: Option<PathBuf> = Row::at("server.openapi_schema_path")
            .flag("server-openapi-schema-path")
            .unset("`openapi/openapi.yaml` where it exists"),
        /// Maximum size of a request body, in bytes
        pub max_body: usize = Row::at("server.max_body").default("1048576").within("1", "16777216"),
        /// Time-outs
        pub timeouts: Timeouts,
        /// The identity to serve under
        pub tls: Tls,
        /// Addresses or networks of the proxies whose headers about the caller are trusted
        #[serde(default)]
        pub proxies: Vec<String> = Row::at("server.proxies"),
        /// Authentication
        pub jwt: Jwt,
        /// Tenancy
        pub tenant: Tenant,
    }
}

daemon::settings! {
    /// Time-outs of the API's listener.
    #[derive(Copy)]
    pub struct Timeouts {
        /// Maximum time for a client to send the head of a request, and again for its body
        pub read: Duration = Row::at("server.timeouts.read").default("5s"),
        /// Maximum time until a request is answered; streams are not bounded
        pub write: Duration = Row::at("server.timeouts.write").default("30s"),
    }
}

daemon::settings! {
    /// The identity that the API serves under.
    pub struct Tls {
        /// Serve HTTPS
        pub enabled: bool = Row::at("server.tls.enabled").default("false"),
        /// Certificate chain, PEM
        pub cert_file: Option<PathBuf> = Row::at("server.tls.cert_file"),
        /// Private key of the certificate, PEM
        pub key_file: Option<PathBuf> = Row::at("server.tls.key_file"),
    }
}

daemon::settings! {
    /// Authentication by tokens.
    pub struct Jwt {
        /// Require a token of one of `server.jwt.configs`
        pub enabled: bool = Row::at("server.jwt.enabled").flag("server-jwt-enabled").default("false"),
        /// Issuers whose tokens are accepted
        #[serde(default)]
        pub configs: Vec<IssuerSettings> = Row::at("server.jwt.configs"),
    }
}

daemon::settings! {
    /// Tenancy of resources.
    pub struct Tenant {
        /// Isolate tenants: a caller without a grant with `all_tenants` reaches only resources of the tenancy in its headers (`server.tenant.dimensions`)
        pub enabled: bool = Row::at("server.tenant.enabled").flag("server-tenant-enabled").default("false"),
        /// Header whose value `true` marks callers that may only report
        pub system_header: Option<String> = Row::at("server.tenant.system_header"),
        /// Headers that name the tenant, and the members of `tenancy` that they become
        #[serde(default)]
        pub dimensions: Vec<Dimension> = Row::at("server.tenant.dimensions"),
    }
}

daemon::settings! {
    /// The change stream.
    #[derive(Copy)]
    pub struct Changes {
        /// Maximum number of events that the change stream retains
        pub max_events: u32 = Row::at("changes.max_events").default("20000").least("1"),
        /// Maximum age of events that the change stream retains
        pub max_age: Duration = Row::at("changes.max_age").default("1h"),
        /// Maximum number of open change streams; more are answered with 503
        pub max_streams: u32 = Row::at("changes.max_streams").default("1000").least("1"),
        /// Maximum number of open change streams of one authenticated identity
        pub max_streams_per_identity: u32 = Row::at("changes.max_streams_per_identity").default("50").least("1"),
        /// Maximum time for the reader of a change stream to take the next lines; then the stream ends
        pub stall_timeout: Duration = Row::at("changes.stall_timeout").default("30s").least("100ms"),
        /// Maximum time between two lines of a change stream
        pub bookmark_interval: Duration = Row::at("changes.bookmark_interval").default("15s").within("100ms", "30s"),
    }
}

daemon::settings! {
    /// Tombstones of forced deletions.
    #[derive(Copy)]
    pub struct Tombstones {
        /// Maximum time that a tombstone is kept whose copies are not swept
        pub retention: Duration = Row::at("tombstones.retention").default("2160h"),
    }
}

daemon::settings! {
    /// Permissions of callers.
    #[derive(Default)]
    pub struct Authorization {
        /// Grants: the operations that each identity may carry out; what none allows is denied
        #[serde(default)]
        pub grants: Vec<GrantSettings> = Row::at("authorization.grants"),
    }
}

daemon::settings! {
    /// Encryption of pull secrets.
    pub struct PullSecret {
        /// Encryption keys: the first encrypts, all decrypt
        #[serde(default)]
        pub keys: Vec<KeySettings> = Row::at("pull_secret.keys"),
        /// File with the fleet's digest key, 32 bytes or more; without it one is derived from the first of
        /// `pull_secret.keys`
        pub digest_key_file: Option<PathBuf> = Row::at("pull_secret.digest_key_file"),
        /// File with a bearer token that adds reading a pull secret where authentication is off, for daemons of the same
        /// machine
        pub reader_token_file: Option<PathBuf> = Row::at("pull_secret.reader_token_file"),
    }
}

daemon::settings! {
    /// The metrics.
    pub struct MetricsSettings {
        /// Host name or IP address that `/metrics` is served on
        pub host: String = common::METRICS_HOST,
        /// Port that `/metrics` is served on; 0 takes a free one
        pub port: u16 = common::METRICS_PORT,
        /// Time after which a resource that is not reconciled counts as stuck
        pub reconciliation_stuck_threshold: Duration = Row::at("metrics.reconciliation_stuck_threshold").default("10m"),
    }
}

daemon::settings! {
    /// Probes and shutdown.
    pub struct Health {
        /// Host name or IP address that probes (`/healthz`, `/readyz`) are served on
        pub host: String = common::HEALTH_HOST,
        /// Port that probes are served on; 0 takes a free one
        pub port: u16 = common::HEALTH_PORT,
        /// Maximum time for open requests to finish at a shutdown
        pub shutdown_timeout: Duration = Row::at("health.shutdown_timeout").default("20s").within("1s", "120s"),
        /// Maximum time for the database to answer a probe
        pub db_ping_timeout: Duration = Row::at("health.db_ping_timeout").default("2s"),
    }
}
