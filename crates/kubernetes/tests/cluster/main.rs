//! The crate against an API server: each test on the emulator and on a real kube-apiserver.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test that is the right way to fail"
)]

mod access;
mod connection;
mod events;
mod images;
mod jobs;
mod leases;
mod network;
mod objects;
mod preconditions;
mod refusals;
mod rig;
mod secrets;
