//! Field ownership: server-side apply and the bookkeeping of `metadata.managedFields`.

pub(crate) mod apply;
mod compare;
pub(crate) mod managed;
pub(crate) mod schema;
mod set;
#[cfg(test)]
mod tests;

pub(crate) use compare::doubled;
pub(crate) use schema::Schema;
