//! Accounts at image registries: one contract; in memory and, with a feature each, Amazon's, Azure's and Google's registries, Harbor, Quay and
//! Red Hat's. Probes of credentials.
//!
//! [`Registry`] is the contract. No method retries: [`AccountError`] states if another attempt may help, and each call leads
//! to the same state when it is repeated. [`probe`] tries a credential at its registry as a node would; it needs no account.
//!
//! A name is random and used once ([`AccountName::random`]): a registry revives the tokens of a deleted account when its
//! name is used again. Each account carries the [`CredentialId`] that it was made for. So `create` is repeated after an
//! answer that was lost, and never takes an account that belongs to another credential. [`Capabilities`] states in what registries
//! differ.
//!
//! | invariant | test |
//! |---|---|
//! | Every registry passes one suite. | `tests/registry/conformance.rs` |
//! | A name that another credential has is not taken over. | `tests/registry/conformance/creation.rs` |
//! | An account that was kept otherwise than it was sent is not returned. | `tests/registry/quay/refusals.rs`, `tests/registry/harbor/refusals.rs` |
//! | Each failure of each call has its kind, and none repeats what the registry says. | `tests/registry/refusals.rs`, `tests/registry/secrecy.rs` |
//! | A probe goes only to allowed addresses, and quotes nothing. | `crates/global-pull-secret/tests/controller/probing.rs` |
//! | A probe distinguishes a credential without permission from one that pulls. | `tests/registry/probing.rs` |
//!
//! `docs/guides/registries` describes the set-up of each: an organization at Quay, a project at Harbor, a partner at Red Hat, an
//! identity whose tokens are minted at the clouds'.
//!
//! ```
//! use registry_account::{AccountName, MemoryRegistry, NewAccount, Registry as _};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let registry = MemoryRegistry::new();
//! let name = AccountName::random(&"hf-pull".parse()?, 0x5eed);
//! let credential = "01932b5c-9f3e-7c2a-8e1d-0123456789ab".parse()?;
//! let new = NewAccount { name: name.clone(), credential, description: "cluster cls-123".to_owned() };
//! let created = registry.create(&new).await?;
//! assert_eq!(created.account.credential, Some(credential));
//! registry.permit(&name).await?;
//! assert!(registry.delete(&name).await?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "acr")]
pub mod acr;
#[cfg(feature = "client")]
mod client;
pub mod contract;
#[cfg(any(feature = "harbor", feature = "red_hat"))]
mod description;
#[cfg(feature = "ecr")]
pub mod ecr;
pub mod error;
#[cfg(feature = "gar")]
pub mod gar;
#[cfg(feature = "harbor")]
pub mod harbor;
#[cfg(feature = "client")]
mod identity;
pub mod memory;
pub mod name;
pub mod probe;
#[cfg(feature = "quay")]
pub mod quay;
#[cfg(feature = "red_hat")]
pub mod red_hat;
#[cfg(any(feature = "acr", feature = "ecr"))]
mod refusals;
#[cfg(feature = "client")]
mod request;
#[cfg(feature = "tokens")]
pub mod tokens;

#[cfg(feature = "acr")]
pub use acr::{AcrRegistry, AcrSettings};
pub use contract::{
    Account, Capabilities, Credential, Disables, Identities, ListedAccount, ListedAccounts, Lists, Login, NewAccount,
    Passwords, Registry, Usage,
};
#[cfg(feature = "ecr")]
pub use ecr::{EcrRegistry, EcrSettings};
pub use error::{AccountError, ErrorKind, Operation};
#[cfg(feature = "gar")]
pub use gar::{GarRegistry, GarSettings, ServiceAccount};
#[cfg(feature = "harbor")]
pub use harbor::{HarborRegistry, HarborSettings, ProjectName, RobotPrefix, Username};
#[cfg(feature = "client")]
pub use identity::IdentitySecret;
pub use memory::{Fault, MemoryRegistry, Visit};
pub use name::{AccountName, CredentialId, Image, InvalidName, NamePrefix, Reference, Repository};
#[cfg(feature = "quay")]
pub use quay::{Issuer, OrganizationName, QuayRegistry, QuaySettings, TeamName};
#[cfg(feature = "red_hat")]
pub use red_hat::{Partner, RedHatRegistry, RedHatSettings};
