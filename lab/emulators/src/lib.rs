//! Servers that speak the real protocols on a laptop, with scripted faults.
//!
//! They are for development and tests only: data is stored unencrypted and readable by every process that may read the folder.
//!
//! | server | emulated | held to |
//! |---|---|---|
//! | [`kubernetes`] | the API server, with controllers and Pods as processes | a real control plane (`tests/differences`), kubectl, client-go |
//! | [`secret_manager`] | Google Secret Manager, REST and gRPC | Google's clients (`tests/real_google_clients.rs`) |
//! | [`key_vault`] | Azure Key Vault and the token endpoint of Entra | Microsoft's clients (`tests/real_azure_clients.rs`) |
//! | [`quay`] | Quay's API, tokens and logs | answers of Quay's own code, a real registry (`tests/real_registry.rs`) |
//! | [`harbor`] | Harbor's robots and tokens | read in Harbor's code; nothing to hold it to |
//! | [`red_hat`] | Red Hat's registry service accounts | the public design; the API is private |
//! | [`accounts_mgmt`] | the registry credentials of AMS | nothing: no build can be had |
//!
//! Differences and guesses are in `docs/reference/emulators.md`. [`real_registry`] puts a real registry beside the emulated [`quay`].

pub mod accounts_mgmt;
mod basic;
mod browser_guard;
mod certificates;
mod connections;
mod folder;
pub mod harbor;
mod http_faults;
pub mod key_vault;
pub mod kubernetes;
pub mod quay;
pub mod real_registry;
pub mod red_hat;
mod responses;
mod scripted;
pub mod secret_manager;
mod serving;
mod signed;
mod start_error;

pub use start_error::StartError;
