//! Every store held to the one promise, and Google Secret Manager's failures and requests.

#![expect(clippy::unwrap_used, reason = "what is missing fails the test that looks for it")]

mod conformance;
mod failures;
mod fake;
mod identity;
mod requests;
mod rig;
