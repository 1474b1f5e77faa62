//! Conformance of every store to the contract; failures and requests of Google Secret Manager.

#![expect(clippy::unwrap_used, reason = "a missing value fails the test")]

mod conformance;
mod failures;
mod fake;
mod identity;
mod requests;
mod rig;
