//! Failures of the store: those of its database.

use database::DatabaseError;

/// A failure of the store. Its text is for the log and is not sent to clients.
pub type StoreError = DatabaseError;

/// Returns true if the unique value of a [`DatabaseError::Duplicate`] is the id of a resource; else it is the name.
pub(crate) fn is_id(unique: &str) -> bool {
    matches!(unique, "resources.id" | "resources_pkey")
}
