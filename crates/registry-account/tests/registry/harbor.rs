//! Harbor's client: its requests, its own refusals, its robots, and secrecy.

mod refusals;
mod requests;
mod robots;
mod secrecy;

pub(crate) use requests::robot;
