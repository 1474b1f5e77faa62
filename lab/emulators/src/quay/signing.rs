//! The key that signs tokens for a registry, and the tokens that a cluster's issuer would sign.

use std::fmt;

use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD, Engine as _};
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
}

// === impl Signing ===

impl Signing {
    /// Makes a key and a certificate of it, signed by itself; a token's header holds the certificate.
    pub(crate) fn make() -> Result<Self, StartError> {
        let fail = |reason: String| StartError::Certificate { reason };
        let mut parameters = CertificateParams::new(Vec::new()).map_err(|error| fail(error.to_string()))?;
        parameters.distinguished_name.push(DnType::CommonName, "Quay emulator");
        let pair = KeyPair::generate().map_err(|error| fail(error.to_string()))?;
        let certificate = parameters.self_signed(&pair).map_err(|error| fail(error.to_string()))?;
        let header =
            Header { x5c: Some(vec![BASE64_STANDARD.encode(certificate.der())]), ..Header::new(Algorithm::ES256) };
        Ok(Self {
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
        self.clusters.read(token)
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
