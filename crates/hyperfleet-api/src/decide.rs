//! The API's decisions: pure functions from a resource and a request to the resource that is stored.

pub mod aggregate;
pub mod body;
pub mod change;
pub mod deletion;
pub mod destination;
mod draft;
pub mod lost;
pub mod mapped;
pub mod misplaced;
pub mod report;
pub mod restore;
pub mod rules;
pub mod same;
pub mod tombstone;
pub mod transitions;
