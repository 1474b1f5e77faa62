//! Decides the next step of a credential, the size of the pool, and the next call of a registry.

pub mod budget;
pub mod credential;
pub mod pool;
mod retire;
#[cfg(test)]
mod tests;

pub use budget::{Budget, Eta, Grant, Work, eta, etas, grant};
pub use credential::{Facts, Step, lane, step};
pub use pool::{Pool, reserve};
