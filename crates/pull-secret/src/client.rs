//! A client of the API for commands that look at a fleet.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::backoff::{Backoff, RetryPolicy};
use daemon::output;
use diagnosis::retry::{Found, find};
use hyperfleet_client::{BaseUrl, Calls, Client, Error, Settings, TokenSettings};

use crate::cli::ClientFlags;
use crate::context::{API, Chosen, Given, Setting};

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
const TOKEN_FILE: Setting =
    Setting { flag: "--token-file", variable: "HYPERFLEET_API_AUTH_TOKEN_PATH", key: "tokenFile" };

/// The setting of the certificate authorities.
pub(crate) const CA_FILE: Setting = Setting { flag: "--ca-file", variable: "HYPERFLEET_API_CA_FILE", key: "caFile" };

/// The setting of the host to which the token may be sent over plain HTTP.
const PLAIN_HTTP_HOST: Setting =
    Setting { flag: "--plain-http-host", variable: "HYPERFLEET_API_PLAIN_HTTP_HOST", key: "plainHttpHost" };

/// The files that the flags, the environment and the context name, each with its flag.
pub(crate) fn files(flags: &ClientFlags, context: &Chosen) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    let mut files = Vec::new();
    files.extend(file(flags.token_file.as_ref(), &TOKEN_FILE, context)?.map(|path| (TOKEN_FILE.flag, path)));
    files.extend(file(flags.ca_file.as_ref(), &CA_FILE, context)?.map(|path| (CA_FILE.flag, path)));
    Ok(files)
}

/// The file of a flag, else of its variable, else of the context.
fn file(given: Option<&PathBuf>, setting: &Setting, context: &Chosen) -> anyhow::Result<Option<PathBuf>> {
    match given {
        Some(path) => Ok(Some(path.clone())),
        None => Ok(context.value(setting, None)?.map(|given| given.value.into())),
    }
}

/// A client as the flags, the environment and the context say.
pub(crate) fn client(flags: &ClientFlags) -> anyhow::Result<Client> {
    client_in(flags, &Chosen::of_fleet(flags)?)
}

/// A client as the flags, the environment and this context say.
pub(crate) fn client_in(flags: &ClientFlags, context: &Chosen) -> anyhow::Result<Client> {
    let default = || Given { origin: "the default".to_owned(), value: DEFAULT_API.to_owned() };
    let api = context.value(&API, flags.api.as_deref())?.unwrap_or_else(default);
    let base_url: BaseUrl = api.value.parse().context(api.origin)?;
    let token = file(flags.token_file.as_ref(), &TOKEN_FILE, context)?;
    let settings = Settings {
        attempt_timeout: Duration::from_secs(5),
        token: token.map(|path| TokenSettings { path, cache_ttl: Duration::from_secs(30) }),
        user_agent: concat!("pull-secret/", env!("CARGO_PKG_VERSION")).to_owned(),
        ca_file: file(flags.ca_file.as_ref(), &CA_FILE, context)?,
        plain_http_host: context.value(&PLAIN_HTTP_HOST, flags.plain_http_host.as_deref())?.map(|given| given.value),
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

/// Returns the id of the cluster that has this id, or else this name; `None` if there is none. A name that several clusters
/// have is an error that lists their ids.
pub(crate) async fn id_of(calls: &Calls<'_>, text: &str) -> Result<anyhow::Result<Option<String>>, Error> {
    Ok(match find(calls, text).await? {
        Found::None => Ok(None),
        Found::One(cluster) => Ok(Some(cluster.id.clone())),
        Found::Several(several) => {
            let ids: Vec<String> = several.iter().map(|cluster| output::plain(&cluster.id)).collect();
            Err(anyhow::anyhow!("{text}: several clusters have this name, give an id: {}", ids.join(", ")))
        }
    })
}
