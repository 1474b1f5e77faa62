//! Keys of an issuer: found in memory without waiting, fetched in the background, by one fetch at a time.
//!
//! A token with a known key never waits for the issuer. One with an unknown key waits for one fetch, for a bounded time; while
//! fetches fail, and for a while after one has succeeded, it does not even start one, so that strangers cannot make this
//! server call the issuer at will.

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use daemon::backoff::Backoff;
use daemon::host::is_loopback;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::JwkSet;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::files::KeyFile;
use super::settings::IssuerSettings;
use crate::problem::{Code, Problem, Rejection};

/// Age from which keys are fetched again in the background.
const REFRESH: Duration = Duration::from_mins(5);
/// Minimum interval between two successful fetches when tokens name an unknown key.
const MIN_REFRESH: Duration = Duration::from_secs(30);
/// Back-off of fetches that fail.
const RETRY: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(1));
/// Maximum time for which a token with an unknown key waits for a fetch.
const WAIT: Duration = Duration::from_secs(3);
/// Time limit of one fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a key set, in bytes.
const MAX_KEY_SET: usize = 1024 * 1024;

/// The keys of an issuer.
#[derive(Debug)]
pub(super) enum Keys {
    File(KeyFile),
    Fetched(Arc<FetchedKeys>),
}

/// Keys that are fetched from a URL.
#[derive(Debug)]
pub(super) struct FetchedKeys {
    source: Source,
    /// Maximum age of keys that are trusted.
    max_age: Duration,
    state: Mutex<State>,
    /// Changes at the end of each fetch.
    ended: watch::Sender<u64>,
}

/// The address of the keys, and the settings of its client.
#[derive(Debug)]
struct Source {
    url: String,
    settings: IssuerSettings,
}

#[derive(Debug, Default)]
struct State {
    set: Option<Arc<JwkSet>>,
    /// Time of the last successful fetch.
    fetched: Option<Instant>,
    /// Time of the next permitted fetch, while fetches fail.
    retry_at: Option<Instant>,
    /// Number of fetches in a row that have failed.
    failures: u32,
    is_fetching: bool,
}

/// The state of a key at one moment.
enum Found {
    /// It is trusted.
    Key(Box<DecodingKey>),
    /// It is not among keys that are new enough to say so.
    Unknown,
    /// Nothing can be said before a fetch has ended.
    AfterFetch,
    /// Nothing can be said: fetches fail. The time of the next one, unless keys are known, which others need not wait for.
    Unavailable(Option<Instant>),
}

// === impl Keys ===

impl Keys {
    /// The keys of these settings, or the fault in them.
    pub(super) fn of(settings: &IssuerSettings) -> Result<Self, String> {
        let url = match (&settings.jwk_cert_url, &settings.jwk_cert_file) {
            (None, Some(file)) => return KeyFile::read(file).map(Self::File),
            (Some(url), None) => url.clone(),
            _ => return Err("jwk_cert_url: give either it or jwk_cert_file".to_owned()),
        };
        let max_age = daemon::settings::duration::parse(&settings.jwk_max_age).filter(|age| *age >= REFRESH * 2);
        let max_age = max_age.ok_or("jwk_max_age: must be a duration of 10m or more, such as 24h")?;
        let source = Source { url, settings: settings.clone() };
        // Its faults are those of the settings.
        drop(source.client()?);
        Ok(Self::Fetched(Arc::new(FetchedKeys {
            source,
            max_age,
            state: Mutex::default(),
            ended: watch::Sender::new(0),
        })))
    }

    /// The key with that id, or the only key if there is no id.
    pub(super) async fn find(&self, id: Option<&str>) -> Result<Option<DecodingKey>, Rejection> {
        match self {
            Self::File(file) => Ok(key_of(&file.at(Instant::now()), id)),
            Self::Fetched(keys) => keys.find(id).await,
        }
    }
}

fn key_of(set: &JwkSet, id: Option<&str>) -> Option<DecodingKey> {
    let key = match id {
        Some(id) => set.find(id),
        None => set.keys.first().filter(|_| set.keys.len() == 1),
    };
    key.and_then(|key| DecodingKey::from_jwk(key).ok())
}

// === impl FetchedKeys ===

