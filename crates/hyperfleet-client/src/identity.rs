//! The identity that the token file claims, for people: read without a check of its signature, which is the API's to make.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use crate::client::Client;

/// The identity that is sent to the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// None: no token file is set.
    Anonymous,
    /// A token that does not say whose it is.
    Opaque,
    /// A token with claims.
    Claimed(Claims),
}

/// Claims of a JSON Web Token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Claims {
    /// The issuer.
    #[serde(default, rename = "iss")]
    pub issuer: String,
    /// The subject.
    #[serde(default, rename = "sub")]
    pub subject: String,
    /// The address of a person, or of a service account at Google.
    #[serde(default)]
    pub email: Option<String>,
    /// The time at which it expires, in Unix time.
    #[serde(default, rename = "exp")]
    expires: Option<i64>,
}

// === impl Client ===

impl Client {
    /// Reads the identity from the token file, if one is set.
    pub async fn identity(&self) -> io::Result<Identity> {
        let token = self.transport().token().await?;
        Ok(token.as_ref().map_or(Identity::Anonymous, Identity::of))
    }
}

// === impl Identity ===

impl Identity {
    fn of(token: &SecretString) -> Self {
        let claims = |payload: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok();
        let mut parts = token.expose_secret().split('.');
        match (parts.next(), parts.next().and_then(claims), parts.next(), parts.next()) {
            (Some(_header), Some(claims), Some(_signature), None) => Self::Claimed(claims),
            _ => Self::Opaque,
        }
    }
}

// === impl Claims ===

impl Claims {
    /// The time at which the token expires, if it does.
    pub fn expires(&self) -> Option<Timestamp> {
        Timestamp::from_second(self.expires?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read_and_anything_else_is_opaque() {
        let payload = URL_SAFE_NO_PAD.encode(r#"{"iss": "https://i", "sub": "a", "exp": 1700000000, "aud": ["b"]}"#);
        let of = |text: &str| Identity::of(&SecretString::from(text));
        let Identity::Claimed(claims) = of(&format!("e30.{payload}.c2ln")) else { panic!("it has claims") };
        assert_eq!((claims.issuer.as_str(), claims.subject.as_str()), ("https://i", "a"));
        assert_eq!(claims.expires().unwrap().to_string(), "2023-11-14T22:13:20Z");
        for other in ["", "hunter2", "a.b.c", &format!("e30.{payload}"), &format!("e30.{payload}.c2ln.more")] {
            assert_eq!(of(other), Identity::Opaque, "{other}");
        }
    }
}
