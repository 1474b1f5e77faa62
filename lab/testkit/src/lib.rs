//! Shared rigs of tests: a Job with its emulator, a fleet plane, an API server (as a process or in this one), brokers.
//!
//! - [`go_api`] shows an API as HyperFleet's Go server serves it.
//! - [`clients`] finds the clients in Python and Node that this project is held to, and [`go`] the Go programs.
//! - [`program`] finds the programs under test beside the test itself, and refuses one that is older than its sources.
//! - [`api_server`] is an API server without a Job: the emulator with RBAC, or a real one.
//! - [`environment`] names real parts that are missing; with `CI=true` a missing part is a failure.
//! - [`fake`] is an HTTP server that answers as a test wants.
//! - [`key_vault`] is a Key Vault emulator with a token for it.
//! - [`quay`] is a Quay emulator with a client for it.
//! - [`registry`] is a real registry that takes a Quay emulator's tokens, and skopeo.
//! - [`rights`] proves that a `ServiceAccount` needs each of its rights.
//! - [`tokens`] signs tokens as an issuer does.
//! - [`leaks::check`] fails on any text that holds a test credential.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs,
    missing_debug_implementations,
    reason = "rigs of tests fail by panicking, print which part is missing, and are named after what they start"
)]

pub mod api;
pub mod api_server;
pub mod broker;
pub mod clients;
pub mod cluster;
pub mod environment;
pub mod fake;
pub mod fleet;
pub mod go;
pub mod go_api;
pub mod http;
pub mod hyperfleet;
pub mod key_vault;
pub mod leaks;
pub mod program;
pub mod quay;
pub mod registry;
pub mod rig;
pub mod rights;
pub mod tokens;
