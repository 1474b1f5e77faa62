//! Address, identity and timeouts of the API.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use daemon::backoff::{Backoff, RetryPolicy};
use reqwest::Url;

use crate::SetupError;

/// The path under which the API serves resources.
const API_PATH: &str = "/api/hyperfleet/v1";

/// The waits between the attempts of a call, unless the settings say otherwise.
const RETRY: RetryPolicy = RetryPolicy {
    backoff: Backoff::doubling(Duration::from_secs(1), Duration::from_secs(4)).with_jitter(20),
    max_retries: 3,
};

/// Address, identity and timeouts of the API.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The API's address.
    pub base_url: BaseUrl,
    /// Maximum time of an attempt, from connecting to the last byte of the response.
    pub attempt_timeout: Duration,
    /// The identity; `None` if the API needs no authentication.
    pub token: Option<TokenSettings>,
    /// The user agent.
    pub user_agent: String,
    /// The certificate authorities to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The one host, beside this machine, to which the token may be sent over plain HTTP.
    pub plain_http_host: Option<String>,
    /// The waits between the attempts of a call that may be repeated.
    pub retry: RetryPolicy,
    /// The method of status reports.
    pub report_method: ReportMethod,
    /// Settings of watches.
    pub watch: WatchSettings,
}

/// The bearer token's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSettings {
    /// The file; a rotation of the token replaces the file.
    pub path: PathBuf,
    /// Maximum time until the file is read again.
    pub cache_ttl: Duration,
}

/// The method of status reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportMethod {
    /// PUT in `snake_case`; where the API refuses the method, POST in camelCase, and from then on at once.
    #[default]
    Auto,
    /// PUT in `snake_case`: today's contract.
    Put,
    /// POST in camelCase: the specification's form.
    Post,
}

/// Settings of watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// A stream without a line for so long is cut and resumed; the API sends one every 30 seconds at least.
    pub silence: Duration,
    /// The time between two polls where the API has no stream.
    pub poll_interval: Duration,
    /// Interval of attempts to return to the stream while polling.
    pub retry_stream: Duration,
    /// The longest line that is read, in bytes.
    pub max_line: usize,
    /// Delays between attempts, unless the API asks for more.
    pub backoff: Backoff,
}

/// The address under which the API serves resources.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

/// A text that is no [`BaseUrl`]; it is not quoted, as it may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the API's address must be http://HOST[:PORT] or https://HOST[:PORT], with or without {API_PATH}, and without user, \
     query or fragment; a token belongs into a file"
)]
pub struct InvalidBaseUrl;

// === impl Settings ===

impl Settings {
    /// The settings for an API at this address without authentication.
    pub fn new(base_url: BaseUrl) -> Self {
        Self {
            base_url,
            attempt_timeout: Duration::from_secs(10),
            token: None,
            user_agent: concat!("hyperfleet-client/", env!("CARGO_PKG_VERSION")).to_owned(),
            ca_file: None,
            plain_http_host: None,
            retry: RETRY,
            report_method: ReportMethod::default(),
            watch: WatchSettings::default(),
        }
    }

    /// Checks that the token stays secret on its way.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        let host = self.base_url.host();
        let is_allowed = daemon::host::is_loopback(host) || self.plain_http_host.as_deref() == Some(host);
        if self.token.is_some() && self.base_url.is_plain() && !is_allowed {
            return Err(SetupError::ClearText { host: host.to_owned() });
        }
        Ok(())
    }
}

// === impl WatchSettings ===

impl Default for WatchSettings {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(75),
            poll_interval: Duration::from_secs(5),
            retry_stream: Duration::from_mins(5),
            max_line: 16 * 1024 * 1024,
            backoff: Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30)).with_jitter(20),
        }
    }
}

// === impl BaseUrl ===

impl BaseUrl {
    /// The address, which holds no credential.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The host: a name or an address.
    pub(crate) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Returns true if requests are not encrypted.
    pub fn is_plain(&self) -> bool {
        self.0.scheme() == "http"
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }
}

impl FromStr for BaseUrl {
    type Err = InvalidBaseUrl;

    fn from_str(text: &str) -> Result<Self, InvalidBaseUrl> {
        let mut url: Url = text.trim().parse().map_err(|_error| InvalidBaseUrl)?;
        let bare = url.username().is_empty() && url.password().is_none() && !text.contains(['@', '?', '#']);
        if !bare || !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(InvalidBaseUrl);
        }
        let path = url.path().trim_end_matches('/');
        let path = if path.ends_with(API_PATH) { path.to_owned() } else { format!("{path}{API_PATH}") };
        url.set_path(&path);
        Ok(Self(url))
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("http://api:8000", "http://api:8000/api/hyperfleet/v1")]
    #[case("http://api:8000/", "http://api:8000/api/hyperfleet/v1")]
    #[case("https://api/api/hyperfleet/v1/", "https://api/api/hyperfleet/v1")]
    #[case("https://gateway/fleet", "https://gateway/fleet/api/hyperfleet/v1")]
    fn the_path_of_the_api_is_completed(#[case] given: &str, #[case] expect: &str) {
        assert_eq!(given.parse::<BaseUrl>().unwrap().as_str(), expect);
    }

    #[rstest]
    #[case("")]
    #[case("api:8000")]
    #[case("ftp://api")]
    #[case("https://user:hunter2@api")]
    #[case("https://user@api")]
    #[case("https://api?token=hunter2")]
    #[case("https://api#hunter2")]
    fn other_addresses_are_refused_and_not_quoted(#[case] given: &str) {
        let error = given.parse::<BaseUrl>().unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
    }
}
