//! Conformance of every store to the contract; failures and requests of Google Secret Manager.

#![expect(clippy::unwrap_used, reason = "what is missing fails the test that looks for it")]

mod conformance;
mod failures;
mod fake;
mod identity;
mod requests;
mod rig;
