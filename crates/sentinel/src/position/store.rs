//! Keeps a leader's position where its election is: beside the Lease, in the database of the lock, or in a file.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use fleet_model::names::{ANNOTATION_POSITION, POSITION_SUFFIX};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::Cluster;
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Executor as _};
use tokio::time::{sleep, timeout};

use super::records::{Record, Records};
use super::version::Position;

/// Maximum time of a read or a write.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of recorded events while nothing can be recorded.
const EVERYTHING: u64 = u64::MAX;
/// Time until a failed write is repeated.
const RETRY: Duration = Duration::from_secs(1);
/// The table of positions.
const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS hyperfleet_sentinel_positions (name text PRIMARY KEY, position text NOT NULL)";

/// The place of a position.
pub enum PositionStore {
    /// A file, of a Sentinel without election.
    File(PathBuf),
    /// An annotation of a Lease beside that of the election.
    Lease {
        /// The cluster.
        cluster: Cluster,
        /// The namespace.
        namespace: String,
        /// The name of that Lease.
        name: String,
        /// The Lease as it was last written.
        last: Option<Box<Lease>>,
    },
    /// A row in the database of the election's lock.
    Row {
        /// The URL of the database.
        database_url: SecretString,
        /// The name of the lock.
        name: String,
        /// The connection, while there is one.
        session: Option<Box<PgConnection>>,
    },
}

impl PositionStore {
    /// The Lease that belongs to the election by the Lease of this name.
    pub fn lease(cluster: Cluster, namespace: String, name: &str) -> Self {
        Self::Lease { cluster, namespace, name: format!("{name}{POSITION_SUFFIX}"), last: None }
    }

    /// The row that belongs to the election by the lock of this name.
    pub fn row(database_url: SecretString, name: String) -> Self {
        Self::Row { database_url, name, session: None }
    }

    /// Reads the position of the predecessor; without one, or if it cannot be read, the successor publishes every resource that is
    /// not reconciled.
    pub async fn load(&mut self) -> Option<Position> {
        let read =
            timeout(CALL_TIMEOUT, self.read()).await.unwrap_or_else(|_elapsed| Err("no answer in time".to_owned()));
        match read {
            Ok(text) => text?.parse().ok(),
            Err(error) => {
                tracing::warn!(
                    operation = "lead",
                    error,
                    "cannot read the predecessor's position; unreconciled resources are published again"
                );
                None
            }
        }
    }

