//! Tries to break the API server: many at once, outages, kills, bad databases; a model says what must come out.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "in a test that is the right way to fail, and to say what is missing"
)]

mod concurrency;
mod model;
mod network;
mod outages;
mod plans;
mod postgresql;
mod process;
mod rig;
mod sequences;
mod startup;
mod streams;
