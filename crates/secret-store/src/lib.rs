//! Secret stores: one contract; in memory and, with the features `google`, `vault`, `aws` and `azure`, Google Secret Manager,
//! OpenBao and HashiCorp Vault, AWS Secrets Manager, Azure Key Vault.
//!
//! [`SecretStore`] is the contract. No method retries: [`StoreError`] states if another attempt may help, and the caller
//! knows the remaining time.
//!
//! | invariant | test |
//! |---|---|
//! | Every store passes one suite. | `tests/store/conformance.rs` |
//! | A version may have been added although the call failed. | `tests/store/failures/refusals.rs` |
//! | Content that does not match its checksum is not returned. | `tests/store/failures/answers.rs` |
//! | Neither errors nor `Debug` print content or credentials. | `tests/store/failures/secrecy.rs`, `tests/store/{vault,aws,azure}/secrecy.rs` |
//! | No version is lost or doubled when a server is killed. | `tests/store/vault/outages.rs` |
//! | An addition that ends anywhere is completed or ignored. | `tests/store/{aws,azure}/interrupted.rs` |
//! | Of many writers of a number one wins, and readers get its version. | `tests/store/aws/interrupted.rs`, `tests/store/azure/writers.rs` |
//! | A token goes to the store and to the service that issued it, and nowhere else. | `tests/store/azure/refusals.rs` |
//!
//! `docs/guides/providers/README.md` describes how to add a provider.
//!
//! ```
//! use secret_store::{MemoryStore, NewSecret, NewVersion, Replication, SecretStore as _, Version, VersionNumber};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let store = MemoryStore::new();
//! let secret = "pull-secret".parse()?;
//! let replication = Replication::Automatic { kms_key: None };
//! let new = NewSecret { labels: [].into(), annotations: [].into(), replication };
//! store.create(&secret, &new).await?;
//! let content = b"{}".to_vec().into();
//! let number = store.add_version(&secret, &NewVersion::without_record(VersionNumber::FIRST, &content)).await?;
//! assert!(matches!(store.read_version(&secret, number).await?, Version::Live(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(any(feature = "aws", feature = "azure", feature = "google", feature = "vault"))]
pub mod any;
#[cfg(feature = "aws")]
pub mod aws;
#[cfg(feature = "azure")]
pub mod azure;
pub mod contract;
#[cfg(any(feature = "aws", feature = "azure", feature = "vault"))]
mod encoding;
pub mod error;
#[cfg(feature = "google")]
pub mod google;
pub mod label;
pub mod memory;
pub mod name;
#[cfg(any(feature = "aws", feature = "azure"))]
mod passed_over;
#[cfg(any(feature = "aws", feature = "azure", feature = "vault"))]
mod quote;
pub mod settings;
#[cfg(feature = "vault")]
pub mod vault;

#[cfg(any(feature = "aws", feature = "azure", feature = "google", feature = "vault"))]
pub use any::AnyStore;
#[cfg(feature = "aws")]
pub use aws::AwsStore;
#[cfg(feature = "azure")]
pub use azure::AzureStore;
pub use contract::{
    Adds, Capabilities, Destroys, ListedSecrets, LiveVersion, Metadata, NewSecret, NewVersion, Permission, Permissions,
    Records, Replica, Replication, Secret, SecretStore, Version, VersionState, VersionSummary,
};
pub use error::{ErrorKind, Operation, StoreError};
#[cfg(feature = "google")]
pub use google::{GoogleProjects, GoogleSecretManager};
pub use memory::{MemoryStore, RecordingMemoryStore};
pub use name::{InvalidName, Location, ProjectId, SecretId, StorePath, VersionNumber};
pub use settings::{
    AwsIdentity, AwsKeys, AwsSettings, AzureIdentity, AzureSettings, Endpoint, EndpointUrl, InvalidEndpoint, Settings,
    StoreSettings, VaultLogin, VaultSettings,
};
#[cfg(feature = "vault")]
pub use vault::VaultStore;
