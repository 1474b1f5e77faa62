//! Runs the adapter with the real API server, an in-process broker, and Kubernetes (emulated or real).

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod api;
mod certificate;
mod conflicts;
mod deletion;
mod deployed;
mod drift;
mod environment;
mod go_api;
mod node;
mod outages;
mod quota;
mod replicas;
mod stored;
mod story;
mod world;
