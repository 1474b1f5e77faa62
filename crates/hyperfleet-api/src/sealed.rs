//! Encrypts inline pull secrets with AES-256-GCM, bound to the resource's id, and makes the placeholder that readers get.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use docker_config::{Limits, Problems};
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretSlice};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use zeroize::Zeroizing;

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
    /// Key id, nonce and ciphertext, as text.
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
    /// It is not an encrypted pull secret of this resource.
    #[error("it is damaged")]
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

    /// Encrypts a pull secret for the resource with that id. It cannot be decrypted for another one.
    pub fn seal(&self, id: &str, document: &Document) -> Option<Sealed> {
        let key = self.keys.first()?;
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut bytes = document.json.as_bytes().to_vec();
        // The copy in `bytes` is overwritten by the ciphertext.
        key.key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(id), &mut bytes).ok()?;
        let text = format!("{}.{}.{}", STANDARD.encode(&key.id), STANDARD.encode(nonce), STANDARD.encode(bytes));
        let digest = document.digest.keyed(self.digest_key.expose_secret());
        Some(Sealed { text, placeholder: json!({ "redacted": true, "digest": digest.to_string() }) })
    }

    /// Returns the placeholder of a pull secret without encrypting it.
    pub fn placeholder(&self, document: &Document) -> Value {
        let digest = document.digest.keyed(self.digest_key.expose_secret());
        json!({ "redacted": true, "digest": digest.to_string() })
    }

    /// Decrypts the pull secret of the resource with that id, in the form in which it was given.
    pub fn open(&self, id: &str, sealed: &str) -> Result<Value, Unopened> {
        let mut parts = sealed.split('.').map(|part| STANDARD.decode(part).map_err(|_no_base64| Unopened::Damaged));
        let mut part = || parts.next().unwrap_or(Err(Unopened::Damaged));
        let (key_id, nonce, bytes) = (part()?, part()?, part()?);
        let key = self.keys.iter().find(|key| key.id.as_bytes() == key_id).ok_or(Unopened::NoKey)?;
        let nonce = Nonce::try_assume_unique_for_key(&nonce).map_err(|_length| Unopened::Damaged)?;
        let mut bytes = Zeroizing::new(bytes);
        let opened = key.key.open_in_place(nonce, Aad::from(id), &mut bytes).map_err(|_forged| Unopened::Damaged)?;
        serde_json::from_slice(opened).map_err(|_quotes_values| Unopened::Damaged)
    }
}

/// Returns the HMAC-SHA-256 of a text.
fn mac(key: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(text);
    Some(mac.finalize().into_bytes().to_vec())
}

/// Takes `pullSecret.data` out of a spec and checks it.
pub fn take(spec: &mut Map<String, Value>) -> Result<PullSecretInput, Refused> {
    // A value of another type may be a credential, and would be stored and returned in clear.
    if spec.get("pullSecret").is_some_and(|secret| !secret.is_object() && !secret.is_null()) {
        return Err(Refused("must be an object with `secretRef` or `data`".to_owned()));
    }
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
mod tests {
    use super::*;

    fn keyring(ids: &[(&str, u8)]) -> Keyring {
        let keys = ids.iter().map(|(id, byte)| ((*id).to_owned(), SecretSlice::from(vec![*byte; 32])));
        Keyring::new(keys.collect(), None).unwrap()
    }

    fn spec(data: &Value) -> Map<String, Value> {
        json!({ "pullSecret": { "data": data } }).as_object().unwrap().clone()
    }

    fn document() -> Value {
        json!(r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#)
    }

    fn document_of(data: &Value) -> Document {
        let Ok(PullSecretInput::New(document)) = take(&mut spec(data)) else { panic!("must be accepted") };
        document
    }

    #[test]
    fn a_sealed_secret_is_opened_for_the_same_resource_only() {
        let keyring = keyring(&[("new", 1), ("old", 2)]);
        let sealed = keyring.seal("cls-1", &document_of(&document())).unwrap();
        assert!(!sealed.text.contains("quay"));
        assert_eq!(keyring.open("cls-1", &sealed.text), Ok(document()));
        assert_eq!(keyring.open("cls-2", &sealed.text), Err(Unopened::Damaged));
        assert_eq!(keyring.open("cls-1", "x.y"), Err(Unopened::Damaged));
    }

    #[test]
    fn an_old_key_still_opens_and_a_lost_one_is_named() {
        let sealed = keyring(&[("old", 2)]).seal("cls-1", &document_of(&document())).unwrap();
        assert_eq!(keyring(&[("new", 1), ("old", 2)]).open("cls-1", &sealed.text), Ok(document()));
        assert_eq!(keyring(&[("new", 1)]).open("cls-1", &sealed.text), Err(Unopened::NoKey));
    }

    #[test]
    fn text_base64_and_object_mean_the_same() {
        let keyring = keyring(&[("a", 1)]);
        let text = document().as_str().unwrap().to_owned();
        let object: Value = serde_json::from_str(&text).unwrap();
        let placeholders =
            [json!(text), json!(STANDARD.encode(&text)), object].map(|data| keyring.placeholder(&document_of(&data)));
        assert_eq!(placeholders[0], placeholders[1]);
        assert_eq!(placeholders[0], placeholders[2]);
        assert!(placeholders[0]["digest"].as_str().unwrap().starts_with("hmac-sha256:"));
    }

    #[test]
    fn a_bad_document_is_refused_with_its_position_and_no_value() {
        let refused = |data: Value| take(&mut spec(&data)).unwrap_err().0;
        let text = refused(json!(r#"{"auths":{"quay.io":{"auth":"Zq7wordThatMustNotShow"}}}"#));
        assert!(text.contains("line 1") && !text.contains("Zq7word"), "{text}");
        assert!(!refused(json!(["Zq7wordThatMustNotShow"])).contains("Zq7"));
        assert!(!refused(json!("Zq7wordThatMustNotShow")).contains("Zq7"));
    }

    #[test]
    fn a_pull_secret_in_another_form_is_refused() {
        for other in [document(), json!([{ "data": document() }]), json!(1)] {
            let mut spec = json!({ "pullSecret": other }).as_object().unwrap().clone();
            assert!(take(&mut spec).unwrap_err().0.starts_with("must be an object"));
        }
    }

    #[test]
    fn a_placeholder_keeps_the_secret_and_null_removes_it() {
        assert!(matches!(take(&mut spec(&json!({ "redacted": true }))), Ok(PullSecretInput::Placeholder)));
        assert!(matches!(take(&mut spec(&Value::Null)), Ok(PullSecretInput::Absent)));
        assert!(matches!(take(&mut Map::new()), Ok(PullSecretInput::Absent)));
    }
}
