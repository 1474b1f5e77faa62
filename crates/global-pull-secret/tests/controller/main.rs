//! The controller as a whole: on the emulator, on a real kube-apiserver with the RBAC of `deploy/`, and on a complete real node.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "in a test that is the right way to fail"
)]

mod certificate;
mod cluster;
mod commands;
mod faults;
mod killed;
mod kubelet;
mod labelled;
mod leaks;
mod node;
mod permissions;
mod plan;
mod probing;
mod registry;
mod rig;
mod story;
mod traces;
