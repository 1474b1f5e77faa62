//! Statements of the act that follows a restore of the database from a backup.

use database::{Parameters, Value};

use super::version::Version;
use super::{Store, StoreError};

impl Store {
    /// Begins a new epoch of the change stream, and marks the database as one whose generations are being raised.
    pub async fn begin_epoch(&self, epoch: &str) -> Result<Version, StoreError> {
        let mut parameters = Parameters::default();
        let epoch = parameters.add(Value::Text(epoch.to_owned()));
        self.execute(format!("UPDATE change_counter SET epoch = {epoch}, restoring = 1"), parameters).await?;
        self.newest_version().await
    }

    /// Ends what [`Store::begin_epoch`] has begun.
    pub async fn end_restore(&self) -> Result<(), StoreError> {
        self.execute("UPDATE change_counter SET restoring = 0".to_owned(), Parameters::default()).await
    }

    /// Returns true if a restore was begun and not ended.
    pub async fn is_restoring(&self) -> Result<bool, StoreError> {
        let sql = "SELECT restoring FROM change_counter".to_owned();
        let rows = self.database().fetch(sql, Parameters::default()).await?;
        rows.first().map_or(Ok(false), |row| Ok(row.number(0)? != 0))
    }

    /// Returns the next ids of all resources, in their order.
    pub async fn ids(&self, after: &str, limit: i64) -> Result<Vec<String>, StoreError> {
        let mut parameters = Parameters::default();
        let sql = format!(
            "SELECT id FROM resources WHERE id > {} ORDER BY id LIMIT {}",
            parameters.add(Value::Text(after.to_owned())),
            parameters.add(Value::Number(limit)),
        );
        let rows = self.database().fetch(sql, parameters).await?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    async fn execute(&self, sql: String, parameters: Parameters) -> Result<(), StoreError> {
        let mut transaction = self.database().begin().await?;
        transaction.execute(sql, parameters).await?;
        transaction.commit().await
    }
}
