//! Quay's client: its requests, its own refusals, and secrecy.

mod federation;
mod refusals;
mod requests;
mod secrecy;

pub(crate) use requests::robot;
