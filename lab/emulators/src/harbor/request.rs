//! A call as it was read.

use std::collections::BTreeMap;

use serde_json::Value;

use super::operation::Operation;
use super::refusal::Refusal;
use crate::basic::Basic;

/// Harbor's page where none is asked for, and its largest.
const PAGE: usize = 10;
const MAX_PAGE: usize = 100;

/// A call. It holds credentials, and is never printed.
pub(super) struct Request {
    pub(super) operation: Operation,
    /// The robot's number, the project, or the repository with its project.
    pub(super) target: String,
    /// The tag or digest of a manifest.
    pub(super) reference: String,
    /// No body is wanted: the manifest is not pulled.
    pub(super) is_head: bool,
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) authorization: Option<String>,
}

/// One page of a list.
#[derive(Clone, Copy)]
pub(super) struct Page {
    pub(super) skip: usize,
    pub(super) size: usize,
}

/// The conditions of a query.
pub(super) struct Conditions(BTreeMap<String, String>);

// === impl Request ===

impl Request {
    /// The first value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(parameter, _)| parameter == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn document(&self) -> Result<Value, Refusal> {
        let parsed = serde_json::from_slice::<Value>(&self.body).ok().filter(Value::is_object);
        parsed.ok_or_else(|| Refusal::invalid("parsing body failed"))
    }

    pub(super) fn basic(&self) -> Option<Basic> {
        let header = self.authorization.as_deref()?;
        header.get(..6).filter(|scheme| scheme.eq_ignore_ascii_case("basic ")).map(|_| Basic::read(header))
    }

    pub(super) fn bearer(&self) -> Option<&str> {
        self.authorization.as_deref()?.strip_prefix("Bearer ")
    }

    pub(super) fn page(&self) -> Result<Page, Refusal> {
        let number = |name: &str, default: usize| match self.parameter(name) {
            Some(text) => text.parse().map_err(|_error| Refusal::new(422, format!("{name} in query must be a number"))),
            None => Ok(default),
        };
        let (page, size) = (number("page", 1)?, number("page_size", PAGE)?);
        if page == 0 || !(1..=MAX_PAGE).contains(&size) {
            return Err(Refusal::new(422, "page or page_size is out of range"));
        }
        Ok(Page { skip: (page - 1) * size, size })
    }
}

// === impl Conditions ===

impl Conditions {
    /// Reads the parameter `q`, which Harbor unescapes a second time: a plus sign becomes a space.
    pub(super) fn read(request: &Request) -> Result<Self, Refusal> {
        let text = request.parameter("q").unwrap_or_default();
        let text = form_urlencoded::parse(format!("q={}", text.replace('&', "%26")).as_bytes())
            .next()
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default();
        let mut conditions = BTreeMap::new();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let pair = part.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
            let (key, value) = pair.ok_or_else(|| Refusal::invalid("the query string must contain \"=\""))?;
            conditions.insert(key.to_owned(), value.to_owned());
        }
        Ok(Self(conditions))
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// True if a value is as it is asked for: behind a tilde stands a part of it.
    pub(super) fn holds(&self, key: &str, value: &str) -> bool {
        self.get(key).is_none_or(|wanted| match wanted.strip_prefix('~') {
            Some(part) => value.to_lowercase().contains(&part.to_lowercase()),
            None => value == wanted,
        })
    }
}
