//! Declares the settings: each with its key, flag, type, default, bounds and sentence.

use std::time::Duration;

use daemon::settings::common::{self, Address, Log};
use daemon::settings::traces::Tracing;
use daemon::settings::{Kind, Row};
use database::sealed::KeySettings;
use database::settings::{DatabaseSettings, Defaults, rows};
use hyperfleet_client::Api;

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
    /// The clusters that get credentials.
    #[derive(Copy)]
    pub struct ClusterSettings {
        /// Interval of complete lists beside the change stream
        pub resync: Duration = Row::at("clusters.resync").default("5m").least("10s"),
        /// Interval of lists where the API has no change stream
        pub poll_interval: Duration = Row::at("clusters.poll_interval").default("5s").least("1s"),
    }
}
