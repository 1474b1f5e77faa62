//! Wire types of the API, lenient in what is accepted: unknown members are ignored, absent ones have a default.

mod problem;
mod resource;
mod tombstone;

use serde::{Deserialize, Deserializer};

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
}

/// Takes `null` for the same as an absent member.
fn null_is_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
