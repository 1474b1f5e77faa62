//! The `OpenAPI` document compared with the server, by its own examples and by schemathesis.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails by panicking, and prints which real part is missing"
)]

mod contract;
mod examples;
mod fuzz;
mod paths;
mod rig;
#[path = "../rig/server.rs"]
mod server;
mod streams;
