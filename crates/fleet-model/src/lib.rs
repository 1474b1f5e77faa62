//! What things are called and what they mean: clusters, generations, reasons, names.
//!
//! Every name that this project writes to the world is a constant in [`names`], every outcome of a Job a variant of
//! [`job::Reason`]; the pages in `docs/reference/` are generated from both.

pub mod id;
pub mod job;
pub mod names;
pub mod owner;
mod reason;
pub mod trace;

pub use id::{ClusterId, Generation, InvalidId};
pub use owner::Owner;
pub use trace::{InvalidTraceContext, TraceContext};
