//! The bearer token, read from a file that another process rotates.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::TokenSettings;
use crate::error::Error;

/// More than any token has; a larger file is not one.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;

/// The token in a file, remembered for a while.
pub(crate) struct TokenFile {
    path: PathBuf,
    cache_ttl: Duration,
    cache: Mutex<Option<Cached>>,
}

struct Cached {
    token: SecretString,
    read_at: Instant,
}

// === impl TokenFile ===

impl TokenFile {
    pub(crate) fn new(settings: TokenSettings) -> Self {
        Self { path: settings.path, cache_ttl: settings.cache_ttl, cache: Mutex::new(None) }
    }

    /// The value of `Authorization`; the file is read again when its cached token is too old.
    ///
    /// An old token is still used while the file cannot be read: the API may accept it yet.
    pub(crate) async fn header(&self, call: &str) -> Result<HeaderValue, Error> {
        if let Some(cached) = self.cache().as_ref().filter(|cached| cached.read_at.elapsed() <= self.cache_ttl) {
            return self.bearer(call, &cached.token);
        }
        match self.read().await {
            Ok(token) => self.remember(call, token),
            Err(source) => {
                let cache = self.cache();
                let Some(cached) = cache.as_ref() else {
                    return Err(self.unreadable(call, source));
                };
                tracing::warn!(%source, "cannot read the token file again; using the old token");
                self.bearer(call, &cached.token)
            }
        }
    }

    /// The value of `Authorization` as the file says now: what was remembered has been refused.
    pub(crate) async fn fresh_header(&self, call: &str) -> Result<HeaderValue, Error> {
        let token = self.read().await.map_err(|source| self.unreadable(call, source))?;
        self.remember(call, token)
    }

    fn remember(&self, call: &str, token: SecretString) -> Result<HeaderValue, Error> {
        self.bearer(call, &self.cache().insert(Cached { token, read_at: Instant::now() }).token)
    }

    /// Locks what was read. No lock is held while the file is read: a call that is not polled would hold up all others.
    fn cache(&self) -> MutexGuard<'_, Option<Cached>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file now.
    pub(crate) async fn read(&self) -> io::Result<SecretString> {
        let file = File::open(&self.path).await?;
        let mut text = Zeroizing::new(String::new());
        file.take(MAX_TOKEN_BYTES + 1).read_to_string(&mut text).await?;
        let token = text.trim();
        if token.is_empty() || text.len() as u64 > MAX_TOKEN_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty or too large"));
        }
        Ok(SecretString::from(token))
    }

    fn bearer(&self, call: &str, token: &SecretString) -> Result<HeaderValue, Error> {
        let text = Zeroizing::new(format!("Bearer {}", token.expose_secret()));
        let mut value = HeaderValue::from_str(&text).map_err(|_error| {
            self.unreadable(
                call,
                io::Error::new(io::ErrorKind::InvalidData, "the file holds more than one line of ASCII"),
            )
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn unreadable(&self, call: &str, source: io::Error) -> Error {
        Error::Token { call: call.to_owned(), path: self.path.clone(), source }
    }
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TokenFile").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::pin::pin;

    use futures_util::FutureExt as _;
    use tokio::time::timeout;

    use super::*;

    fn token_file(path: &Path) -> TokenFile {
        TokenFile::new(TokenSettings { path: path.to_path_buf(), cache_ttl: Duration::from_mins(1) })
    }

    async fn shown(token: &TokenFile) -> String {
        token.header("get clusters").await.unwrap().to_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn the_file_is_read_again_when_its_time_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = token_file(&path);
        assert!(matches!(token.header("get clusters").await, Err(Error::Token { .. })));

        daemon::file::replace(&path, b"first\n").unwrap();
        assert_eq!(shown(&token).await, "Bearer first");
        daemon::file::replace(&path, b"second\n").unwrap();
        assert_eq!(shown(&token).await, "Bearer first");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(shown(&token).await, "Bearer second");

        daemon::file::replace(&path, b"third\n").unwrap();
        assert_eq!(token.fresh_header("get clusters").await.unwrap(), "Bearer third");
        daemon::file::remove(&path).unwrap();
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(shown(&token).await, "Bearer third");
    }

    /// A change stream that is not polled for a while may be in the middle of its read.
    #[tokio::test]
    async fn a_call_that_is_not_polled_holds_up_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        daemon::file::replace(&path, b"first").unwrap();
        let token = token_file(&path);
        let mut stalled = pin!(token.header("watch clusters"));
        assert!(stalled.as_mut().now_or_never().is_none(), "it reads the file");
        assert_eq!(timeout(Duration::from_mins(1), shown(&token)).await.as_deref(), Ok("Bearer first"));
        assert_eq!(stalled.await.unwrap(), "Bearer first");
    }

    #[tokio::test]
    async fn what_is_no_token_is_refused_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let large = vec![b'x'; 70_000];
        for content in [&b" \n"[..], b"two\nlines", &large, b"\xff\xfe"] {
            daemon::file::replace(&path, content).unwrap();
            let error = token_file(&path).header("get clusters").await.unwrap_err();
            assert!(!format!("{error} {error:?}").contains("two"));
        }
        daemon::file::replace(&path, b"hunter2").unwrap();
        let token = token_file(&path);
        let header = token.header("get clusters").await.unwrap();
        assert!(!format!("{token:?} {header:?}").contains("hunter2"));
    }
}
