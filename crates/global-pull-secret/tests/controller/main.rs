//! The controller as a whole: on the emulator, and on a real kube-apiserver with its controllers; with the RBAC of `deploy/`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "in a test that is the right way to fail"
)]

mod commands;
mod faults;
mod killed;
mod kubelet;
mod labelled;
mod leaks;
mod place;
mod probing;
mod registry;
mod rig;
mod story;
