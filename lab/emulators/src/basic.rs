//! Names and passwords in headers.

use base64::prelude::{BASE64_STANDARD, Engine as _};

/// A user's name and password. It is never printed.
pub(crate) struct Basic {
    pub(crate) user: String,
    pub(crate) password: String,
}

// === impl Basic ===

impl Basic {
    /// Credentials of a header; empty ones if they cannot be read.
    pub(crate) fn read(header: &str) -> Self {
        let encoded = header.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
        let decoded = encoded.and_then(|(_, encoded)| BASE64_STANDARD.decode(encoded.trim()).ok());
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        let (user, password) = text.split_once(':').unwrap_or_default();
        Self { user: user.to_owned(), password: password.to_owned() }
    }
}
