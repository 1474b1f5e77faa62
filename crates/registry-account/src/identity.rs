//! The identity with which a registry's API is called.

#[cfg(feature = "ecr")]
mod aws;
mod unproved;

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use daemon::connections::ClientCertificate;
#[cfg(feature = "gar")]
use google_cloud_auth::credentials::{CacheableResource, Credentials};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};

use crate::request::Request;

#[cfg(feature = "ecr")]
pub(crate) use aws::{Role, Signer};
use unproved::Unproved;

/// Maximum size of a file with a secret in bytes.
const MAX_SECRET: u64 = 16 * 1024;

/// The secret of an identity: a token, or the password of a user.
#[derive(Clone, Debug)]
pub enum IdentitySecret {
    /// In a file, which is read at each request: a rotation of the secret replaces the file.
    File(PathBuf),
    /// A secret that the caller has.
    Value(SecretString),
}

/// An identity.
#[derive(Debug)]
pub(crate) enum Identity {
    /// Requests whose bodies hold the proof.
    #[cfg(feature = "acr")]
    InBody,
    /// The bearer of a token.
    Token(IdentitySecret),
    /// A user with a password.
    User { username: String, password: IdentitySecret },
    /// An identity at Google Cloud.
    #[cfg(feature = "gar")]
    Google(Credentials),
    /// A client's certificate, which its connections show.
    #[cfg(feature = "red_hat")]
    Certificate(ClientCertificate),
    /// A role at AWS, which signs each request.
    #[cfg(feature = "ecr")]
    Aws(Signer),
}

// === impl IdentitySecret ===

impl IdentitySecret {
    /// Reads the secret, as it is now. An error is a detail that names the file.
    pub(crate) fn read(&self, noun: &str) -> Result<Zeroizing<String>, String> {
        let (text, place) = match self {
            Self::Value(secret) => (Zeroizing::new(secret.expose_secret().to_owned()), format!("the given {noun}")),
            Self::File(path) => {
                let place = format!("the {noun} file {}", path.display());
                let is_small = std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_SECRET);
                if !is_small {
                    return Err(format!("{place} is missing, or too large for a {noun}"));
                }
                let text = std::fs::read_to_string(path).map(Zeroizing::new);
                (text.map_err(|_error| format!("{place} cannot be read"))?, place)
            }
        };
        let line = text.trim();
        if line.is_empty() || line.chars().any(char::is_control) {
            return Err(format!("{place} does not hold a {noun}"));
        }
        Ok(Zeroizing::new(line.to_owned()))
    }
}

// === impl Identity ===

impl Identity {
    /// Forgets a proof that the service has refused.
    #[cfg(feature = "ecr")]
    pub(crate) async fn forget(&self) {
        if let Self::Aws(signer) = self {
            signer.forget().await;
        }
    }

    /// Returns the certificate that connections show.
    pub(crate) fn certificate(&self) -> Option<ClientCertificate> {
        match self {
            #[cfg(feature = "red_hat")]
            Self::Certificate(certificate) => Some(certificate.clone()),
            _ => None,
        }
    }

    /// Returns the headers that prove the identity for a request, as it is now.
    #[cfg_attr(not(feature = "ecr"), expect(unused_variables, reason = "AWS alone signs requests"))]
    pub(crate) async fn headers(&self, request: &Request, url: &str) -> Result<HeaderMap, Unproved> {
        let (text, noun) = match self {
            #[cfg(feature = "acr")]
            Self::InBody => return Ok(HeaderMap::new()),
            #[cfg(feature = "red_hat")]
            Self::Certificate(_) => return Ok(HeaderMap::new()),
            #[cfg(feature = "gar")]
            Self::Google(credentials) => return of_google(credentials).await,
            #[cfg(feature = "ecr")]
            Self::Aws(signer) => return signer.headers(request, url).await,
            Self::Token(token) => (Zeroizing::new(format!("Bearer {}", token.read("token")?.as_str())), "token"),
            Self::User { username, password } => {
                let password = password.read("password")?;
                let pair = Zeroizing::new(format!("{username}:{}", password.as_str()));
                (Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes()))), "password")
            }
        };
        let mut header = HeaderValue::from_str(&text).map_err(|_error| format!("the {noun} cannot be sent"))?;
        header.set_sensitive(true);
        Ok(HeaderMap::from_iter([(AUTHORIZATION, header)]))
    }
}

/// Returns the headers of an identity at Google Cloud. Its error could quote an answer.
#[cfg(feature = "gar")]
async fn of_google(credentials: &Credentials) -> Result<HeaderMap, Unproved> {
    match credentials.headers(http::Extensions::new()).await {
        Ok(CacheableResource::New { data, .. }) => Ok(data),
        Ok(CacheableResource::NotModified) => Err("the credentials of the environment gave no token".to_owned().into()),
        Err(error) if error.is_transient() => Err(Unproved::for_now("the token service does not answer for now")),
        Err(_error) => Err("no token could be had with the credentials of the environment".to_owned().into()),
    }
}
