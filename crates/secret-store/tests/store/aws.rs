//! AWS Secrets Manager: a stand-in that others have written for what it gets right, and one that answers as a test wants.

mod between;
mod current;
mod deletion;
mod interrupted;
pub(crate) mod moto;
mod refusals;
mod requests;
mod secrecy;
