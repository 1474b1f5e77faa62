//! Measures statements by operation and table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use tokio::time::Instant;

use super::error::DatabaseError;

/// Measures statements. Clones measure together. A component registers the families under names of its own.
#[derive(Clone, Debug)]
pub struct QueryMeter {
    /// Durations of statements, in seconds.
    pub durations: Family<QueryLabels, Histogram>,
    /// Number of failed statements, without those that the request caused (a name that exists).
    pub errors: Counter,
    /// True after a write for which the disk had no room, until [`crate::Database::probe`] finds some.
    is_full: Arc<AtomicBool>,
    /// The tables that the labels distinguish.
    tables: &'static [&'static str],
}

/// The operation and the table of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct QueryLabels {
    operation: &'static str,
    table: &'static str,
}

const OPERATIONS: [(&str, &str); 4] =
    [("SELECT", "select"), ("INSERT", "insert"), ("UPDATE", "update"), ("DELETE", "delete")];

// === impl QueryMeter ===

impl QueryMeter {
    /// Returns a meter whose labels distinguish these tables; statements about others have the label `-`.
    pub fn new(tables: &'static [&'static str]) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(0.000_1, 2.0, 16));
        Self {
            durations: Family::new_with_constructor(histogram),
            errors: Counter::default(),
            is_full: Arc::default(),
            tables,
        }
    }

    /// Runs the work and records its duration and failure.
    pub(crate) async fn measure<T>(
        &self,
        labels: QueryLabels,
        work: impl Future<Output = Result<T, DatabaseError>>,
    ) -> Result<T, DatabaseError> {
        let began = Instant::now();
        let done = work.await;
        self.durations.get_or_create(&labels).observe(began.elapsed().as_secs_f64());
        done.map_err(|error| self.failed(error))
    }

    /// Records a failure and returns it.
    pub(crate) fn failed(&self, error: DatabaseError) -> DatabaseError {
        if !matches!(error, DatabaseError::Duplicate { .. }) {
            self.errors.inc();
        }
        if error.is_full() {
            self.is_full.store(true, Ordering::Relaxed);
        }
        error
    }

    /// Returns true after a write for which the disk had no room.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Notes that the disk has room again.
    pub(crate) fn has_room(&self) {
        self.is_full.store(false, Ordering::Relaxed);
    }

    /// Returns the labels of a statement: its verb, and the first table that it names. Several that are sent together count
    /// as the first of them.
    pub(crate) fn labels(&self, sql: &str) -> QueryLabels {
        let sql = sql.strip_prefix("WITH part1 AS (").unwrap_or(sql);
        let operation = OPERATIONS.iter().find(|(verb, _)| sql.starts_with(verb)).map(|(_, name)| *name);
        let tokens = || sql.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
        let behind = tokens().skip_while(|word| !matches!(*word, "FROM" | "INTO" | "UPDATE")).nth(1);
        let table = behind.and_then(|word| self.tables.iter().find(|table| **table == word)).copied();
        QueryLabels { operation: operation.unwrap_or("other"), table: table.unwrap_or("-") }
    }
}

// === impl QueryLabels ===

impl QueryLabels {
    /// The labels of a commit.
    pub const COMMIT: Self = Self { operation: "commit", table: "-" };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_the_verb_and_the_first_table() {
        let meter = QueryMeter::new(&["resources", "resource_labels", "change_counter", "changes"]);
        let of = |sql| {
            let labels = meter.labels(sql);
            (labels.operation, labels.table)
        };
        assert_eq!(of("SELECT r.id FROM resources r WHERE 1 = 1"), ("select", "resources"));
        assert_eq!(of("INSERT INTO resource_labels (resource_id) VALUES ($1)"), ("insert", "resource_labels"));
        assert_eq!(of("UPDATE change_counter SET version = 1"), ("update", "change_counter"));
        assert_eq!(of("DELETE FROM changes WHERE version < 1"), ("delete", "changes"));
        assert_eq!(of("SELECT 1"), ("select", "-"));
        assert_eq!(of("SELECT 1 FROM others"), ("select", "-"));
        let together = "WITH part1 AS (INSERT INTO resources (id) VALUES ($1)) DELETE FROM changes";
        assert_eq!(of(together), ("insert", "resources"));
    }
}
