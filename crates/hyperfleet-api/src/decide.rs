//! The API's decisions: pure functions from a resource and a request to what becomes of it.

pub mod aggregate;
pub mod body;
pub mod change;
pub mod deletion;
pub mod mapping;
pub mod report;
pub mod rules;
pub mod transitions;
