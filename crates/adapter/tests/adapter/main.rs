//! The adapter beside the real API server, a broker in the process, and Kubernetes: the emulator's or a real one.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "in a test that is the right way to fail"
)]

mod api;
mod conflicts;
mod deletion;
mod drift;
mod node;
mod outages;
mod place;
mod quota;
mod replicas;
mod story;
mod world;
