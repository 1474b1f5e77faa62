//! Which registry credential a cluster should have now.
pub mod credential;
pub mod decide;
pub mod reason;
pub mod state;
