//! What every program here shares: environment, logs, files, retries, shutdown.

pub mod environment;
pub mod file;
pub mod log;
pub mod retry;
pub mod shutdown;
