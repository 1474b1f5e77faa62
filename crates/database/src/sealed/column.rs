//! Statements about a column of encrypted values. Their text begins with the key's id, up to the first dot, which an index of the
//! table has, together with the row's id.

use std::collections::BTreeMap;

use super::keyring::key_id;
use crate::{Database, DatabaseError, Dialect, Parameters, Value};

/// Maximum number of ids that are read at once.
const BATCH: i64 = 100;

/// A column of encrypted values of a table with the column `id`.
#[derive(Clone, Copy, Debug)]
pub struct SealedColumn {
    /// The table.
    pub table: &'static str,
    /// The column.
    pub column: &'static str,
}

/// A condition on the beginning of an encrypted value.
#[derive(Clone, Copy, Debug)]
pub enum Begins<'a> {
    /// It is this one.
    With(&'a str),
    /// It is another one than this.
    Otherwise(&'a str),
}

// === impl SealedColumn ===

impl SealedColumn {
    /// Counts the values by their beginning, which [`key_id`] reads.
    pub async fn by_beginning(&self, database: &Database) -> Result<BTreeMap<String, u64>, DatabaseError> {
        let (Self { table, column }, beginning) = (self, self.beginning(database.dialect()));
        let sql = format!("SELECT {beginning}, COUNT(*) FROM {table} WHERE {column} IS NOT NULL GROUP BY {beginning}");
        let mut found = BTreeMap::new();
        for row in database.fetch(sql, Parameters::default()).await? {
            found.insert(row.text(0)?, u64::try_from(row.number(1)?).unwrap_or_default());
        }
        Ok(found)
    }

    /// Counts the values by the id of their key.
    pub async fn by_key(&self, database: &Database) -> Result<BTreeMap<String, u64>, DatabaseError> {
        let mut keys = BTreeMap::new();
        for (beginning, number) in self.by_beginning(database).await? {
            *keys.entry(key_id(&beginning)).or_default() += number;
        }
        Ok(keys)
    }

    /// Returns the ids of the next 100 rows after `after` whose value begins so, in the order of ids.
    pub async fn ids(
        &self,
        database: &Database,
        begins: Begins<'_>,
        after: &str,
    ) -> Result<Vec<String>, DatabaseError> {
        let (comparison, beginning) = match begins {
            Begins::With(beginning) => ("=", beginning),
            Begins::Otherwise(beginning) => ("<>", beginning),
        };
        let mut parameters = Parameters::default();
        let sql = format!(
            "SELECT id FROM {} WHERE {} IS NOT NULL AND {} {comparison} {} AND id > {} ORDER BY id LIMIT {BATCH}",
            self.table,
            self.column,
            self.beginning(database.dialect()),
            parameters.add(Value::Text(beginning.to_owned())),
            parameters.add(Value::Text(after.to_owned())),
        );
        let rows = database.fetch(sql, parameters).await?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    /// Returns the beginning of a value in SQL, as the index has it.
    pub fn beginning(&self, dialect: Dialect) -> String {
        let column = self.column;
        match dialect {
            Dialect::Sqlite => format!("substr({column}, 1, instr({column}, '.') - 1)"),
            Dialect::Postgres => format!("split_part({column}, '.', 1)"),
        }
    }
}
