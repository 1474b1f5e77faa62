//! Ends a statement of SQLite whose request has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::SqliteConnection;

/// Number of SQLite's instructions between two checks.
const INSTRUCTIONS: i32 = 1000;

/// Ends the statement that runs on a connection when it is dropped.
///
/// SQLite runs on a thread of its own: without it a search would go on after its request has timed out or its client has
/// left, and keep the connection from other requests.
#[derive(Debug)]
pub(super) struct Interrupt(Arc<AtomicBool>);

// === impl Interrupt ===

impl Interrupt {
    /// Watches a connection, in place of the connection's previous user.
    pub(super) async fn when_dropped(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let dropped = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&dropped);
        connection.lock_handle().await?.set_progress_handler(INSTRUCTIONS, move || !seen.load(Ordering::Relaxed));
        Ok(Self(dropped))
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
