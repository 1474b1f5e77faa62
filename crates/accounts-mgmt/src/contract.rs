//! AMS as the import needs it.

use std::fmt;

use jiff::Timestamp;
use secrecy::SecretString;

use crate::error::AmsError;
use crate::id::{Ksuid, RegistryId};

/// The largest page that AMS answers.
pub const PAGE: u32 = 100;

/// The registry credentials of an AMS. No call is retried here.
pub trait Accounts: Send + Sync {
    /// Lists the credentials after an id, in the order of ids: at most [`PAGE`] of them.
    fn credentials(&self, after: Option<&Ksuid>) -> impl Future<Output = Result<Page, AmsError>> + Send;

    /// Counts the credentials of a registry.
    fn count(&self, registry: &RegistryId) -> impl Future<Output = Result<u64, AmsError>> + Send;

    /// Reads a registry; `None` if there is none with the id.
    fn registry(&self, id: &RegistryId) -> impl Future<Output = Result<Option<Registry>, AmsError>> + Send;

    /// Reads a credential; `None` if there is none with the id.
    fn credential(&self, id: &Ksuid) -> impl Future<Output = Result<Option<ImportedCredential>, AmsError>> + Send;

    /// Deletes a credential, for good. Returns false if there is none with the id.
    fn delete(&self, id: &Ksuid) -> impl Future<Output = Result<bool, AmsError>> + Send;
}

/// A part of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// The credentials, in the order of ids.
    pub items: Vec<ImportedCredential>,
    /// Number of all credentials after the id that was asked for.
    pub total: u64,
}

/// A credential as AMS has it.
#[derive(Clone)]
pub struct ImportedCredential {
    /// Its id.
    pub id: Ksuid,
    /// The registry.
    pub registry: RegistryId,
    /// The user.
    pub username: String,
    /// The password.
    pub token: SecretString,
    /// The account that owns it.
    pub account: Option<String>,
    /// The resource that it was made for: a cluster's external id, `rotating` for one that is being replaced, or nothing.
    pub resource: Option<String>,
    /// The time of its creation.
    pub created: Option<Timestamp>,
}

/// A registry as AMS has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    /// Its id.
    pub id: RegistryId,
    /// Its name.
    pub name: String,
    /// The host of images.
    pub host: String,
}

impl fmt::Debug for ImportedCredential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ImportedCredential").field("id", &self.id).finish_non_exhaustive()
    }
}
