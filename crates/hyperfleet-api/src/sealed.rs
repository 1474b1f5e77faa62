//! Encrypts inline pull secrets with AES-256-GCM, bound to their resource and destination, and makes the placeholder that
//! readers get.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use docker_config::{Limits, Problems};
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretSlice};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::decide::destination::Destination;
use crate::resource::Resource;

/// The beginning of an encrypted pull secret in the current form.
const FORM: &str = "2:";

/// A key with the id that ciphertexts refer to.
pub struct Key {
    id: String,
    key: LessSafeKey,
}

/// The keys: the first one encrypts, all decrypt.
#[derive(Debug)]
pub struct Keyring {
    keys: Vec<Key>,
    digest_key: SecretSlice<u8>,
}

/// The resource that a pull secret is encrypted for. It cannot be decrypted for another one, another incarnation of it, or
/// another destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    id: String,
    text: String,
}

/// The inline pull secret of a request.
#[derive(Debug)]
pub enum PullSecretInput {
    /// The request has none.
    Absent,
    /// The redacted placeholder: the stored pull secret stays.
    Placeholder,
    /// A new pull secret.
    New(Document),
}

/// A checked pull secret.
pub struct Document {
    json: Zeroizing<String>,
    digest: docker_config::Digest,
}

/// An encrypted pull secret with its placeholder.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealed {
    /// Form, key id, nonce and ciphertext, as text.
    pub text: String,
    /// The redacted placeholder that readers get.
    pub placeholder: Value,
}

/// An inline pull secret that is refused. The text gives a position and no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// An encrypted pull secret that cannot be decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    /// It was encrypted with a key that is not configured any more.
    #[error("its key is not configured: add it to pull_secret.keys again")]
    NoKey,
    /// It is not an encrypted pull secret of this resource with this destination.
    #[error("it is damaged, or was encrypted for another resource or destination")]
    Damaged,
}

// === impl Keyring ===

impl Keyring {
    /// Returns a keyring of 32-byte keys with their ids. Without a digest key, one is derived from the first key.
    ///
    /// Returns `None` without keys, or if one does not have 32 bytes.
    pub fn new(keys: Vec<(String, SecretSlice<u8>)>, digest_key: Option<SecretSlice<u8>>) -> Option<Self> {
        let first = &keys.first()?.1;
        let digest_key = match digest_key {
            Some(key) => key,
            None => SecretSlice::from(mac(first.expose_secret(), b"hyperfleet-api/digest/1")?),
        };
        let keys = keys.into_iter().map(|(id, bytes)| {
            let key = UnboundKey::new(&AES_256_GCM, bytes.expose_secret()).ok()?;
            Some(Key { id, key: LessSafeKey::new(key) })
        });
        Some(Self { keys: keys.collect::<Option<_>>()?, digest_key })
    }

    /// Encrypts a pull secret.
    pub fn seal(&self, binding: &Binding, document: &Document) -> Option<Sealed> {
        let text = self.encrypt(binding, document.json.as_bytes().to_vec())?;
        Some(Sealed { text, placeholder: self.placeholder(document) })
    }

    /// Encrypts a stored pull secret anew, with the first key and for another binding.
    pub fn reseal(&self, from: &Binding, sealed: &str, to: &Binding) -> Result<String, Unopened> {
        // The copy is overwritten by the ciphertext.
        let bytes = self.decrypt(from, sealed)?.to_vec();
        self.encrypt(to, bytes).ok_or(Unopened::Damaged)
    }

    /// True if a stored pull secret is encrypted with the first key, in the current form.
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

