//! The `OpenAPI` document held to the server that it describes, by its own examples and by schemathesis.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "in a test that is the right way to fail, and to say what is missing"
)]

mod contract;
mod examples;
mod fuzz;
mod paths;
mod rig;
mod streams;
