//! Settings of a program's client of the API: the section `clients.hyperfleet_api`.

use std::path::PathBuf;
use std::time::Duration;

use daemon::settings::Row;

use crate::settings::{BaseUrl, Settings, TokenSettings, WatchSettings};

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
        /// File with the bearer token
        pub token_path: Option<PathBuf> = Row::at("clients.hyperfleet_api.auth.token_path"),
        /// Time after which the file with the token is read again
        pub token_cache_ttl: Duration = Row::at("clients.hyperfleet_api.auth.token_cache_ttl").default("30s"),
    }
}

// === impl Api ===

impl Api {
    /// Returns the address, and adds its fault as a line for a message. A missing one is a fault of reading already.
    pub fn address(&self, faults: &mut Vec<String>) -> Option<BaseUrl> {
        let address = self.base_url.as_deref()?.trim().parse();
        address.map_err(|error| faults.push(format!("clients.hyperfleet_api.base_url: {error}"))).ok()
    }

    /// Returns the settings of the client; lists are read at this interval where the API has no change stream.
    pub fn client(&self, base_url: BaseUrl, user_agent: String, poll_interval: Duration) -> Settings {
        let Self { timeout, ca_file, plain_http_host, auth, base_url: _parsed } = self;
        Settings {
            attempt_timeout: *timeout,
            ca_file: ca_file.clone(),
            plain_http_host: plain_http_host.clone(),
            token: auth.token_path.clone().map(|path| TokenSettings { path, cache_ttl: auth.token_cache_ttl }),
            user_agent,
            watch: WatchSettings { poll_interval, ..WatchSettings::default() },
            ..Settings::new(base_url)
        }
    }
}