    /// Encrypts in place; the clear text is overwritten.
    fn encrypt(&self, binding: &Binding, mut bytes: Vec<u8>) -> Option<String> {
        let key = self.keys.first()?;
        let nonce: [u8; NONCE_LEN] = rand::random();
        let aad = Aad::from(binding.text.as_bytes());
        key.key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut bytes).ok()?;
        let parts = [key.id.as_bytes(), &nonce, &bytes].map(|part| STANDARD.encode(part));
        Some(format!("{FORM}{}", parts.join(".")))
    }

    fn decrypt(&self, binding: &Binding, sealed: &str) -> Result<Zeroizing<Vec<u8>>, Unopened> {
        // The form before it was bound to the id only.
        let (sealed, aad) = match sealed.strip_prefix(FORM) {
            Some(rest) => (rest, binding.text.as_bytes()),
            None => (sealed, binding.id.as_bytes()),
        };
        let mut parts = sealed.split('.').map(|part| STANDARD.decode(part).map_err(|_no_base64| Unopened::Damaged));
        let mut part = || parts.next().unwrap_or(Err(Unopened::Damaged));
        let (key_id, nonce, bytes) = (part()?, part()?, part()?);
        let key = self.keys.iter().find(|key| key.id.as_bytes() == key_id).ok_or(Unopened::NoKey)?;
        let nonce = Nonce::try_assume_unique_for_key(&nonce).map_err(|_length| Unopened::Damaged)?;
        let mut bytes = Zeroizing::new(bytes);
        let opened = key.key.open_in_place(nonce, Aad::from(aad), &mut bytes).map_err(|_forged| Unopened::Damaged)?;
        let length = opened.len();
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Returns the placeholder of a pull secret without encrypting it.
    pub fn placeholder(&self, document: &Document) -> Value {
        let digest = document.digest.keyed(self.digest_key.expose_secret());
        json!({ "redacted": true, "digest": digest.to_string() })
    }

    /// Decrypts a pull secret, in the form in which it was given.
    pub fn open(&self, binding: &Binding, sealed: &str) -> Result<Value, Unopened> {
        let opened = self.decrypt(binding, sealed)?;
        serde_json::from_slice(&opened).map_err(|_quotes_values| Unopened::Damaged)
    }
}

// === impl Binding ===

impl Binding {
    /// Returns the binding to an incarnation of a resource, which its time of creation tells from others, and to the
    /// destination that follows from its spec.
    pub fn new(id: &str, created: Timestamp, spec: &Map<String, Value>) -> Self {
        let destination = Destination::of(spec).canonical();
        let text = format!("hyperfleet-api/pull-secret/2\n{id}\n{}\n{destination}", created.as_microsecond());
        Self { id: id.to_owned(), text }
    }

    /// Returns the binding to a resource as it is now.
    pub fn of(resource: &Resource) -> Self {
        Self::new(&resource.id, resource.created_time, &resource.spec)
    }
}

/// Returns the id of the key that encrypted a text with this beginning.
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

/// Takes `pullSecret.data` out of a spec that [`crate::decide::misplaced`] accepts, and checks it.
pub fn take(spec: &mut Map<String, Value>) -> Result<PullSecretInput, Refused> {
    let Some(data) =
        spec.get_mut("pullSecret").and_then(Value::as_object_mut).and_then(|secret| secret.get_mut("data"))
    else {
        return Ok(PullSecretInput::Absent);
    };
    let value = data.take();
    if value.is_null() {
        return Ok(PullSecretInput::Absent);
    }
    if value.get("redacted") == Some(&Value::Bool(true)) {
        return Ok(PullSecretInput::Placeholder);
    }
    Document::check(value).map(PullSecretInput::New)
}

/// True if a spec as a client gives it has the content of a pull secret, not only its placeholder.
pub fn is_given(spec: &Map<String, Value>) -> bool {
    let data = spec.get("pullSecret").and_then(|secret| secret.get("data"));
    data.is_some_and(|data| !data.is_null() && data.get("redacted") != Some(&Value::Bool(true)))
}

/// Sets `pullSecret.data`.
pub fn put(spec: &mut Map<String, Value>, value: Value) {
    if let Some(secret) = spec.get_mut("pullSecret").and_then(Value::as_object_mut) {
        secret.insert("data".to_owned(), value);
    }
}

// === impl Document ===

impl Document {
    /// Checks a document: text, base64 of the text, or a JSON object.
    fn check(value: Value) -> Result<Self, Refused> {
        let json = Zeroizing::new(value.to_string());
        let document = match value {
            Value::String(text) => {
                let text = Zeroizing::new(text);
                match STANDARD.decode(text.trim()) {
                    Ok(decoded) => Zeroizing::new(decoded),
                    Err(_no_base64) => Zeroizing::new(text.as_bytes().to_vec()),
                }
            }
            Value::Object(_) => Zeroizing::new(json.as_bytes().to_vec()),
            _ => {
                return Err(Refused(
                    "must be a Docker config document: as text, in base64, or as an object".to_owned(),
                ));
            }
        };
        let parsed = docker_config::parse(&document, &Limits::default())
            .map_err(|problems: Problems| Refused(problems.summary(5)))?;
        Ok(Self { json, digest: parsed.digest() })
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Document(redacted)")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
