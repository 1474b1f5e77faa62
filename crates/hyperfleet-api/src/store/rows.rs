//! Maps a resource to its row and back.

use fleet_model::Generation;
use jiff::Timestamp;

use super::database::Row;
use super::error::StoreError;
use super::sql::{Dialect, Parameters, Value};
use crate::render;
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

/// Returns the columns that a write sets, with the placeholders of their values.
pub(super) fn assignments(
    stored: &Stored,
    dialect: Dialect,
    parameters: &mut Parameters,
) -> Result<Vec<(&'static str, String)>, StoreError> {
    let Resource { owner, state, .. } = &stored.resource;
    let resource = &stored.resource;
    let damaged = |location| move |_unserialisable| StoreError::Damaged { location };
    let spec = serde_json::to_string(&resource.spec).map_err(damaged("resources.spec"))?;
    let document = serde_json::to_string(state).map_err(damaged("resources.state"))?;
    let values = [
        ("id", Value::Text(resource.id.clone())),
        ("kind", Value::Text(resource.kind.clone())),
        ("name", Value::Text(resource.name.clone())),
        ("owner_id", text(owner.as_ref().map(|owner| owner.id.clone()))),
        ("owner_kind", text(owner.as_ref().map(|owner| owner.kind.clone()))),
        ("owner_href", text(owner.as_ref().map(|owner| owner.href.clone()))),
        ("href", Value::Text(resource.href.clone())),
        ("tenancy", Value::Text(tenancy::text(&state.tenancy))),
        ("generation", Value::Number(resource.generation.into())),
        ("created_time", Value::Number(resource.created_time.as_microsecond())),
        ("created_by", Value::Text(resource.created_by.clone())),
        ("updated_time", Value::Number(resource.updated_time.as_microsecond())),
        ("updated_by", Value::Text(resource.updated_by.clone())),
        ("deleted_time", resource.deleted_time.map_or(Value::NoNumber, |time| Value::Number(time.as_microsecond()))),
        ("deleted_by", text(resource.deleted_by.clone())),
        ("spec", Value::Text(spec)),
        ("state", Value::Text(document)),
        ("object", Value::Text(render::text(resource))),
        ("sealed", text(stored.sealed.clone())),
    ];
    let assigned = values.into_iter().map(|(column, value)| {
        let placeholder = parameters.add(value);
        match (column, dialect) {
            ("spec", Dialect::Postgres) => (column, format!("{placeholder}::jsonb")),
            _ => (column, placeholder),
        }
    });
    Ok(assigned.collect())
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
