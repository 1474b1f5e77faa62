//! Decides the next step of a credential, the size of the pool, and the next call of a registry.

pub mod ams;
pub mod budget;
pub mod credential;
pub mod facts;
pub mod pool;
mod retire;
pub mod rotation;
#[cfg(test)]
mod tests;
mod token;

pub use budget::{Budget, Eta, Grant, Work, eta, etas, grant};
pub use credential::{lane, step};
pub use facts::{Facts, Step};
pub use pool::{Pool, reserve};
pub use rotation::{Judged, RotationFacts, RotationStep, judge, move_obstacle, obstacle, rotation_eta, rotation_step};
