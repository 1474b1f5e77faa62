//! A client of the API for commands that look at a fleet.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::backoff::{Backoff, RetryPolicy};
use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::output;
use hyperfleet_client::{BaseUrl, Client, Error, Settings, TokenSettings};

use crate::cli::ClientFlags;

/// Default address of the API.
const DEFAULT_API: &str = "http://localhost:8000";

/// A person waits: what fails is tried again soon, and not for long.
const RETRY: RetryPolicy = RetryPolicy {
    backoff: Backoff::doubling(Duration::from_millis(200), Duration::from_secs(1)).with_jitter(20),
    max_retries: 3,
};

/// The exit code of `EX_TEMPFAIL` in sysexits.h: the API does not answer now.
const UNREACHABLE: u8 = 75;

/// A client as the flags and the environment say.
pub(crate) fn client(flags: &ClientFlags) -> anyhow::Result<Client> {
    let text = |name: &str| ProcessEnvironment.text(name);
    let (named, place) = match &flags.api {
        Some(url) => ("--api", url.clone()),
        None => ("HYPERFLEET_API_BASE_URL", text("HYPERFLEET_API_BASE_URL")?.unwrap_or_else(|| DEFAULT_API.to_owned())),
    };
    let base_url: BaseUrl = place.parse().context(named)?;
    let path = |flag: &Option<_>, variable: &str| {
        flag.clone().map_or_else(|| Ok::<_, anyhow::Error>(text(variable)?.map(Into::into)), |path| Ok(Some(path)))
    };
    let token = path(&flags.token_file, "HYPERFLEET_API_AUTH_TOKEN_PATH")?;
    let settings = Settings {
        attempt_timeout: Duration::from_secs(5),
        token: token.map(|path| TokenSettings { path, cache_ttl: Duration::from_secs(30) }),
        user_agent: concat!("pull-secret/", env!("CARGO_PKG_VERSION")).to_owned(),
        ca_file: path(&flags.ca_file, "HYPERFLEET_API_CA_FILE")?,
        plain_http_host: flags
            .plain_http_host
            .clone()
            .map_or_else(|| text("HYPERFLEET_API_PLAIN_HTTP_HOST"), |host| Ok(Some(host)))?,
        retry: RETRY,
        ..Settings::new(base_url)
    };
    Ok(Client::new(settings)?)
}

/// Prints the error of a call to the API and returns its exit code: 75 for a transient one.
pub(crate) fn refused(error: &Error) -> ExitCode {
    output::note(format_args!("error: {}", output::plain(&error.to_string())));
    ExitCode::from(if error.transient() { UNREACHABLE } else { 2 })
}
