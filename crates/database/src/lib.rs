//! SQLite or PostgreSQL for a component: connections, statements, migrations, metrics and probes; encryption of values at
//! rest.
//!
//! A component opens its [`Database`] as a [`Component`], applies its [`Schema`], and then reads and writes with one text of
//! SQL for both databases: [`Parameters`] and [`Statements`] hide where they differ.
//!
//! - [`Database::fetch`] reads one snapshot; [`Database::search`] does so in turn, so that long searches leave connections
//!   to everything else; [`Database::begin`] begins a [`Transaction`] of writes, which dropping rolls back.
//! - [`DatabaseError`] states what the caller can do: wait ([`DatabaseError::is_unavailable`]) or repeat the transaction at
//!   once ([`DatabaseError::is_contended`]). No method retries; [`migrate_until_applied`] waits for the database at the start.
//! - [`Database::make_checkpoints`] runs beside the component for as long as it serves.
//! - [`settings::DatabaseSettings`] is the section of a component's settings that makes the [`Source`] and the
//!   [`PoolSettings`].
//! - A [`sealed::Keyring`] encrypts what must not be readable in the database and its backups; [`sealed::KeyFiles`] reads it.
//! - The component registers [`Database::meter`] and [`Database::connections`] as metrics under names of its own.
//!
//! | invariant | test |
//! |---|---|
//! | A statement ends with the request that waits for it, and its connection serves others. | `pools::tests::a_statement_ends_with_its_request` |
//! | Searches leave connections to other reads. | `pools::tests::searches_leave_connections_to_reads` |
//! | A migration is applied once, in order, as a whole, and not to the database of another program. | `schema::tests` |
//! | A start waits for the database, and ends at once on one that it cannot use. | `schema::tests::a_start_waits_for_the_database` |
//! | SQLite's log stays short while writes go on. | `checkpoint::tests` |
//! | A full disk is noticed, and again when it has room. | `probe::tests` |
//! | An encrypted value is opened at its place only, with the key that encrypted it, and by every later version. | `sealed::keyring::tests` |
//! | Nothing prints a key or a password. | `sealed::keyring::tests::nothing_prints_a_key`, `connect::tests`, `settings::tests` |
//! | A connection to another machine is encrypted as the settings say, never as the network decides. | `settings::tests` |
//! | An error of either database has the class that tells what to do. | `error::tests` |
//!
//! ```
//! use std::time::Duration;
//!
//! use database::{Component, Database, Migration, Parameters, PoolSettings, Schema, Source, Value};
//!
//! const COMPONENT: Component = Component { application: "notes", tables: &["notes"] };
//! const NOTES: &str = "CREATE TABLE notes (id TEXT PRIMARY KEY)";
//! const SCHEMA: Schema = Schema {
//!     migrations: &[Migration { id: "0001-notes", sqlite: NOTES, postgres: NOTES }],
//!     table: "notes_migrations",
//!     lock: 6_112_024,
//! };
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! let source = Source::Sqlite { path: folder.path().join("notes.db") };
//! let second = Duration::from_secs(1);
//! let pool = PoolSettings { max_connections: 4, acquire_timeout: second, max_lifetime: second, idle_timeout: second };
//! let database = Database::open(&source, pool, &COMPONENT)?;
//! assert_eq!(SCHEMA.migrate(&database, second, 0).await?, ["0001-notes"]);
//!
//! let mut write = database.begin().await?;
//! let mut parameters = Parameters::default();
//! let id = parameters.add(Value::Text("first".to_owned()));
//! write.execute(format!("INSERT INTO notes (id) VALUES ({id})"), parameters).await?;
//! write.commit().await?;
//!
//! let rows = database.fetch("SELECT id FROM notes".to_owned(), Parameters::default()).await?;
//! assert_eq!(rows.first().map(|row| row.text(0)).transpose()?.as_deref(), Some("first"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checkpoint;
mod commits;
pub mod connect;
pub mod error;
pub mod meter;
pub mod pools;
mod probe;
pub mod schema;
pub mod sealed;
pub mod settings;
pub mod sql;
pub mod statements;
#[cfg(test)]
mod tests;

pub use connect::{Component, PoolSettings, Source};
pub use error::DatabaseError;
pub use meter::{QueryLabels, QueryMeter};
pub use pools::{Database, Row, Transaction};
pub use schema::{Migration, Schema, migrate_until_applied};
pub use sql::{Dialect, Parameters, Value};
pub use statements::{Statements, chunks, insert_or, insert_rows};
