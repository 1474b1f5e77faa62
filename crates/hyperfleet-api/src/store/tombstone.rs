//! Tombstones as rows.

use database::{Dialect, Parameters, Row, Statements, Value, insert_rows};
use jiff::Timestamp;

use super::rows::{generation, json, time};
use super::write::Write;
use super::{Page, Store, StoreError};
use crate::tenancy::Reach;
use crate::tombstone::Tombstone;

/// The columns, in the order in which [`read`] takes them.
const COLUMNS: &str =
    "id, resource_id, kind, name, incarnation, generation, tenancy, removed_time, removed_by, reason, copies";

impl Store {
    /// Returns a page of the tombstones of a kind within reach, oldest first.
    pub async fn tombstones(
        &self,
        kind: &str,
        reach: &Reach,
        offset: i64,
        limit: i64,
    ) -> Result<Page<Tombstone>, StoreError> {
        let condition = |parameters: &mut Parameters| {
            let kind = parameters.add(Value::Text(kind.to_owned()));
            format!("kind = {kind} AND {}", reach.sql("tenancy", parameters))
        };
        let mut snapshot = self.database().snapshot().await?;
        let mut parameters = Parameters::default();
        let sql = format!("SELECT COUNT(*) FROM tombstones WHERE {}", condition(&mut parameters));
        let counted = snapshot.fetch(sql, parameters).await?;
        let mut parameters = Parameters::default();
        let sql = format!(
            "SELECT {COLUMNS} FROM tombstones WHERE {} ORDER BY id LIMIT {} OFFSET {}",
            condition(&mut parameters),
            parameters.add(Value::Number(limit)),
            parameters.add(Value::Number(offset)),
        );
        let rows = snapshot.fetch(sql, parameters).await?;
        snapshot.commit().await?;
        Ok(Page {
            items: rows.iter().map(read).collect::<Result<_, _>>()?,
            total: counted.first().map_or(Ok(0), |row| row.number(0))?,
        })
    }

    /// Removes the tombstones of resources that were removed before that time; returns their number.
    pub async fn prune_tombstones(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut transaction = self.database().begin().await?;
        let mut parameters = Parameters::default();
        let before = parameters.add(Value::Number(before.as_microsecond()));
        let removed =
            transaction.execute(format!("DELETE FROM tombstones WHERE removed_time < {before}"), parameters).await?;
        transaction.commit().await?;
        Ok(removed)
    }
}

impl Write {
    /// Stores a tombstone.
    pub async fn bury(&mut self, tombstone: &Tombstone) -> Result<(), StoreError> {
        let text = |text: &str| Value::Text(text.to_owned());
        let values = vec![
            text(&tombstone.id),
            text(&tombstone.resource_id),
            text(&tombstone.kind),
            text(&tombstone.name),
            Value::Number(tombstone.incarnation.as_microsecond()),
            Value::Number(tombstone.generation.into()),
            Value::Text(serialised(&tombstone.tenancy)?),
            Value::Number(tombstone.removed_time.as_microsecond()),
            text(&tombstone.removed_by),
            text(&tombstone.reason),
            Value::Text(serialised(&tombstone.copies)?),
        ];
        let mut statements = Statements::new(self.transaction().dialect());
        insert_rows(&mut statements, &format!("tombstones ({COLUMNS})"), vec![values]);
        statements.run(self.transaction()).await.map(drop)
    }

    /// Locks a tombstone of a kind within reach until the end of the transaction and returns it.
    pub async fn lock_tombstone(
        &mut self,
        kind: &str,
        id: &str,
        reach: &Reach,
    ) -> Result<Option<Tombstone>, StoreError> {
        let transaction = self.transaction();
        let lock = if transaction.dialect() == Dialect::Postgres { " FOR UPDATE" } else { "" };
        let mut parameters = Parameters::default();
        let sql = format!(
            "SELECT {COLUMNS} FROM tombstones WHERE kind = {} AND id = {} AND {}{lock}",
            parameters.add(Value::Text(kind.to_owned())),
            parameters.add(Value::Text(id.to_owned())),
            reach.sql("tenancy", &mut parameters),
        );
        transaction.fetch(sql, parameters).await?.first().map(read).transpose()
    }

    /// Stores the copies that are left of a locked tombstone, and removes it if there are none.
    pub async fn leave(&mut self, id: &str, copies: &[serde_json::Value]) -> Result<(), StoreError> {
        if copies.is_empty() {
            return self.delete("tombstones", "id", id).await;
        }
        let mut parameters = Parameters::default();
        let sql = format!(
            "UPDATE tombstones SET copies = {} WHERE id = {}",
            parameters.add(Value::Text(serialised(&copies)?)),
            parameters.add(Value::Text(id.to_owned())),
        );
        self.transaction().execute(sql, parameters).await.map(drop)
    }
}

fn serialised(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|_unserialisable| StoreError::Damaged { location: "tombstones" })
}

fn read(row: &Row) -> Result<Tombstone, StoreError> {
    Ok(Tombstone {
        id: row.text(0)?,
        resource_id: row.text(1)?,
        kind: row.text(2)?,
        name: row.text(3)?,
        incarnation: time(row.number(4)?)?,
        generation: generation(row.number(5)?, "tombstones.generation")?,
        tenancy: json(&row.text(6)?, "tombstones.tenancy")?,
        removed_time: time(row.number(7)?)?,
        removed_by: row.text(8)?,
        reason: row.text(9)?,
        copies: json(&row.text(10)?, "tombstones.copies")?,
    })
}
