//! The API's decisions: pure functions from a resource and a request to what becomes of it.

pub mod aggregate;
pub mod mapping;
