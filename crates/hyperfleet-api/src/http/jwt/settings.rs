//! The settings of a trusted issuer.

use std::path::PathBuf;

use serde::Deserialize;

/// A trusted issuer, an item of `server.jwt.configs[]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerSettings {
    /// The exact `iss` claim of its tokens.
    pub issuer_url: String,
    /// The URL of its keys; https, or http on loopback.
    #[serde(default)]
    pub jwk_cert_url: Option<String>,
    /// The file that holds its keys.
    #[serde(default)]
    pub jwk_cert_file: Option<PathBuf>,
    /// The file of the CA certificates for fetching keys.
    #[serde(default)]
    pub jwk_cert_ca_file: Option<PathBuf>,
    /// Time for which fetched keys are trusted while their URL cannot be reached, such as `24h`. Keys are fetched again every five
    /// minutes; one that the issuer has withdrawn is refused from then on.
    #[serde(default = "max_key_age")]
    pub jwk_max_age: String,
    /// The header that carries the token.
    #[serde(default = "authorization")]
    pub header: String,
    /// The required `aud` claim of its tokens; must be given.
    #[serde(default)]
    pub audience: Option<String>,
    /// The claim that holds the caller's identity.
    #[serde(default = "email")]
    pub identity_claim: String,
    /// A regular expression that must match the whole claim.
    #[serde(default)]
    pub identity_claim_pattern: Option<String>,
    /// A header that holds the caller's identity instead of the claim; trusted only from `server.proxies`.
    #[serde(default)]
    pub identity_header: Option<String>,
}

fn authorization() -> String {
    "Authorization".to_owned()
}

fn max_key_age() -> String {
    "24h".to_owned()
}

fn email() -> String {
    "email".to_owned()
}
