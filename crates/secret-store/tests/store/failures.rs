//! Google Secret Manager's failures, and those of whatever stands between it and its caller.

mod answers;
mod refusals;
mod secrecy;
mod transport;
