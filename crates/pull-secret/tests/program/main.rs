//! The program as its users start it; the Pull Secret Job against the Secret Manager emulator.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "in a test that is the right way to fail, and to say what is missing"
)]

mod api;
mod as_job;
mod authentication;
mod aws;
mod commands;
mod config_dump;
mod configuration;
mod consistency;
mod context;
mod costs;
mod credentials;
mod doctor;
mod faults;
mod interleavings;
mod keys;
mod kill;
mod kubernetes_login;
mod kubernetes_secret;
mod leaks;
mod line;
mod mirror;
mod modes;
mod outputs;
mod permissions;
mod prune;
mod races;
mod sentinel;
mod stores;
mod story;
mod sweep;
mod validate;
mod vault;
