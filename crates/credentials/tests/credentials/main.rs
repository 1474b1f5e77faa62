//! The ledger and its worker on SQLite and on a real PostgreSQL, with registries and clusters in memory.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod chain;
mod database;
mod entries;
mod harbor;
mod http;
mod http_kubernetes;
mod http_rig;
mod kills;
mod leaving;
mod leaving_guards;
mod leaving_rig;
mod ledger;
mod people;
mod pool;
mod put_back;
mod replicas;
mod rig;
mod rotations;
mod secrecy;
mod sweep;
mod tokens;
mod world;
