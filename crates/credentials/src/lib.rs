//! Which registry credential a cluster should have now.

pub mod credential;
pub mod decide;
pub mod ledger;
pub mod reason;
pub mod run;
pub mod state;
pub mod sweep;
