//! The client against a server with scripted faults.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what is missing fails the test that looks for it")]

mod calls;
mod changes;
mod identity;
mod lists;
mod real;
mod reports;
mod retries;
mod server;
