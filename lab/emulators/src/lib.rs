//! Servers that speak the real protocols on a laptop, with scripted faults.
//!
//! They exist for development and tests only: nothing here keeps a secret from anybody who can reach the port or read the folder.

mod browser_guard;
mod connections;
mod folder;
pub mod kubernetes;
mod scripted;
pub mod secret_manager;
mod serving;
