//! Conformance of every registry to the contract; probes; requests, refusals and secrecy of the clients.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a missing value fails the test")]

mod acr;
mod conformance;
mod ecr;
mod gar;
mod harbor;
mod lag;
mod probing;
mod quay;
mod red_hat;
mod refusals;
mod rig;
mod secrecy;
