//! Statements about encrypted pull secrets. Their text begins with the key's id, up to the first dot, which is indexed.

use database::{Dialect, Parameters, Value};

use super::{Store, StoreError};

/// The beginning of an encrypted pull secret, as the index has it.
fn beginning(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "substr(sealed, 1, instr(sealed, '.') - 1)",
        Dialect::Postgres => "split_part(sealed, '.', 1)",
    }
}

impl Store {
    /// Counts encrypted pull secrets by their beginning.
    pub async fn sealed_by_beginning(&self) -> Result<Vec<(String, i64)>, StoreError> {
        let beginning = beginning(self.database().dialect());
        let sql = format!("SELECT {beginning}, COUNT(*) FROM resources WHERE sealed IS NOT NULL GROUP BY {beginning}");
        let rows = self.database().fetch(sql, Parameters::default()).await?;
        rows.iter().map(|row| Ok((row.text(0)?, row.number(1)?))).collect()
    }

    /// Returns the ids of the next resources whose encrypted pull secret begins so, in the order of ids.
    pub async fn sealed_so(&self, beginning: &str, after: &str, limit: i64) -> Result<Vec<String>, StoreError> {
        self.sealed("=", beginning, after, limit).await
    }

    /// Returns the ids of the next resources whose encrypted pull secret begins otherwise, in the order of ids.
    pub async fn sealed_otherwise(&self, current: &str, after: &str, limit: i64) -> Result<Vec<String>, StoreError> {
        self.sealed("<>", current, after, limit).await
    }

    async fn sealed(
        &self,
        comparison: &'static str,
        given: &str,
        after: &str,
        limit: i64,
    ) -> Result<Vec<String>, StoreError> {
        let mut parameters = Parameters::default();
        let sql = format!(
            "SELECT id FROM resources WHERE sealed IS NOT NULL AND {} {comparison} {} AND id > {} ORDER BY id LIMIT {}",
            beginning(self.database().dialect()),
            parameters.add(Value::Text(given.to_owned())),
            parameters.add(Value::Text(after.to_owned())),
            parameters.add(Value::Number(limit)),
        );
        let rows = self.database().fetch(sql, parameters).await?;
        rows.iter().map(|row| row.text(0)).collect()
    }
}
