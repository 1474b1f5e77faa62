//! The vocabulary that every crate shares: ids, generations, conditions, reports, reasons, and every name that is written
//! to the world.
//!
//! | invariant | test |
//! |---|---|
//! | A condition and a report survive reading and writing; absent members stay absent. | `condition::tests`, `report::tests` |
//! | A generation is a JSON number from 1 to the signed 64-bit maximum; 0 means "none observed". | `generation::tests` |
//! | A reason's name, order and meaning come from one declaration. | `reason::tests` |
//! | Names of Jobs fit into a label and stay distinct. | `names::tests` |
//!
//! `docs/reference/names.md` is generated from [`names::GROUPS`], `docs/reference/exit-codes.md` from [`job::Reason`].
//!
//! ```
//! use fleet_model::{Generation, Report, Status, names};
//!
//! let report: Report = serde_json::from_str(
//!     r#"{"adapter": "pullsecret", "observed_generation": 3, "conditions": [{"type": "Available", "status": "True"}]}"#,
//! )?;
//! assert_eq!(report.observed_generation, Generation::from(3));
//! assert_eq!(report.status(names::condition::AVAILABLE), Status::True);
//! # Ok::<(), serde_json::Error>(())
//! ```

pub mod cause;
pub mod condition;
pub mod copy;
mod generation;
pub mod id;
pub mod job;
pub mod metrics;
pub mod names;
pub mod owner;
mod problem;
mod reason;
pub mod report;
pub mod trace;

pub use cause::{Cause, Causes};
pub use condition::{CamelCase, Condition, ReportedCondition, Status, UNKNOWN_TIME};
pub use copy::StoredCopy;
pub use generation::Generation;
pub use id::{ClusterId, Incarnation, InvalidId};
pub use owner::Owner;
pub use report::{Report, ReportMetadata, Transition};
pub use trace::{InvalidTraceContext, TraceContext};
