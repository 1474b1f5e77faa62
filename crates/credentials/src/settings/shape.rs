//! Declares the settings: each with its key, flag, type, default, bounds and sentence.

use std::path::PathBuf;
use std::time::Duration;

use daemon::settings::common::{self, Address, Log};
use daemon::settings::traces::Tracing;
use daemon::settings::{Kind, Row};
use database::sealed::KeySettings;
use database::settings::{DatabaseSettings, Defaults, rows};

use super::registry::RegistrySettings;

const DATABASE: &[Row] = &rows(Defaults { path: "credentials.db", name: "credentials" });

daemon::settings! {
    /// Settings of the credentials service, every one given or defaulted.
    pub struct Settings {
        /// Clients
        pub clients: Clients,
        /// The database of the ledger
        pub database: DatabaseSettings = Row::section().of(Kind::Section(DATABASE)),
        /// Keys that seal passwords in the ledger: the first seals, all open
        #[serde(default)]
        pub keys: Vec<KeySettings> = Row::at("keys").unset("generated beside a SQLite database"),
        /// Registries whose accounts are made for clusters
        #[serde(default)]
        pub registries: Vec<RegistrySettings> = Row::at("registries").unset("required"),
        /// The clusters
        pub clusters: ClusterSettings,
        /// The log
        pub log: Log,
        /// Traces
        pub tracing: Tracing,
        /// Probes
        pub health: Address = common::HEALTH,
        /// Metrics
        pub metrics: Address = common::METRICS,
    }
}

daemon::settings! {
    /// Clients of the credentials service.
    pub struct Clients {
        /// The HyperFleet API
        pub hyperfleet_api: Api,
    }
}

daemon::settings! {
    /// The client of the HyperFleet API.
    pub struct Api {
        /// Address of the HyperFleet API: `http://HOST:PORT`
        pub base_url: Option<String> =
            Row::at("clients.hyperfleet_api.base_url").flag("hyperfleet-api-base-url").required(),
        /// Maximum time of a request
        pub timeout: Duration =
            Row::at("clients.hyperfleet_api.timeout").flag("hyperfleet-api-timeout").default("10s"),
        /// Certificate authorities to trust, PEM
        pub ca_file: Option<PathBuf> = Row::at("clients.hyperfleet_api.ca_file"),
        /// The one host, beside this machine, to which the token may be sent over plain HTTP
        pub plain_http_host: Option<String> = Row::at("clients.hyperfleet_api.plain_http_host"),
        /// Authentication
        pub auth: Auth,
    }
}

daemon::settings! {
    /// Authentication at the HyperFleet API.
    pub struct Auth {
        /// File with the bearer token of a caller that may read and write pull secrets
        pub token_path: Option<PathBuf> = Row::at("clients.hyperfleet_api.auth.token_path"),
        /// Time after which the file with the token is read again
        pub token_cache_ttl: Duration = Row::at("clients.hyperfleet_api.auth.token_cache_ttl").default("30s"),
    }
}

daemon::settings! {
    /// The clusters that get credentials.
    #[derive(Copy)]
    pub struct ClusterSettings {
        /// Interval of complete lists beside the change stream
        pub resync: Duration = Row::at("clusters.resync").default("5m").least("10s"),
        /// Interval of lists where the API has no change stream
        pub poll_interval: Duration = Row::at("clusters.poll_interval").default("5s").least("1s"),
    }
}
