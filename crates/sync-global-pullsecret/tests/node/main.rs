//! The syncer on a node: a simulated one that is killed and cut off at every step, and one with a real systemd.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "a missing real part is named on stderr")]

mod api;
mod confirming;
mod files;
mod kubernetes;
mod memory_disk;
mod program;
mod real;
mod simulated;
mod systemd;
