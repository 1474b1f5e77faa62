//! The token that a request is sent with.

use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};

/// A token that may be sent.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token(HeaderValue);

// === impl Token ===

impl Token {
    /// Returns `None` for a text that is no header.
    pub(super) fn new(token: &SecretString) -> Option<Self> {
        let mut header =
            HeaderValue::from_str(token.expose_secret().trim()).ok().filter(|header| !header.is_empty())?;
        header.set_sensitive(true);
        Some(Self(header))
    }

    pub(super) fn text(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    pub(super) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}
