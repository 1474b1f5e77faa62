//! Errors that prevent a service from starting, or end it.

use daemon::serve::ListenError;
use hyperfleet_client::SetupError;
use registry_account::AccountError;

use crate::credential::RegistryName;
use crate::ledger::LedgerError;

/// Errors that prevent a service from starting. Each names the setting and no value.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting that cannot be used, as a line for a message.
    #[error("{0}")]
    Setting(String),
    /// The client of the API cannot be set up.
    #[error(transparent)]
    Client(#[from] SetupError),
    /// The client of a registry cannot be set up.
    #[error("registry {registry}")]
    Registry {
        /// The registry.
        registry: RegistryName,
        /// The cause.
        #[source]
        cause: AccountError,
    },
    /// An address cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// An error that ends a running service.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The database cannot be used by this version.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Passwords are sealed with keys that are not configured.
    #[error(
        "keys: passwords in the ledger are sealed with keys that are not configured: {0}; configure them again, and withdraw a key \
         only when hyperfleet_credentials_passwords_on_old_keys is 0; `pull-secret credentials rekey --remove-lost-key ID` erases \
         what is sealed with a key that is lost"
    )]
    MissingKeys(String),
}
