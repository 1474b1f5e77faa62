//! Store one cluster's pull secret, then prove that it can be read back.
//!
//! The loop is observe → [`decide`] → act, again and again until what is seen is what is wanted; a run that finds
//! it so from the start writes nothing. [`run`](run::run) carries it out, [`settings`] reads what it is to do,
//! [`report`] tells how it ended.

pub mod decide;
pub mod record;
pub mod report;
pub mod run;
pub mod settings;

mod act;
mod ending;
mod observe;
mod session;
mod source;

pub use ending::Ending;
pub use run::run;
pub use settings::Settings;
