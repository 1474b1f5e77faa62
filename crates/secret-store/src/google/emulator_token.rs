//! The bearer token that an emulator requires.

use std::path::Path;

use google_cloud_auth::credentials::{CacheableResource, Credentials, CredentialsProvider, EntityTag};
use google_cloud_auth::errors::CredentialsError;
use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap, HeaderValue};

/// Sends the same token with each request.
#[derive(Debug)]
struct EmulatorToken {
    /// Marked as sensitive, so that `Debug` does not print it.
    authorization: HeaderValue,
    entity_tag: EntityTag,
}

/// Reads the token; the error says what is wrong with the file.
pub(super) fn credentials(path: &Path) -> Result<Credentials, &'static str> {
    let token = std::fs::read_to_string(path).map_err(|_error| "the emulator's token file cannot be read")?;
    let authorization = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
    let mut authorization = authorization.map_err(|_error| "the emulator's token file holds no token")?;
    authorization.set_sensitive(true);
    Ok(EmulatorToken { authorization, entity_tag: EntityTag::new() }.into())
}

// === impl EmulatorToken ===

impl CredentialsProvider for EmulatorToken {
    async fn headers(&self, extensions: Extensions) -> Result<CacheableResource<HeaderMap>, CredentialsError> {
        if extensions.get::<EntityTag>() == Some(&self.entity_tag) {
            return Ok(CacheableResource::NotModified);
        }
        let data = HeaderMap::from_iter([(AUTHORIZATION, self.authorization.clone())]);
        Ok(CacheableResource::New { entity_tag: self.entity_tag.clone(), data })
    }

    async fn universe_domain(&self) -> Option<String> {
        None
    }
}
