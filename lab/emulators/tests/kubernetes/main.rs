//! The Kubernetes emulator over a real socket, one behaviour family a file.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what is missing fails the test that looks for it")]

mod access;
mod apply;
mod client;
mod deletion;
mod durability;
mod faults;
mod lists;
mod objects;
mod patches;
mod rules;
mod tables;
mod watches;
