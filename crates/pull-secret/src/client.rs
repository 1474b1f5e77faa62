//! A client of the API for commands that look at a fleet.

use std::path::PathBuf;
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

/// The setting of the token file.
const TOKEN_FILE: (&str, &str) = ("--token-file", "HYPERFLEET_API_AUTH_TOKEN_PATH");

/// The setting of the certificate authorities.
pub(crate) const CA_FILE: (&str, &str) = ("--ca-file", "HYPERFLEET_API_CA_FILE");

/// The files that the flags and the environment name, each with its flag.
pub(crate) fn files(flags: &ClientFlags) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    let mut files = Vec::new();
    for ((flag, variable), path) in [(TOKEN_FILE, &flags.token_file), (CA_FILE, &flags.ca_file)] {
        files.extend(file(path.as_ref(), variable)?.map(|path| (flag, path)));
    }
    Ok(files)
}

/// The file of a flag, or else of its variable.
fn file(flag: Option<&PathBuf>, variable: &str) -> anyhow::Result<Option<PathBuf>> {
    flag.cloned().map_or_else(|| Ok(ProcessEnvironment.text(variable)?.map(Into::into)), |path| Ok(Some(path)))
}

/// A client as the flags and the environment say.
pub(crate) fn client(flags: &ClientFlags) -> anyhow::Result<Client> {
    let text = |name: &str| ProcessEnvironment.text(name);
    let (named, place) = match &flags.api {
        Some(url) => ("--api", url.clone()),
        None => ("HYPERFLEET_API_BASE_URL", text("HYPERFLEET_API_BASE_URL")?.unwrap_or_else(|| DEFAULT_API.to_owned())),
    };
    let base_url: BaseUrl = place.parse().context(named)?;
    let token = file(flags.token_file.as_ref(), TOKEN_FILE.1)?;
    let settings = Settings {
        attempt_timeout: Duration::from_secs(5),
        token: token.map(|path| TokenSettings { path, cache_ttl: Duration::from_secs(30) }),
        user_agent: concat!("pull-secret/", env!("CARGO_PKG_VERSION")).to_owned(),
        ca_file: file(flags.ca_file.as_ref(), CA_FILE.1)?,
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
