//! Opens the ledger that the settings name.

use std::path::PathBuf;
use std::sync::Arc;

use daemon::environment::Environment;
use daemon::log::causes;
use database::sealed::{Keyring, key_beside};
use database::{Database, DatabaseError};

use crate::ledger::Ledger;
use crate::ledger::schema::{COMPONENT, SCHEMA};
use crate::settings::Checked;

/// A ledger that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none yet.
    #[error("there is no ledger {}: `pull-secret credentials serve` makes it", .0.display())]
    Absent(PathBuf),
    /// The generated key beside it is gone.
    #[error(
        "the key {} of the ledger does not exist: restore it from the backup; if it is lost, `pull-secret credentials serve` makes \
         another one and names what it cannot open", .0.display()
    )]
    NoKey(PathBuf),
    /// A setting that cannot be used, as a line for a message.
    #[error("{0}")]
    Setting(String),
    /// Its schema is of an earlier version.
    #[error("the schema is not up to date: start `pull-secret credentials serve` of this version first")]
    Outdated,
    /// The database does not answer, or is another one.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Opens the ledger that the settings name. No connection is made.
///
/// # Errors
///
/// A line for a message that names the setting.
pub fn open(checked: &Checked, environment: &impl Environment, keyring: Arc<Keyring>) -> Result<Ledger, String> {
    let settings = &checked.settings.database;
    let source = settings.source(environment)?;
    let database = Database::open(&source, settings.pool.into(), &COMPONENT).map_err(|error| causes(&error))?;
    Ok(Ledger::new(database, keyring))
}

/// Opens the ledger that a service has made. Nothing is made, neither an embedded database nor the key beside it.
///
/// # Errors
///
/// [`OpenError`], also for a schema that is not up to date.
pub async fn open_existing(checked: &Checked, environment: &impl Environment) -> Result<Ledger, OpenError> {
    if let Some(file) = checked.settings.database.file() {
        let key = key_beside(file);
        if !file.exists() {
            return Err(OpenError::Absent(file.to_owned()));
        }
        if checked.settings.keys.is_empty() && !key.exists() {
            return Err(OpenError::NoKey(key));
        }
    }
    let keyring = checked.keyring().map_err(OpenError::Setting)?;
    let ledger = open(checked, environment, Arc::new(keyring)).map_err(OpenError::Setting)?;
    if SCHEMA.pending(ledger.database()).await?.is_empty() { Ok(ledger) } else { Err(OpenError::Outdated) }
}
