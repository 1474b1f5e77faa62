//! What every program here shares: environment, logs, files, retries, shutdown.

pub mod backoff;
pub mod environment;
pub mod file;
pub mod log;
#[cfg(feature = "output")]
pub mod output;
#[cfg(feature = "serve")]
pub mod probes;
pub mod program;
pub mod proxy;
pub mod retry;
#[cfg(feature = "serve")]
pub mod serve;
pub mod settings;
pub mod shutdown;
