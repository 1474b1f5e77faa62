//! Wire types of the API, lenient in what is accepted: unknown members are ignored, absent ones have a default.

mod problem;
mod resource;
mod tombstone;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::TraceContext;

pub use problem::{FieldError, Problem};
pub use resource::{NewResource, Reference, Resource, ResourceStatus};
pub use tombstone::Tombstone;

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub struct Page<T> {
    /// The number of the page, from 1.
    #[serde(default)]
    pub page: u32,
    /// Number of items on the page.
    #[serde(default)]
    pub size: u32,
    /// Number of items of the whole list; `None` if the API does not return it.
    #[serde(default)]
    pub total: Option<u64>,
    /// The items.
    #[serde(deserialize_with = "null_is_default")]
    pub items: Vec<T>,
    /// Number of items of this page that are not of the contract's form and are left out.
    #[serde(skip)]
    pub unreadable: u64,
}

impl<T: DeserializeOwned> Page<T> {
    /// Reads each item for itself, so that one that is not of the contract's form does not hide the others.
    pub(crate) fn of_readable(page: Page<Value>) -> Self {
        let count = page.items.len();
        let items: Vec<T> = page.items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect();
        let unreadable = (count - items.len()) as u64;
        Self { page: page.page, size: page.size, total: page.total, items, unreadable }
    }
}

/// Takes a malformed trace context for an absent one: it must not hide a resource.
fn trace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TraceContext>, D::Error> {
    let given = Value::deserialize(deserializer)?;
    Ok(given.as_str().and_then(|text| text.parse().ok()))
}

/// Takes `null` for the same as an absent member.
fn null_is_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
