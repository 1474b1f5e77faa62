//! The program as the kubelet starts it.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "what is missing fails the test that looks for it"
)]

mod answers;
mod federation;
mod guide;
mod node;
mod rig;
mod tree;
