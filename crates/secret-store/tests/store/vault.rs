//! OpenBao: a real one for what only it can show, and one that answers as a test wants for its refusals.

pub(crate) mod hashicorp;
mod logins;
mod mounts;
mod outages;
mod permissions;
mod refusals;
mod requests;
mod secrecy;
pub(crate) mod server;
