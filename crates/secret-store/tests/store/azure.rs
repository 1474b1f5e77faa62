//! Azure Key Vault: an emulated one, and one that answers as a test wants.

mod deletion;
mod fake_vault;
mod interrupted;
pub(crate) mod key_vault;
mod refusals;
mod requests;
mod secrecy;
mod writers;
