//! A request to the API of a registry.

use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use serde_json::Value;

/// One request.
pub(crate) struct Request {
    /// Its name in metrics.
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    /// Path and query after the API's root.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// A field of a form.
#[cfg(feature = "acr")]
pub(crate) struct Field<'a> {
    pub(crate) name: &'static str,
    pub(crate) value: &'a str,
}

// === impl Request ===

impl Request {
    /// Returns a request without a body.
    pub(crate) fn new(name: &'static str, method: Method, path: String) -> Self {
        Self { name, method, path, headers: HeaderMap::new(), body: String::new() }
    }

    #[must_use]
    pub(crate) fn with_body(self, body: &Value) -> Self {
        let json = HeaderValue::from_static("application/json");
        Self { body: body.to_string(), ..self }.with_header(CONTENT_TYPE, json)
    }

    /// Sends a form (`application/x-www-form-urlencoded`).
    #[cfg(feature = "acr")]
    #[must_use]
    pub(crate) fn with_form(self, fields: &[Field<'_>]) -> Self {
        let pairs = fields.iter().map(|Field { name, value }| (name, value));
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        Self { body, ..self }.with_header(CONTENT_TYPE, form)
    }

    /// Adds a header to those of the identity, or replaces it.
    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}
