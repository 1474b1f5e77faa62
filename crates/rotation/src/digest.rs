//! Keyed digests of pull secrets, as short as the record of a large rotation needs them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The beginning of a digest as the API shows it.
const PREFIX: &str = "hmac-sha256:";

/// Number of hexadecimal digits that are kept: half of the HMAC, as short as RFC 2104 allows.
const DIGITS: usize = 32;

/// The first half of the HMAC-SHA256 of a pull secret's canonical form, under the API's digest key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ShortDigest(String);

/// A text that is no short digest.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a digest must have {DIGITS} hexadecimal digits")]
pub struct NoDigest;

impl ShortDigest {
    /// Returns the digest of a document under a key.
    pub fn of(document: &docker_config::Digest, key: &[u8]) -> Self {
        let whole = document.keyed(key).to_string();
        let digits = whole.strip_prefix(PREFIX).unwrap_or(&whole);
        Self(digits.chars().take(DIGITS).collect())
    }

    /// Returns true if a digest that the API shows is of the same content.
    pub fn is_of(&self, shown: &str) -> bool {
        shown.strip_prefix(PREFIX).and_then(|digits| digits.get(..DIGITS)) == Some(&self.0)
    }
}

impl TryFrom<String> for ShortDigest {
    type Error = NoDigest;

    fn try_from(text: String) -> Result<Self, NoDigest> {
        let is_digest = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_digest { Ok(Self(text)) } else { Err(NoDigest) }
    }
}

impl fmt::Display for ShortDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use docker_config::Limits;

    use super::*;

    #[test]
    fn a_digest_is_that_of_the_api() {
        let digest = |text: &str| docker_config::parse(text.as_bytes(), &Limits::default()).unwrap().digest();
        let (one, other) = (
            digest(r#"{"auths":{"a.example.com":{"auth":"dTpw"}}}"#),
            digest(r#"{"auths":{"b.example.com":{"auth":"dTpw"}}}"#),
        );
        let short = ShortDigest::of(&one, &[7; 32]);
        assert!(short.is_of(&one.keyed(&[7; 32]).to_string()));
        for shown in
            [other.keyed(&[7; 32]).to_string(), one.keyed(&[8; 32]).to_string(), String::new(), short.to_string()]
        {
            assert!(!short.is_of(&shown), "{shown}");
        }
        assert!(ShortDigest::try_from(short.to_string()).is_ok());
        assert!(ShortDigest::try_from(format!("{short}0")).is_err());
    }
}