    /// Writes the newest position whenever it has changed, one write at a time, until the leader ends. While it cannot be written,
    /// everything counts as recorded: no event is held up.
    pub async fn follow(&mut self, records: Records) {
        let Records { mut newest, recorded } = records;
        let mut is_failing = false;
        while newest.changed().await.is_ok() {
            let Some(Record { position, published }) = newest.borrow_and_update().clone() else { continue };
            let written = timeout(CALL_TIMEOUT, self.write(&position.to_string())).await;
            match written.unwrap_or_else(|_elapsed| Err("no answer in time".to_owned())) {
                Ok(()) => {
                    is_failing = false;
                    recorded.send_replace(published);
                }
                Err(error) => {
                    recorded.send_replace(EVERYTHING);
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(
                            operation = "lead",
                            error,
                            "cannot write the position for a successor; retrying"
                        );
                    }
                    sleep(RETRY).await;
                    if newest.has_changed().is_ok() {
                        newest.mark_changed();
                    }
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Option<String>, String> {
        match self {
            Self::File(path) => match tokio::fs::read_to_string(path).await {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                read => read.map(Some).map_err(|error| error.to_string()),
            },
            Self::Lease { cluster, namespace, name, last } => {
                let found = cluster.find::<Lease>(namespace, name).await.map_err(|error| error.to_string())?;
                *last = found.map(Box::new);
                let annotations = last.as_ref().and_then(|lease| lease.metadata.annotations.as_ref());
                Ok(annotations.and_then(|annotations| annotations.get(ANNOTATION_POSITION).cloned()))
            }
            Self::Row { database_url, name, session } => {
                let session = connected(database_url, session).await?;
                let query = sqlx::query_scalar("SELECT position FROM hyperfleet_sentinel_positions WHERE name = $1");
                query.bind(&*name).fetch_optional(&mut **session).await.map_err(|error| plain(&error))
            }
        }
    }

    async fn write(&mut self, position: &str) -> Result<(), String> {
        match self {
            Self::File(path) => {
                let (path, text) = (path.clone(), position.to_owned());
                let written = tokio::task::spawn_blocking(move || daemon::file::replace(&path, text.as_bytes())).await;
                written.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
            }
            Self::Lease { cluster, namespace, name, last } => {
                let annotations = [(ANNOTATION_POSITION.to_owned(), position.to_owned())].into();
                let metadata = ObjectMeta {
                    namespace: Some(namespace.clone()),
                    name: Some(name.clone()),
                    annotations: Some(annotations),
                    ..last.as_ref().map(|lease| lease.metadata.clone()).unwrap_or_default()
                };
                let metadata = ObjectMeta { annotations: metadata.annotations, ..metadata };
                let written = cluster.apply(&Lease { metadata, spec: None }, &[]).await;
                // What it is now is read again after a failure.
                *last = None;
                match written {
                    Ok(lease) => *last = Some(Box::new(lease)),
                    Err(error) => {
                        *last = cluster.find::<Lease>(namespace, name).await.ok().flatten().map(Box::new);
                        return Err(error.to_string());
                    }
                }
                Ok(())
            }
            Self::Row { database_url, name, session } => {
                let connection = connected(database_url, session).await?;
                let query = sqlx::query(
                    "INSERT INTO hyperfleet_sentinel_positions (name, position) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET \
                     position = excluded.position",
                );
                let written = query.bind(&*name).bind(position).execute(&mut **connection).await;
                if written.is_err() {
                    *session = None;
                }
                written.map(drop).map_err(|error| plain(&error))
            }
        }
    }
}

async fn connected<'a>(
    database_url: &SecretString,
    session: &'a mut Option<Box<PgConnection>>,
) -> Result<&'a mut Box<PgConnection>, String> {
    if session.is_none() {
        let options = PgConnectOptions::from_str(database_url.expose_secret()).map_err(|error| plain(&error))?;
        let mut connection = PgConnection::connect_with(&options).await.map_err(|error| plain(&error))?;
        connection.execute(TABLE).await.map_err(|error| plain(&error))?;
        *session = Some(Box::new(connection));
    }
    session.as_mut().ok_or_else(|| "not connected".to_owned())
}

/// The message of a database; that of the driver may contain the password of the URL.
fn plain(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        _ => "the server cannot be reached; check leader_election.database_url".to_owned(),
    }
}

impl std::fmt::Debug for PositionStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::File(_) => "File",
            Self::Lease { .. } => "Lease",
            Self::Row { .. } => "Row",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Recorder;

    #[tokio::test]
    async fn a_store_that_cannot_be_written_holds_up_no_event() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = PositionStore::File(folder.path().join("no/such/folder/position"));
        let (mut recorder, records) = Recorder::new();
        let leading = async {
            (0..10).for_each(|_| recorder.published());
            recorder.show(Some("e-10".parse().unwrap()));
            assert!(!recorder.has_room(4));
            recorder.recorded().await;
            (0..10).for_each(|_| recorder.published());
            assert!(recorder.has_room(4));
            drop(recorder);
        };
        tokio::join!(leading, store.follow(records));
        assert_eq!(store.load().await, None);
    }

    #[tokio::test]
    async fn a_position_in_a_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = PositionStore::File(folder.path().join("position"));
        assert_eq!(store.load().await, None);
        let position: Position = "e-10+12".parse().unwrap();
        let (recorder, records) = Recorder::new();
        recorder.show(Some(position.clone()));
        drop(recorder);
        store.follow(records).await;
        assert_eq!(store.load().await, Some(position));
    }
}
