//! Maps a resource to its row and back.

use database::{Dialect, Row, Value};
use fleet_model::Generation;
use jiff::Timestamp;

use super::StoreError;
use crate::resource::{Resource, State, Target};
use crate::tenancy;

/// A resource as it is stored, with its encrypted pull secret, which readers do not get.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The resource without the pull secret.
    pub resource: Resource,
    /// The encrypted pull secret, if it has one.
    pub sealed: Option<String>,
}

/// Number of the columns that [`read`] takes.
pub(super) const COUNT: usize = 17;

/// Returns the columns of the table alias `r` in the order in which [`read`] takes them.
pub(super) fn columns(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => {
            "r.id, r.kind, r.name, r.owner_id, r.owner_kind, r.owner_href, r.generation, r.created_time, r.created_by, \
             r.updated_time, r.updated_by, r.deleted_time, r.deleted_by, r.spec, r.state, r.sealed, r.href"
        }
        Dialect::Postgres => {
            "r.id, r.kind, r.name, r.owner_id, r.owner_kind, r.owner_href, r.generation, r.created_time, r.created_by, \
             r.updated_time, r.updated_by, r.deleted_time, r.deleted_by, r.spec::text, r.state, r.sealed, r.href"
        }
    }
}

/// Returns the resource of a row.
pub(super) fn read(row: &Row) -> Result<Stored, StoreError> {
    let owner = match (row.optional_text(3)?, row.optional_text(4)?, row.optional_text(5)?) {
        (Some(id), Some(kind), Some(href)) => Some(Target { id, kind, href }),
        _ => None,
    };
    let resource = Resource {
        id: row.text(0)?,
        kind: row.text(1)?,
        name: row.text(2)?,
        href: row.text(16)?,
        owner,
        generation: generation(row.number(6)?, "resources.generation")?,
        created_time: time(row.number(7)?)?,
        created_by: row.text(8)?,
        updated_time: time(row.number(9)?)?,
        updated_by: row.text(10)?,
        deleted_time: row.optional_number(11)?.map(time).transpose()?,
        deleted_by: row.optional_text(12)?,
        spec: json(&row.text(13)?, "resources.spec")?,
        state: json::<State>(&row.text(14)?, "resources.state")?,
    };
    Ok(Stored { resource, sealed: row.optional_text(15)? })
}

/// The columns that a write sets, in the order of [`values`].
pub(super) const WRITTEN: [&str; 19] = [
    "id",
    "kind",
    "name",
    "owner_id",
    "owner_kind",
    "owner_href",
    "href",
    "tenancy",
    "generation",
    "created_time",
    "created_by",
    "updated_time",
    "updated_by",
    "deleted_time",
    "deleted_by",
    "spec",
    "state",
    "object",
    "sealed",
];

/// Returns the values of a resource's row; `object` is its JSON.
pub(super) fn values(stored: &Stored, object: String) -> Result<Vec<Value>, StoreError> {
    let Stored { resource, sealed } = stored;
    let Resource { owner, state, .. } = resource;
    Ok(vec![
        Value::Text(resource.id.clone()),
        Value::Text(resource.kind.clone()),
        Value::Text(resource.name.clone()),
        text(owner.as_ref().map(|owner| owner.id.clone())),
        text(owner.as_ref().map(|owner| owner.kind.clone())),
        text(owner.as_ref().map(|owner| owner.href.clone())),
        Value::Text(resource.href.clone()),
        Value::Text(tenancy::text(&state.tenancy)),
        Value::Number(resource.generation.into()),
        Value::Number(resource.created_time.as_microsecond()),
        Value::Text(resource.created_by.clone()),
        Value::Number(resource.updated_time.as_microsecond()),
        Value::Text(resource.updated_by.clone()),
        resource.deleted_time.map_or(Value::NoNumber, |time| Value::Number(time.as_microsecond())),
        text(resource.deleted_by.clone()),
        Value::Text(document(&resource.spec, "resources.spec")?),
        Value::Text(document(state, "resources.state")?),
        Value::Text(object),
        text(sealed.clone()),
    ])
}

/// Returns a part of a resource as JSON text.
pub(super) fn document(part: &impl serde::Serialize, location: &'static str) -> Result<String, StoreError> {
    serde_json::to_string(part).map_err(|_unserialisable| StoreError::Damaged { location })
}

pub(super) fn text(text: Option<String>) -> Value {
    text.map_or(Value::NoText, Value::Text)
}

pub(super) fn time(microseconds: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(microseconds).map_err(|_out_of_range| StoreError::Damaged { location: "a time" })
}

pub(super) fn generation(number: i64, location: &'static str) -> Result<Generation, StoreError> {
    Generation::try_from(number).map_err(|_negative| StoreError::Damaged { location })
}

pub(super) fn json<T: serde::de::DeserializeOwned>(text: &str, location: &'static str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|_quotes_values| StoreError::Damaged { location })
}
