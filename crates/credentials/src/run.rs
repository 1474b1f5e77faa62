//! The worker: claims a due row, records the action, carries it out, records the answer.

mod act;
pub mod clusters;
mod memory;
mod outcome;
mod served;
mod step;
mod worker;

pub use clusters::{ClusterError, ClusterErrorKind, Clusters, Document, Entry, ObserveRequest, Observed};
pub use memory::MemoryClusters;
pub use served::{Served, Sources};
pub use worker::{RunError, StepResult, Worker};
