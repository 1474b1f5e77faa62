//! The ledger's database and keys.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use accounts_mgmt::Ksuid;
use daemon::retry::Transient;
use database::sealed::{Bound, Keyring, Unopened};
use database::{Database, DatabaseError, Parameters, Transaction};
use jiff::Timestamp;
use registry_account::name::CredentialId;
use secrecy::{ExposeSecret as _, SecretString};

use super::rows::{self, NewEvent, event_insert};
use super::schema::SCHEMA;
use crate::credential::{Credential, RegistryName};
use crate::rotation::{RotationName, RotationPhase};

/// The ledger; clones share its database.
#[derive(Clone)]
pub struct Ledger {
    database: Database,
    keyring: Arc<Keyring>,
}

/// A failure of the ledger.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LedgerError {
    /// The database.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A password cannot be sealed.
    #[error("cannot seal the password of credential {0}: check the configured keys")]
    Unsealed(CredentialId),
    /// A password cannot be opened.
    #[error("cannot open the password of credential {credential}")]
    Unopened {
        /// The credential.
        credential: CredentialId,
        /// The cause.
        #[source]
        cause: Unopened,
    },
    /// The token of a credential of AMS cannot be sealed or opened.
    #[error("cannot seal or open the token of credential {0} of AMS: check the configured keys, then import again")]
    AmsToken(Ksuid),
    /// There is no such credential.
    #[error("there is no credential {0} in the ledger: list those of the cluster")]
    Absent(CredentialId),
    /// The credential has no cluster.
    #[error("credential {0} waits in the pool: there is nothing to replace")]
    InPool(CredentialId),
    /// A rotation has the name.
    #[error("there is a rotation {0} already: choose another name")]
    RotationExists(RotationName),
    /// There is no such rotation.
    #[error("there is no rotation {0}: `pull-secret credentials rotation status` lists them")]
    NoRotation(RotationName),
    /// Another rotation of the registry is not over.
    #[error("rotation {name} of registry {registry} is not over: wait for its end, or abort it")]
    RotationOpen {
        /// The registry.
        registry: RegistryName,
        /// The other one.
        name: RotationName,
    },
    /// The rotation is over.
    #[error("rotation {name} is over ({phase}): start another one")]
    RotationOver {
        /// Its name.
        name: RotationName,
        /// Its phase.
        phase: RotationPhase,
    },
    /// The rotation moves clusters away from AMS, which has their former credentials.
    #[error(
        "rotation {0} moves clusters away from AMS: abort it without --put-back, and give clusters AMS's credential back with \
         `pull-secret credentials ams back`"
    )]
    NoPutBack(RotationName),
    /// The credential waits beside one of AMS.
    #[error(
        "credential {0} waits beside that of AMS, and no cluster uses it: move its cluster with `pull-secret credentials ams move`, or \
         take it back with `pull-secret credentials ams back`"
    )]
    Held(CredentialId),
    /// The newest link of the chain of events was changed.
    #[error(
        "the chain of events ends in link {0}, which was changed, or made without the ledger's key: run `pull-secret credentials audit \
         verify`, and restore the ledger from a backup or keep a copy of it for an investigation"
    )]
    Chain(i64),
    /// The credential is beyond that.
    #[error("credential {0} is being retired or is over: nothing can be changed any more")]
    TooLate(CredentialId),
}

// === impl LedgerError ===

impl Transient for LedgerError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_transient())
    }
}

// === impl Ledger ===

impl Ledger {
    /// Returns the ledger in a database.
    pub fn new(database: Database, keyring: Arc<Keyring>) -> Self {
        Self { database, keyring }
    }

    /// Applies the missing migrations and returns their ids; see [`database::Schema::migrate`].
    pub async fn migrate(&self, lock_timeout: Duration, now: Timestamp) -> Result<Vec<&'static str>, LedgerError> {
        Ok(SCHEMA.migrate(&self.database, lock_timeout, now.as_microsecond()).await?)
    }

    /// Returns its database, for probes and metrics.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Returns the keys that seal passwords.
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Returns the password of a credential; `None` if it was never received, or is erased.
    pub async fn password(&self, credential: &Credential) -> Result<Option<SecretString>, LedgerError> {
        let mut parameters = Parameters::default();
        let id = parameters.add(rows::text(credential.id));
        let rows = self.database.fetch(format!("SELECT password FROM credentials WHERE id = {id}"), parameters).await?;
        let sealed = rows.first().map(|row| row.optional_text(0)).transpose()?.flatten();
        sealed.map(|sealed| self.open(credential, &sealed)).transpose()
    }

    fn open(&self, credential: &Credential, sealed: &str) -> Result<SecretString, LedgerError> {
        let unopened = |cause| LedgerError::Unopened { credential: credential.id, cause };
        let bytes = self.keyring.open(Bound::to(&credential.binding()), sealed).map_err(unopened)?;
        let text = str::from_utf8(&bytes).map_err(|_quotes| unopened(Unopened::Damaged))?;
        Ok(SecretString::from(text))
    }

    /// Seals a password for its credential.
    pub(super) fn seal(&self, credential: &Credential, password: &SecretString) -> Result<String, LedgerError> {
        let bytes = password.expose_secret().as_bytes().to_vec();
        let sealed = self.keyring.seal(Bound::to(&credential.binding()), bytes);
        sealed.ok_or(LedgerError::Unsealed(credential.id))
    }
}

/// Adds an event.
pub(super) async fn add_event(
    transaction: &mut Transaction,
    event: &NewEvent<'_>,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let statement = event_insert(event, now);
    transaction.execute(statement.sql, statement.parameters).await?;
    Ok(())
}

impl fmt::Debug for Ledger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ledger").finish_non_exhaustive()
    }
}
