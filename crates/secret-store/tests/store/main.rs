//! Conformance of every store to the contract; failures and requests of each provider.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a missing value fails the test")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says why")]

mod aws;
mod azure;
mod conformance;
mod failures;
mod identity;
mod requests;
mod rig;
mod vault;
