//! Declares the settings: each with its key, flag, type, default, bounds and sentence.

use std::path::PathBuf;
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
        /// The HTTP API over the ledger
        pub server: ServerSettings,
        /// AMS, which clusters leave
        pub ams: Ams,
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

daemon::settings! {
    /// The HTTP API over the ledger, for others.
    pub struct ServerSettings {
        /// Serve the HTTP API
        pub enabled: bool = Row::at("server.enabled").default("false"),
        /// Host name or IP address that it listens on; without TLS, one of this machine
        pub host: String = Row::at("server.host").default("localhost"),
        /// Port that it listens on; 0 takes a free one
        pub port: u16 = Row::at("server.port").default("8001"),
        /// Audience that the tokens of callers must be for
        pub audience: String = Row::at("server.audience").default("hyperfleet-credentials"),
        /// Kubeconfig of the API server that reviews tokens and permissions
        pub kubeconfig: Option<PathBuf> = Row::at("server.kubeconfig").unset("the Pod's service account, or the user's kubeconfig"),
        /// Requests of a caller in a minute, of each replica
        pub requests_per_minute: u32 = Row::at("server.requests_per_minute").default("100").least("1"),
        /// Rotations that a caller may start in an hour, of each replica
        pub rotations_per_hour: u32 = Row::at("server.rotations_per_hour").default("10").least("1"),
        /// The identity to serve under
        pub tls: ServerTls,
    }
}

daemon::settings! {
    /// The identity that the HTTP API is served under.
    pub struct ServerTls {
        /// Certificate chain, PEM
        pub cert_file: Option<PathBuf> = Row::at("server.tls.cert_file").unset("plain HTTP"),
        /// Private key of the certificate, PEM
        pub key_file: Option<PathBuf> = Row::at("server.tls.key_file").unset("plain HTTP"),
    }
}

daemon::settings! {
    /// The AMS that has made the credentials of clusters until now.
    pub struct Ams {
        /// Address of AMS, such as `https://api.openshift.com`
        pub url: Option<String> = Row::at("ams.url").unset("clusters do not leave AMS"),
        /// Address of the SSO for access tokens
        pub token_url: String =
            Row::at("ams.token_url").default("https://sso.redhat.com/auth/realms/redhat-external/protocol/openid-connect/token"),
        /// Service account at the SSO
        pub client_id: Option<String> = Row::at("ams.client_id").unset("required with `ams.url`"),
        /// File with the service account's secret
        pub client_secret_file: Option<PathBuf> = Row::at("ams.client_secret_file").unset("required with `ams.url`"),
        /// Certificate authorities of AMS and its SSO, PEM
        pub ca_file: Option<PathBuf> = Row::at("ams.ca_file").unset("the system's"),
        /// Calls of AMS in a minute, of all processes together
        pub calls_per_minute: u32 = Row::at("ams.calls_per_minute").default("300").least("1"),
        /// Search of the API for the clusters that leave AMS
        pub search: Option<String> = Row::at("ams.search").unset("all clusters"),
        /// Time for which a pull secret must be as expected before its cluster gets a credential of our own
        pub compare_for: Duration = Row::at("ams.compare_for").default("168h").least("1s"),
        /// Hosts that stay AMS's, with commas between them
        pub keep_hosts: String = Row::at("ams.keep_hosts").default("cloud.openshift.com"),
    }
}
