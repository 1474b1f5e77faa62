//! Jobs, `DaemonSets` and running Pods over a real socket, as a client sees them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what is missing fails the test that looks for it"
)]

mod client;
mod daemon_sets;
mod jobs;
