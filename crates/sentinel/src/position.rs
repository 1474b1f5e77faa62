//! The position of a leader in the change stream, which its successor goes on from.

mod records;
mod store;
mod tracker;
mod version;

pub use records::{Record, Recorder, Records};
pub use store::PositionStore;
pub use tracker::Tracker;
pub use version::{InvalidPosition, Position, Version};
