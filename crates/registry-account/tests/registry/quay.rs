//! Quay's client: its requests, the failures of each, and secrecy.

mod federation;
mod refusals;
mod requests;
mod secrecy;
