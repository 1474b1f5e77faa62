//! Pages for people in a browser.

use crate::entity::Registry;
use crate::service::{Address, Failure, Service};

/// Nothing is loaded from anywhere, and no script runs.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; \
                                           base-uri 'none'; frame-ancestors 'none'";

/// All clusters at a glance.
pub async fn overview(_service: &Service, _page: Option<&str>) -> Result<String, Failure> {
    Ok(String::new())
}

/// One resource with its timeline.
pub async fn resource(_service: &Service, _address: &Address<'_>) -> Result<String, Failure> {
    Ok(String::new())
}

/// The endpoints.
pub fn openapi(_registry: &Registry) -> String {
    String::new()
}
