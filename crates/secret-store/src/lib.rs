//! Secret stores: one contract; in memory and, with the feature `google`, Google Secret Manager.
//!
//! [`SecretStore`] is the contract. No method retries: [`StoreError`] states if another attempt may help, and the caller
//! knows the remaining time.
//!
//! | invariant | test |
//! |---|---|
//! | Every store passes one suite. | `tests/store/conformance.rs` |
//! | A version may have been added although the call failed. | `tests/store/failures/refusals.rs` |
//! | Content that does not match its checksum is not returned. | `tests/store/failures/answers.rs` |
//! | Neither errors nor `Debug` print content or credentials. | `tests/store/failures/secrecy.rs` |
//!
//! `docs/guides/providers/README.md` describes how to add a provider.
//!
//! ```
//! use secret_store::{MemoryStore, NewSecret, Replication, SecretStore as _, Version};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let store = MemoryStore::new();
//! let secret = "pull-secret".parse()?;
//! let replication = Replication::Automatic { kms_key: None };
//! let new = NewSecret { labels: [].into(), annotations: [].into(), replication };
//! store.create(&secret, &new).await?;
//! let number = store.add_version(&secret, &b"{}".to_vec().into()).await?;
//! assert!(matches!(store.read_version(&secret, number).await?, Version::Live(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod contract;
pub mod error;
#[cfg(feature = "google")]
pub mod google;
pub mod label;
pub mod memory;
pub mod name;
pub mod settings;

pub use contract::{
    Capabilities, ListedSecrets, Metadata, NewSecret, Permission, Permissions, Replica, Replication, Secret,
    SecretStore, Version, VersionState, VersionSummary,
};
pub use error::{ErrorKind, Operation, StoreError};
#[cfg(feature = "google")]
pub use google::{GoogleProjects, GoogleSecretManager};
pub use memory::MemoryStore;
pub use name::{InvalidName, Location, ProjectId, SecretId, VersionNumber};
pub use settings::{Endpoint, EndpointUrl, InvalidEndpoint, Settings};
