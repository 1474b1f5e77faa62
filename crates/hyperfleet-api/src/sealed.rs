//! Pull secrets at rest: AES-256-GCM with the resource's id bound to it, and the mark that readers see instead.

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

/// A key and the name under which what it has sealed refers to it.
pub struct Key {
    id: String,
    key: LessSafeKey,
}

/// The keys: the first seals, all open.
#[derive(Debug)]
pub struct Keyring {
    keys: Vec<Key>,
    digest_key: SecretSlice<u8>,
}

/// What a request says about the inline pull secret.
#[derive(Debug)]
pub enum Wanted {
    /// There is none.
    Absent,
    /// The mark that readers see: keep what is stored.
    Kept,
    /// This one.
    New(Content),
}

/// An inline pull secret, checked.
pub struct Content {
    json: Zeroizing<String>,
    digest: docker_config::Digest,
}

/// A pull secret in a form in which it may rest and be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealed {
    /// Key id, nonce and ciphertext, as text.
    pub text: String,
    /// What readers see in its place.
    pub mark: Value,
}

/// Why an inline pull secret is refused; never says what it holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Why a sealed pull secret cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    /// It was sealed with a key that is not configured any more.
    #[error("its key is not configured: add it to pull_secret.keys again")]
    NoKey,
    /// It is not what was sealed.
    #[error("it is damaged")]
    Damaged,
}

// === impl Keyring ===

impl Keyring {
    /// A ring of 32-byte keys with their ids. Without a digest key, one is derived from the first key.
    ///
    /// `None` if there is no key, or one that has not 32 bytes.
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

    /// Seals a pull secret for the resource with that id: for another one it cannot be opened.
    pub fn seal(&self, id: &str, content: &Content) -> Option<Sealed> {
        let key = self.keys.first()?;
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut bytes = content.json.as_bytes().to_vec();
        // The copy in `bytes` becomes the ciphertext in place.
        key.key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(id), &mut bytes).ok()?;
        let text = format!("{}.{}.{}", STANDARD.encode(&key.id), STANDARD.encode(nonce), STANDARD.encode(bytes));
        let digest = content.digest.keyed(self.digest_key.expose_secret());
        Some(Sealed { text, mark: json!({ "redacted": true, "digest": digest.to_string() }) })
    }

    /// The mark of a pull secret, without sealing it.
    pub fn mark(&self, content: &Content) -> Value {
        let digest = content.digest.keyed(self.digest_key.expose_secret());
        json!({ "redacted": true, "digest": digest.to_string() })
    }

    /// Opens what was sealed for the resource with that id: the value as it was given.
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

/// The HMAC-SHA-256 of a text.
fn mac(key: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(text);
    Some(mac.finalize().into_bytes().to_vec())
}

/// Takes `pullSecret.data` out of a spec, checked.
pub fn take(spec: &mut Map<String, Value>) -> Result<Wanted, Refused> {
    // Whatever stands there in another form may be a credential, and would be stored and shown as it is.
    if spec.get("pullSecret").is_some_and(|secret| !secret.is_object() && !secret.is_null()) {
        return Err(Refused("must be an object with `secretRef` or `data`".to_owned()));
    }
    let Some(data) =
        spec.get_mut("pullSecret").and_then(Value::as_object_mut).and_then(|secret| secret.get_mut("data"))
    else {
        return Ok(Wanted::Absent);
    };
    let value = data.take();
    if value.is_null() {
        return Ok(Wanted::Absent);
    }
    if value.get("redacted") == Some(&Value::Bool(true)) {
        return Ok(Wanted::Kept);
    }
    Content::check(value).map(Wanted::New)
}

/// Puts a value in the place of `pullSecret.data`.
pub fn put(spec: &mut Map<String, Value>, value: Value) {
    if let Some(secret) = spec.get_mut("pullSecret").and_then(Value::as_object_mut) {
        secret.insert("data".to_owned(), value);
    }
}

// === impl Content ===

impl Content {
    /// A document as text, as base64 of the text, or as a JSON object.
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

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Content(redacted)")
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

    fn ring(ids: &[(&str, u8)]) -> Keyring {
        let keys = ids.iter().map(|(id, byte)| ((*id).to_owned(), SecretSlice::from(vec![*byte; 32])));
        Keyring::new(keys.collect(), None).unwrap()
    }

    fn spec(data: &Value) -> Map<String, Value> {
        json!({ "pullSecret": { "data": data } }).as_object().unwrap().clone()
    }

    fn document() -> Value {
        json!(r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#)
    }

    fn content(data: &Value) -> Content {
        let Ok(Wanted::New(content)) = take(&mut spec(data)) else { panic!("must be taken") };
        content
    }

    #[test]
    fn what_is_sealed_can_be_opened_for_the_same_resource_only() {
        let ring = ring(&[("new", 1), ("old", 2)]);
        let sealed = ring.seal("cls-1", &content(&document())).unwrap();
        assert!(!sealed.text.contains("quay"));
        assert_eq!(ring.open("cls-1", &sealed.text), Ok(document()));
        assert_eq!(ring.open("cls-2", &sealed.text), Err(Unopened::Damaged));
        assert_eq!(ring.open("cls-1", "x.y"), Err(Unopened::Damaged));
    }

    #[test]
    fn an_old_key_still_opens_and_a_lost_one_is_named() {
        let sealed = ring(&[("old", 2)]).seal("cls-1", &content(&document())).unwrap();
        assert_eq!(ring(&[("new", 1), ("old", 2)]).open("cls-1", &sealed.text), Ok(document()));
        assert_eq!(ring(&[("new", 1)]).open("cls-1", &sealed.text), Err(Unopened::NoKey));
    }

    #[test]
    fn text_base64_and_object_mean_the_same() {
        let ring = ring(&[("a", 1)]);
        let text = document().as_str().unwrap().to_owned();
        let object: Value = serde_json::from_str(&text).unwrap();
        let marks = [json!(text), json!(STANDARD.encode(&text)), object].map(|data| ring.mark(&content(&data)));
        assert_eq!(marks[0], marks[1]);
        assert_eq!(marks[0], marks[2]);
        assert!(marks[0]["digest"].as_str().unwrap().starts_with("hmac-sha256:"));
    }

    #[test]
    fn a_bad_document_is_refused_with_its_place_and_no_value() {
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
    fn a_mark_keeps_and_null_is_none() {
        assert!(matches!(take(&mut spec(&json!({ "redacted": true }))), Ok(Wanted::Kept)));
        assert!(matches!(take(&mut spec(&Value::Null)), Ok(Wanted::Absent)));
        assert!(matches!(take(&mut Map::new()), Ok(Wanted::Absent)));
    }
}
