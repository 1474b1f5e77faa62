//! Fault tests of the API server: concurrency, outages, kills, bad databases, and sequences that a model predicts.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests fail by panics and print the missing parts"
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
