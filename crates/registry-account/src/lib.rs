//! Accounts at image registries.
pub mod contract;
pub mod error;
pub mod name;
pub mod probe;
