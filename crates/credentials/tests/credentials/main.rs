//! The ledger and its worker on SQLite and on a real PostgreSQL, with registries and clusters in memory.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod database;
mod kills;
mod ledger;
mod people;
mod pool;
mod replicas;
mod rig;
mod secrecy;
mod sweep;
mod world;
