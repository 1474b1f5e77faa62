//! The client against a server with scripted faults.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a missing value fails the test")]

mod calls;
mod changes;
mod identity;
mod lists;
mod probe;
mod real;
mod reports;
mod retries;
mod server;