impl FetchedKeys {
    async fn find(self: &Arc<Self>, id: Option<&str>) -> Result<Option<DecodingKey>, Rejection> {
        let deadline = Instant::now() + WAIT;
        let mut ended = self.ended.subscribe();
        loop {
            match self.observe(id) {
                Found::Key(key) => return Ok(Some(*key)),
                Found::Unknown => return Ok(None),
                // The sender is in `self`: it changes, or time runs out.
                Found::AfterFetch => match timeout_at(deadline, ended.changed()).await {
                    Ok(_ended) => {}
                    Err(_elapsed) => return Err(unavailable()),
                },
                Found::Unavailable(Some(retry_at)) if retry_at < deadline => sleep_until(retry_at).await,
                Found::Unavailable(_) => return Err(unavailable()),
            }
        }
    }

    /// The state of a key now. Starts a fetch if one is due.
    fn observe(self: &Arc<Self>, id: Option<&str>) -> Found {
        let mut state = self.lock();
        let now = Instant::now();
        let age = state.fetched.map(|fetched| now.saturating_duration_since(fetched));
        let trusted = state.set.clone().filter(|_| age.is_some_and(|age| age < self.max_age));
        let key = trusted.as_ref().and_then(|set| key_of(set, id));
        let limit = if key.is_some() { REFRESH } else { MIN_REFRESH };
        let is_due = age.is_none_or(|age| age >= limit);
        let is_permitted = state.retry_at.is_none_or(|at| now >= at);
        if is_due && is_permitted && !state.is_fetching {
            state.is_fetching = true;
            tokio::spawn(Arc::clone(self).fetch());
        }
        match key {
            Some(key) => Found::Key(Box::new(key)),
            None if !is_due => Found::Unknown,
            None if state.is_fetching => Found::AfterFetch,
            None => Found::Unavailable(state.retry_at.filter(|_| trusted.is_none())),
        }
    }

    async fn fetch(self: Arc<Self>) {
        // A fetch that is dropped with its runtime ends too.
        let result = timeout(FETCH_TIMEOUT, self.source.fetch()).await.ok().flatten();
        {
            let mut state = self.lock();
            state.is_fetching = false;
            if let Some(set) = result {
                *state = State { set: Some(Arc::new(set)), fetched: Some(Instant::now()), ..State::default() };
            } else {
                state.failures = state.failures.saturating_add(1);
                state.retry_at = Some(Instant::now() + RETRY.nominal(state.failures));
                let failures = state.failures;
                tracing::warn!(operation = "fetch_keys", failures, "the keys of an issuer cannot be fetched");
            }
        }
        self.ended.send_modify(|fetches| *fetches = fetches.wrapping_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unavailable() -> Rejection {
    Problem::new(Code::Unavailable, "the keys of the token's issuer cannot be fetched: try again").into()
}

// === impl Source ===

impl Source {
    /// A client that reads the authority's file anew.
    fn client(&self) -> Result<reqwest::Client, String> {
        let parsed = reqwest::Url::parse(&self.url).map_err(|_malformed| "jwk_cert_url: is not a URL")?;
        let loopback = is_loopback(parsed.host_str().unwrap_or_default());
        if parsed.scheme() != "https" && !(parsed.scheme() == "http" && loopback) {
            return Err("jwk_cert_url: must be https, or http on loopback".to_owned());
        }
        let mut builder = reqwest::Client::builder().timeout(FETCH_TIMEOUT).redirect(reqwest::redirect::Policy::none());
        if parsed.scheme() == "http" {
            builder = builder.no_proxy();
        }
        if let Some(file) = &self.settings.jwk_cert_ca_file {
            let pem = std::fs::read(file).map_err(|_error| "jwk_cert_ca_file: cannot be read")?;
            let certificates = reqwest::Certificate::from_pem_bundle(&pem);
            let certificates = certificates.map_err(|_error| "jwk_cert_ca_file: holds no PEM certificates")?;
            builder = builder.tls_certs_merge(certificates);
        }
        builder.build().map_err(|_error| "jwk_cert_ca_file: cannot be used".to_owned())
    }

    async fn fetch(&self) -> Option<JwkSet> {
        let mut response = self.client().ok()?.get(&self.url).send().await.ok()?.error_for_status().ok()?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_KEY_SET {
                return None;
            }
        }
        serde_json::from_slice(&body).ok()
    }
}
