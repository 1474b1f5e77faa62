//! The key that signs tokens for a registry, and the tokens that a cluster's issuer would sign.

use std::collections::BTreeMap;
use std::fmt;

use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD, Engine as _};
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use rcgen::{CertificateParams, DnType, KeyPair, PublicKeyData as _};
use serde_json::Value;

use crate::signed::Signer;
use crate::start_error::StartError;

/// The issuer that tokens name, as Quay's do.
pub(crate) const ISSUER: &str = "quay";

/// Signs and reads tokens; its keys are never printed.
pub(crate) struct Signing {
    header: Header,
    key: EncodingKey,
    public: DecodingKey,
    /// The certificate that a registry has to trust, in PEM.
    authority: String,
    clusters: Signer,
    /// The keys of issuers that are elsewhere.
    issuers: BTreeMap<String, JwkSet>,
}

// === impl Signing ===

impl Signing {
    /// Makes a key and a certificate of it, signed by itself; a token's header holds the certificate. `issuers` are those of
    /// clusters' tokens, with their keys.
    pub(crate) fn make(issuers: &BTreeMap<String, Value>) -> Result<Self, StartError> {
        let fail = |reason: String| StartError::Certificate { reason };
        let mut parameters = CertificateParams::new(Vec::new()).map_err(|error| fail(error.to_string()))?;
        parameters.distinguished_name.push(DnType::CommonName, "Quay emulator");
        let pair = KeyPair::generate().map_err(|error| fail(error.to_string()))?;
        let certificate = parameters.self_signed(&pair).map_err(|error| fail(error.to_string()))?;
        let header =
            Header { x5c: Some(vec![BASE64_STANDARD.encode(certificate.der())]), ..Header::new(Algorithm::ES256) };
        let keys = |(issuer, keys): (&String, &Value)| {
            let keys = serde_json::from_value(keys.clone());
            Ok((issuer.clone(), keys.map_err(|error| fail(format!("the keys of {issuer}: {error}")))?))
        };
        Ok(Self {
            issuers: issuers.iter().map(keys).collect::<Result<_, _>>()?,
            header,
            key: EncodingKey::from_ec_der(&pair.serialize_der()),
            public: DecodingKey::from_ec_der(pair.der_bytes()),
            authority: certificate.pem(),
            clusters: Signer::new(None),
        })
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// A token that holds the claims; empty if the key cannot sign, which a key that was made here can.
    pub(crate) fn issue(&self, claims: &Value) -> String {
        jsonwebtoken::encode(&self.header, claims, &self.key).unwrap_or_default()
    }

    /// The claims of a token that this key has signed; their expiry is not checked.
    pub(crate) fn read(&self, token: &str) -> Option<Value> {
        let mut rules = Validation::new(Algorithm::ES256);
        rules.validate_exp = false;
        rules.validate_aud = false;
        rules.required_spec_claims.clear();
        jsonwebtoken::decode(token, &self.public, &rules).ok().map(|token| token.claims)
    }

    /// A token of a cluster's issuer.
    pub(crate) fn subject_token(&self, claims: &Value) -> String {
        self.clusters.issue(claims)
    }

    /// The claims of a token of a cluster's issuer; their expiry is not checked.
    pub(crate) fn read_subject_token(&self, token: &str) -> Option<Value> {
        self.clusters.read(token).or_else(|| self.read_with_keys(token))
    }

    /// The claims of a token that its issuer's key has signed.
    fn read_with_keys(&self, token: &str) -> Option<Value> {
        let header = jsonwebtoken::decode_header(token).ok()?;
        let mut rules = Validation::new(header.alg);
        rules.validate_exp = false;
        rules.validate_aud = false;
        rules.required_spec_claims.clear();
        self.issuers.iter().find_map(|(issuer, keys)| {
            let key = DecodingKey::from_jwk(keys.find(header.kid.as_deref()?)?).ok()?;
            let claims = jsonwebtoken::decode::<Value>(token, &key, &rules).ok()?.claims;
            (claims.get("iss")?.as_str() == Some(issuer)).then_some(claims)
        })
    }
}

impl fmt::Debug for Signing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Signing(redacted)")
    }
}

/// True for a text of three parts, of which the first is a header of a JSON Web Token.
pub(crate) fn is_jwt(text: &str) -> bool {
    let mut parts = text.split('.');
    let header = parts.next().and_then(|part| BASE64_URL_SAFE_NO_PAD.decode(part).ok());
    let header = header.and_then(|header| serde_json::from_slice::<Value>(&header).ok());
    parts.count() == 2 && header.is_some_and(|header| header.get("alg").is_some())
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::jwk::Jwk;
    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://issuer.example.com";

    /// An issuer's key, with its JWK Set.
    fn issuer() -> (EncodingKey, Value) {
        let key = EncodingKey::from_ec_der(&KeyPair::generate().unwrap().serialize_der());
        let mut public = Jwk::from_encoding_key(&key, Algorithm::ES256).unwrap();
        public.common.key_id = Some("one".to_owned());
        (key, json!({"keys": [public]}))
    }

    fn token(key: &EncodingKey, id: &str, issuer: &str) -> String {
        let header = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::ES256) };
        jsonwebtoken::encode(&header, &json!({"iss": issuer, "sub": "s"}), key).unwrap()
    }

    #[test]
    fn tokens_of_an_issuer_are_read_with_its_keys_only() {
        let ((key, keys), (other, _)) = (issuer(), issuer());
        let signing = Signing::make(&[(ISSUER.to_owned(), keys)].into()).unwrap();
        let claims = signing.read_subject_token(&token(&key, "one", ISSUER));
        assert_eq!(claims, Some(json!({"iss": ISSUER, "sub": "s"})));
        for refused in [
            token(&other, "one", ISSUER),
            token(&key, "two", ISSUER),
            token(&key, "one", "https://other.example.com"),
            token(&key, "one", ISSUER).replace('.', ".e"),
        ] {
            assert_eq!(signing.read_subject_token(&refused), None);
        }
        assert!(Signing::make(&[(ISSUER.to_owned(), json!({"keys": 1}))].into()).is_err());
    }
}
