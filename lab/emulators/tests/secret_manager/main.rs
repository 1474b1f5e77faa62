//! The Secret Manager emulator over a real socket, one behaviour family a file.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what is missing fails the test that looks for it")]

mod client;
mod durability;
mod faults;
mod limits;
mod rest;
mod rules;
mod time;
