//! Servers that speak the real protocols on a laptop, with scripted faults.
//!
//! They are for development and tests only: data is stored unencrypted and readable by every process that may read the folder.
//! [`real_registry`] puts a real registry beside the emulated [`quay`].

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
