//! Secret stores: one contract, memory and Google Secret Manager.
//!
//! [`SecretStore`] is the promise. [`MemoryStore`] keeps it within the process, [`GoogleSecretManager`] at Google; the
//! suite in `tests/store/conformance.rs` holds both to it. No method retries: [`StoreError`] says
//! whether another attempt may help, and the caller knows how much time it has.

pub mod error;
pub mod google;
pub mod label;
pub mod memory;
pub mod name;
pub mod promise;

pub use error::{ErrorKind, Operation, StoreError};
pub use google::GoogleSecretManager;
pub use memory::MemoryStore;
pub use name::{InvalidName, Location, ProjectId, SecretId, VersionNumber};
pub use promise::{
    Capabilities, Metadata, NewSecret, Permission, Permissions, Replica, Replication, Secret, SecretStore, Version,
    VersionState, VersionSummary,
};
