//! Scenarios of the whole fleet plane.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test that is the right way to fail"
)]

mod attacks;
mod charts;
mod copies;
mod credentials;
mod demo;
mod explain;
mod go_requests;
mod go_services;
mod guides;
mod hardening;
mod helm;
mod images;
mod installation;
mod leaks;
mod local;
mod monitoring;
mod on_call;
mod processes;
mod real_fleet;
mod registry_keys;
mod release;
mod restore;
mod retry;
mod rotate;
mod sign_in;
mod status;
mod store_drift;
mod stores;
mod traces;
mod why;
