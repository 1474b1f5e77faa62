//! Every rule of HyperFleet's API over HTTP, on SQLite and on a real PostgreSQL.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and prints which real part is missing"
)]

#[macro_use]
mod rig;
#[path = "../rig/server.rs"]
mod server;

mod aggregation;
mod authentication;
mod authorization;
mod bounds;
mod causes;
mod conditions;
mod configuration;
mod create;
mod deletion;
mod destination;
mod digests;
mod discards;
mod drop_in;
mod force_delete;
mod history;
mod injection;
mod isolation;
mod keys;
mod limits;
mod names_and_labels;
mod numbers;
mod order_and_fields;
mod paging;
mod patch;
mod problems;
mod pull_secret;
mod references;
mod refusals;
mod reload;
mod reports;
mod restore;
mod search;
mod service;
mod shutdown;
mod specs;
mod tenancy;
mod together;
mod tombstones;
mod watch;
mod watch_many;
mod watch_shared;
