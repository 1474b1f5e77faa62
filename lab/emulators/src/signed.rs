//! JSON Web Tokens that a server issues and reads itself.

use std::fmt;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

/// Signs claims and reads them back; its key is never printed.
pub(crate) struct Signer {
    key: Vec<u8>,
}

impl Signer {
    /// With a key that is kept, or with one for the lifetime of this server.
    pub(crate) fn new(key: Option<Vec<u8>>) -> Self {
        Self { key: key.unwrap_or_else(|| rand::random::<[u8; 32]>().to_vec()) }
    }

    /// A token that holds the claims.
    pub(crate) fn issue(&self, claims: &Value) -> String {
        let header = json!({"alg": "HS256", "typ": "JWT"});
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = BASE64_URL_SAFE_NO_PAD.encode(self.sign(&signed));
        format!("{signed}.{signature}")
    }

    /// The claims of a token that this key has signed; their expiry is not checked.
    pub(crate) fn read(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        if BASE64_URL_SAFE_NO_PAD.decode(signature).ok()? != self.sign(signed) {
            return None;
        }
        let claims = BASE64_URL_SAFE_NO_PAD.decode(signed.split_once('.')?.1).ok()?;
        serde_json::from_slice(&claims).ok()
    }

    fn sign(&self, text: &str) -> Vec<u8> {
        // HMAC takes keys of every length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return Vec::new() };
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().to_vec()
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Signer(redacted)")
    }
}
