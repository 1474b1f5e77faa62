//! Encrypts values at rest with AES-256-GCM, each bound to a text that names its place.
//!
//! A value is stored as `2:<key id>.<nonce>.<ciphertext>`, each part in base64. What comes before the first dot tells the key,
//! so that an index of it counts the values of each key.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretSlice};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The beginning of an encrypted value in the current form.
const FORM: &str = "2:";

/// A key with the id that encrypted values refer to.
#[derive(Clone, Debug)]
pub struct KeyBytes {
    /// The id.
    pub id: String,
    /// The 32 bytes of the key.
    pub bytes: SecretSlice<u8>,
}

/// The key of digests, which does not change when the encrypting key does.
#[derive(Clone, Debug)]
pub enum DigestKey {
    /// This one, of 32 bytes or more.
    Given(SecretSlice<u8>),
    /// One that is derived from the first key with this label, which is the component's own.
    Derived(&'static str),
}

/// The keys: the first one encrypts, all decrypt.
#[derive(Debug)]
pub struct Keyring {
    keys: Vec<Key>,
    digest_key: SecretSlice<u8>,
}

struct Key {
    id: String,
    key: LessSafeKey,
}

/// The text that a value is bound to. It cannot be decrypted with another one, so that it is useless at another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound<'text> {
    to: &'text str,
    before_forms: Option<&'text str>,
}

/// An encrypted value that cannot be decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    /// It was encrypted with a key that is not configured any more.
    #[error("its key is not configured: configure it again")]
    NoKey,
    /// It is not an encrypted value, or is bound to another text.
    #[error("it is damaged, or was encrypted for another place")]
    Damaged,
}

// === impl Bound ===

impl<'text> Bound<'text> {
    /// Returns the binding to a text.
    pub const fn to(text: &'text str) -> Self {
        Self { to: text, before_forms: None }
    }

    /// Accepts values without a form too, which version 0.1 of the API bound to this text.
    #[must_use]
    pub const fn or_before_forms(self, text: &'text str) -> Self {
        Self { before_forms: Some(text), ..self }
    }
}

// === impl Keyring ===

impl Keyring {
    /// Returns a keyring of these keys; `None` without keys, or if one does not have 32 bytes.
    pub fn new(keys: Vec<KeyBytes>, digest_key: DigestKey) -> Option<Self> {
        let first = &keys.first()?.bytes;
        let digest_key = match digest_key {
            DigestKey::Given(key) => key,
            DigestKey::Derived(label) => SecretSlice::from(mac(first.expose_secret(), label.as_bytes())?),
        };
        let keys = keys.into_iter().map(|KeyBytes { id, bytes }| {
            let key = UnboundKey::new(&AES_256_GCM, bytes.expose_secret()).ok()?;
            Some(Key { id, key: LessSafeKey::new(key) })
        });
        Some(Self { keys: keys.collect::<Option<_>>()?, digest_key })
    }

    /// Encrypts a value with the first key, in place: the clear text is overwritten. `None` if that fails.
    pub fn seal(&self, bound: Bound<'_>, mut bytes: Vec<u8>) -> Option<String> {
        let key = self.keys.first()?;
        let nonce: [u8; NONCE_LEN] = rand::random();
        let aad = Aad::from(bound.to.as_bytes());
        key.key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut bytes).ok()?;
        let parts = [key.id.as_bytes(), &nonce, &bytes].map(|part| STANDARD.encode(part));
        Some(format!("{FORM}{}", parts.join(".")))
    }

    /// Decrypts a value.
    pub fn open(&self, bound: Bound<'_>, sealed: &str) -> Result<Zeroizing<Vec<u8>>, Unopened> {
        let (sealed, aad) = match sealed.strip_prefix(FORM) {
            Some(rest) => (rest, bound.to),
            None => (sealed, bound.before_forms.ok_or(Unopened::Damaged)?),
        };
        let mut parts = sealed.split('.').map(|part| STANDARD.decode(part).map_err(|_no_base64| Unopened::Damaged));
        let mut part = || parts.next().unwrap_or(Err(Unopened::Damaged));
        let (key_id, nonce, bytes) = (part()?, part()?, part()?);
        let key = self.keys.iter().find(|key| key.id.as_bytes() == key_id).ok_or(Unopened::NoKey)?;
        let nonce = Nonce::try_assume_unique_for_key(&nonce).map_err(|_length| Unopened::Damaged)?;
        let mut bytes = Zeroizing::new(bytes);
        let aad = Aad::from(aad.as_bytes());
        let opened = key.key.open_in_place(nonce, aad, &mut bytes).map_err(|_forged| Unopened::Damaged)?;
        let length = opened.len();
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Encrypts a value anew, with the first key and for another binding.
    pub fn reseal(&self, from: Bound<'_>, sealed: &str, to: Bound<'_>) -> Result<String, Unopened> {
        // The copy is overwritten by the ciphertext.
        let bytes = self.open(from, sealed)?.to_vec();
        self.seal(to, bytes).ok_or(Unopened::Damaged)
    }

    /// True if a value is encrypted with the first key, in the current form.
    pub fn is_current(&self, sealed: &str) -> bool {
        self.beginning().is_some_and(|beginning| sealed.split('.').next() == Some(&beginning))
    }

    /// True if it has a key with that id.
    pub fn has(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id == id)
    }

    /// Returns the id of the first key, which encrypts.
    pub fn first(&self) -> Option<&str> {
        self.keys.first().map(|key| key.id.as_str())
    }

    /// Returns the beginning of everything that the first key encrypts, up to the first dot.
    pub fn beginning(&self) -> Option<String> {
        self.keys.first().map(|key| format!("{FORM}{}", STANDARD.encode(&key.id)))
    }

    /// Returns the key of digests.
    pub fn digest_key(&self) -> &SecretSlice<u8> {
        &self.digest_key
    }
}

/// Returns the id of the key that encrypted a value with this beginning.
pub fn key_id(beginning: &str) -> String {
    let encoded = beginning.strip_prefix(FORM).unwrap_or(beginning);
    let id = STANDARD.decode(encoded).ok().and_then(|id| String::from_utf8(id).ok());
    id.unwrap_or_else(|| "unreadable".to_owned())
}

/// Returns the HMAC-SHA-256 of a text.
fn mac(key: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(text);
    Some(mac.finalize().into_bytes().to_vec())
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
