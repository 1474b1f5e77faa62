//! The resources that are not done, by cause.

use database::{Parameters, Row, Transaction, Value};
use fleet_model::Condition;
use fleet_model::cause::{Causes, Grouping, Observed};
use serde::Deserialize;

use super::list::Query;
use super::rows::{generation, json, time};
use super::{Store, StoreError};

/// Number of resources that are read at once; the conditions of each are some kilobytes.
const BATCH: i64 = 1000;

/// The conditions of a resource, without the reports that are stored with them.
#[derive(Debug, Deserialize)]
struct Conditions {
    #[serde(default)]
    conditions: Vec<Condition>,
}

impl Store {
    /// Groups the resources that match the query and whose condition of the type `overall` is not true at their generation:
    /// each below the first of the conditions that is not, or below the last one. Order and page of the query have no effect.
    /// There is one group of causes for each of the conditions.
    ///
    /// The index of conditions tells which resources these are; only of them the conditions are read, which have the message.
    pub async fn causes(&self, query: &Query, overall: &str, conditions: &[String]) -> Result<Vec<Causes>, StoreError> {
        let mut snapshot = self.database().snapshot_of_search().await?;
        let mut groupings: Vec<Grouping> = conditions.iter().map(|_| Grouping::default()).collect();
        let total = total(&mut snapshot, query).await?;
        let (mut found, mut last) = (0_u64, String::new());
        loop {
            let rows = batch(&mut snapshot, query, overall, &last).await?;
            for row in &rows {
                last = add(&mut groupings, row, conditions)?;
            }
            found += rows.len() as u64;
            if i64::try_from(rows.len()).is_ok_and(|count| count < BATCH) {
                break;
            }
        }
        snapshot.commit().await?;
        if let Some(last) = groupings.last_mut() {
            last.count_done(total.saturating_sub(found));
        }
        Ok(groupings.into_iter().zip(conditions).map(|(grouping, condition)| grouping.causes(condition)).collect())
    }
}

/// Returns the number of resources that match the query.
async fn total(snapshot: &mut Transaction, query: &Query) -> Result<u64, StoreError> {
    let mut parameters = Parameters::default();
    // Only one of the two is in the statement, and each adds its own parameters.
    let condition =
        if query.is_whole_kind() { String::new() } else { query.condition(snapshot.dialect(), &mut parameters) };
    let sql = query.total(&condition, &mut parameters);
    let rows = snapshot.fetch(sql, parameters).await?;
    Ok(rows.first().map_or(Ok(0), |row| row.number(0))?.unsigned_abs())
}

/// Reads the next resources that are not done, in the order of ids.
async fn batch(snapshot: &mut Transaction, query: &Query, condition: &str, last: &str) -> Result<Vec<Row>, StoreError> {
    let mut parameters = Parameters::default();
    let sql = format!(
        "SELECT r.id, r.name, r.generation, r.updated_time, r.deleted_time, r.state FROM resources r LEFT JOIN \
         resource_conditions c ON c.resource_id = r.id AND c.type = {} WHERE {} AND r.id > {} AND (c.status IS NULL OR \
         c.status <> 'True' OR c.observed_generation < r.generation) ORDER BY r.id LIMIT {}",
        parameters.add(Value::Text(condition.to_owned())),
        query.condition(snapshot.dialect(), &mut parameters),
        parameters.add(Value::Text(last.to_owned())),
        parameters.add(Value::Number(BATCH)),
    );
    snapshot.fetch(sql, parameters).await
}

/// Adds a resource to the groups of the condition that blocks it; returns its id.
fn add(groupings: &mut [Grouping], row: &Row, types: &[String]) -> Result<String, StoreError> {
    let (id, name) = (row.text(0)?, row.text(1)?);
    let Conditions { conditions } = json(&row.text(5)?, "resources.state")?;
    let resource = Observed {
        id: &id,
        name: &name,
        generation: generation(row.number(2)?, "resources.generation")?,
        updated_time: time(row.number(3)?)?,
        is_terminating: row.optional_number(4)?.is_some(),
        condition: None,
    };
    let observed = |kind: &String| Observed { condition: conditions.iter().find(|one| one.kind == *kind), ..resource };
    let blocking = types.iter().position(|kind| !observed(kind).is_done()).unwrap_or(types.len().saturating_sub(1));
    if let Some((grouping, kind)) = groupings.get_mut(blocking).zip(types.get(blocking)) {
        grouping.add(&observed(kind));
    }
    Ok(id)
}
