//! From an event to a Job to a status report.
//!
//! [`decide`] says what is to be done about one resource, and what is to be told about it; [`observe`](mod@observe) gathers
//! the facts, [`act`](mod@act) does it, [`run`](mod@run) wakes them up: upon events of the Sentinel, upon the end of Jobs,
//! and when a wait is over. What an adapter is about (preconditions, image, environment) is configuration; [`config`] has
//! the pull secret's built in.

pub mod act;
pub mod binding;
pub mod config;
pub mod decide;
pub mod dry_run;
pub mod limits;
pub mod manifest;
pub mod metrics;
pub mod observe;
pub mod outcome;
pub mod reason;
pub mod report;
pub mod run;
pub mod server;

pub use config::{Config, Plan};
pub use reason::Reason;
pub use server::{Adapter, Parts, StartError};
