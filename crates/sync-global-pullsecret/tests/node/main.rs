//! The syncer on a node: a simulated one that is killed and cut off at every step, and one with a real systemd.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod api;
mod files;
mod memory_disk;
mod program;
mod real;
mod simulated;
mod systemd;
