//! Encrypts inline pull secrets with AES-256-GCM, bound to their resource and destination, and makes the placeholder that
//! readers get.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use database::sealed::{Bound, Keyring, Unopened as NotOpened};
use docker_config::{Limits, Problems};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use crate::decide::destination::Destination;
use crate::resource::Resource;

/// Label of the digest key that is derived from an encryption key.
pub const DIGEST_LABEL: &str = "hyperfleet-api/digest/1";

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

impl From<NotOpened> for Unopened {
    fn from(error: NotOpened) -> Self {
        match error {
            NotOpened::NoKey => Self::NoKey,
            NotOpened::Damaged => Self::Damaged,
        }
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

    /// Encrypts a pull secret.
    pub fn seal(&self, keyring: &Keyring, document: &Document) -> Option<Sealed> {
        let text = keyring.seal(self.bound(), document.json.as_bytes().to_vec())?;
        Some(Sealed { text, placeholder: document.placeholder(keyring) })
    }

    /// Encrypts a stored pull secret of this binding anew, with the first key and for another binding.
    pub fn reseal(&self, keyring: &Keyring, sealed: &str, to: &Self) -> Result<String, Unopened> {
        Ok(keyring.reseal(self.bound(), sealed, to.bound())?)
    }

    /// Decrypts a pull secret, in the form in which it was given.
    pub fn open(&self, keyring: &Keyring, sealed: &str) -> Result<Value, Unopened> {
        let opened = keyring.open(self.bound(), sealed)?;
        serde_json::from_slice(&opened).map_err(|_quotes_values| Unopened::Damaged)
    }

    /// The form before the current one was bound to the id only.
    fn bound(&self) -> Bound<'_> {
        Bound::to(&self.text).or_before_forms(&self.id)
    }
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

    /// Returns the placeholder of the pull secret, without encrypting it.
    pub fn placeholder(&self, keyring: &Keyring) -> Value {
        let digest = self.digest.keyed(keyring.digest_key().expose_secret());
        json!({ "redacted": true, "digest": digest.to_string() })
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Document(redacted)")
    }
}

#[cfg(test)]
mod tests;
