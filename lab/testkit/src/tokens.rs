//! Keys of an issuer of tokens, and tokens that are signed with them.

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::KeyPair as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

/// A signing key with its id.
#[derive(Debug)]
pub struct Key {
    pub id: String,
    pair: KeyPair,
}

impl Key {
    pub fn generate(id: &str) -> Self {
        Self { id: id.to_owned(), pair: KeyPair::generate(KeySize::Rsa2048).unwrap() }
    }

    /// The public key, as a JSON Web Key.
    pub fn jwk(&self) -> Value {
        let public = self.pair.public_key();
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let modulus = public.modulus().big_endian_without_leading_zero().to_vec();
        let exponent = public.exponent().big_endian_without_leading_zero().to_vec();
        json!({
            "kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.id, "n": encode(&modulus), "e": encode(&exponent),
        })
    }

    /// The public key as bytes, for a forgery that uses it as a shared secret.
    pub fn public_der(&self) -> Vec<u8> {
        let der: PublicKeyX509Der<'_> = self.pair.public_key().as_der().unwrap();
        der.as_ref().to_vec()
    }

    /// A token with these claims.
    pub fn sign(&self, claims: &Value) -> String {
        let der: Pkcs8V1Der<'_> = self.pair.as_der().unwrap();
        // `jsonwebtoken` expects the key without the 26 bytes of the PKCS #8 header.
        let key = EncodingKey::from_rsa_der(&der.as_ref()[26..]);
        let header = Header { kid: Some(self.id.clone()), ..Header::new(Algorithm::RS256) };
        jsonwebtoken::encode(&header, claims, &key).unwrap()
    }
}
