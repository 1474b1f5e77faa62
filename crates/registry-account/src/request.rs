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

/// Returns a text as it may stand in a query.
pub(crate) fn escaped(text: &str) -> String {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| if is_safe(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
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
        let pairs: Vec<_> = fields.iter().map(|Field { name, value }| format!("{name}={}", escaped(value))).collect();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        Self { body: pairs.join("&"), ..self }.with_header(CONTENT_TYPE, form)
    }

    /// Adds a header to those of the identity, or replaces it.
    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}
