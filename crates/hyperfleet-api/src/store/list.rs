//! Lists of resources.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use database::{Dialect, Parameters, Row, Transaction, Value};

use super::StoreError;
use super::batch::Batch;
use super::page::Page;
use super::version::{self, Version};
use super::{Store, rows};
use crate::resource::Resource;
use crate::search::{Order, Scope, Search};
use crate::tenancy::Reach;

/// Number of resources from which a test of a search does not count as one that few resources pass.
const FEW: i64 = 2000;

/// Number of tests of a search by which its resources may be found.
const TRIED: usize = 8;

/// Number of resources behind a page up to which a walk through a kind is counted exactly.
const COUNTED: i64 = 1000;

/// The way in which the resources of a search are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// By a condition on all resources.
    All,
    /// On SQLite, by the test of the search with that number.
    By(usize),
    /// In the range of an index that has those that pass the test with that number.
    Range(usize),
}

/// The filter, the order and the page of a list.
#[derive(Clone, Debug)]
pub struct Query {
    /// Only resources within reach.
    pub reach: Reach,
    /// Only this kind; `None` is every kind.
    pub kind: Option<String>,
    /// Only children of this resource.
    pub owner_id: Option<String>,
    /// Only resources with this reference: its type and the target's id.
    pub reference: Option<(String, String)>,
    /// Only resources that match.
    pub search: Search,
    /// The order of the list.
    pub order: Order,
    /// Number of resources to skip.
    pub offset: i64,
    /// Maximum number of resources.
    pub limit: i64,
}

impl Store {
    /// Returns a page of the resources that match the query.
    pub async fn list(&self, query: &Query) -> Result<Page<Resource>, StoreError> {
        let (rows, total) = self.page(query, rows::columns(self.database().dialect()), rows::COUNT).await?;
        let items = rows.iter().map(|row| Ok(rows::read(row)?.resource)).collect::<Result<_, StoreError>>()?;
        Ok(Page { items, total })
    }

    /// Returns the same page as JSON texts.
    pub async fn list_objects(&self, query: &Query) -> Result<Page<String>, StoreError> {
        let (rows, total) = self.page(query, "r.object", 1).await?;
        Ok(Page { items: rows.iter().map(|row| row.text(0)).collect::<Result<_, _>>()?, total })
    }

    /// Returns these columns of a page's rows, of which there are `width`, and the length of the whole list.
    async fn page(&self, query: &Query, columns: &str, width: usize) -> Result<(Vec<Row>, i64), StoreError> {
        let found = self.found(query).await?;
        let (sql, parameters) = query.statement(self.database().dialect(), columns, found);
        let rows = match found {
            _ if query.search.is_blank() => self.database().fetch(sql, parameters).await?,
            Found::Range(_) => self.database().search_range(sql, parameters).await?,
            Found::All | Found::By(_) => self.database().search(sql, parameters).await?,
        };
        let total = match rows.first() {
            Some(row) => row.number(width)?,
            None if query.offset == 0 && query.limit > 0 => 0,
            None => self.length(query, found).await?,
        };
        Ok((rows, total))
    }

    /// Returns how the resources that match the query are found.
    async fn found(&self, query: &Query) -> Result<Found, StoreError> {
        let dialect = self.database().dialect();
        let has_range = |number: &usize| query.range(*number, dialect, &mut Parameters::default()).is_some();
        let ranges: Vec<_> = (0..TRIED).filter(has_range).collect();
        if query.search.is_one_test()
            && let Some(&number) = ranges.first()
        {
            return Ok(Found::Range(number));
        }
        // PostgreSQL knows how many resources pass a test. SQLite has no statistics: it would walk through the whole kind.
        if dialect == Dialect::Postgres && ranges.is_empty() {
            return Ok(Found::All);
        }
        let tried = if ranges.is_empty() { (0..TRIED).collect() } else { ranges.clone() };
        let narrowest = self.narrowest(query, tried).await?;
        Ok(match (narrowest, ranges.first()) {
            (Some(number), None) => Found::By(number),
            (Some(number), Some(_)) | (None, Some(&number)) => Found::Range(number),
            (None, None) => Found::All,
        })
    }

    /// Returns the first of these tests of a search that few resources pass.
    async fn narrowest(&self, query: &Query, tried: Vec<usize>) -> Result<Option<usize>, StoreError> {
        for number in tried {
            let mut parameters = Parameters::default();
            let dialect = self.database().dialect();
            let Some(ids) = query.search.found_by_index(number, dialect, &mut parameters) else { break };
            let sql = format!("SELECT COUNT(*) FROM ({ids} LIMIT {FEW}) few");
            let rows = self.database().search_range(sql, parameters).await?;
            if rows.first().map_or(Ok(0), |row| row.number(0))? < FEW {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Returns the length of a list whose page is empty.
    async fn length(&self, query: &Query, found: Found) -> Result<i64, StoreError> {
        let (dialect, mut parameters) = (self.database().dialect(), Parameters::default());
        let range = match found {
            Found::Range(number) => query.range(number, dialect, &mut parameters),
            Found::All | Found::By(_) => None,
        };
        let sql = if let Some(range) = range {
            format!("SELECT COUNT(*) FROM {range}")
        } else {
            let condition = query.condition(dialect, &mut parameters);
            query.total(&condition, &mut parameters)
        };
        self.database().search(sql, parameters).await?.first().map_or(Ok(0), |row| row.number(0))
    }

    /// Returns the ids and JSON texts of the next resources that match the query, in the order of ids after `after`, as many
    /// as fit into the batch but at least one; and the version of the change stream at which they were read.
    pub async fn scan(
        &self,
        query: &Query,
        after: &str,
        batch: Batch,
    ) -> Result<(Vec<(String, String)>, Version), StoreError> {
        let mut snapshot = if query.search.is_blank() {
            self.database().snapshot().await?
        } else {
            self.database().snapshot_of_search().await?
        };
        let mut parameters = Parameters::default();
        let sql = format!(
            "SELECT r.id, CAST(OCTET_LENGTH(r.object) AS BIGINT) FROM resources r WHERE {} AND r.id > {} ORDER BY r.id LIMIT {}",
            query.condition(snapshot.dialect(), &mut parameters),
            parameters.add(Value::Text(after.to_owned())),
            parameters.add(Value::Number(batch.items)),
        );
        let found = snapshot.fetch(sql, parameters).await?;
        let sizes = found.iter().map(|row| row.number(1)).collect::<Result<Vec<_>, _>>()?;
        let fitting = found.iter().take(batch.fitting(sizes.into_iter())).map(|row| row.text(0));
        let ids = fitting.collect::<Result<Vec<_>, _>>()?;
        let mut objects = objects(&mut snapshot, &ids).await?;
        let version = version::newest(&mut snapshot).await?;
        snapshot.commit().await?;
        let in_order = ids.into_iter().filter_map(|id| objects.remove(&id).map(|object| (id, object)));
        Ok((in_order.collect(), version))
    }
}

/// Returns the JSON texts of the resources with these ids, by id.
async fn objects(snapshot: &mut Transaction, ids: &[String]) -> Result<BTreeMap<String, String>, StoreError> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut parameters = Parameters::default();
    let placeholders: Vec<_> = ids.iter().map(|id| parameters.add(Value::Text(id.clone()))).collect();
    let sql = format!("SELECT r.id, r.object FROM resources r WHERE r.id IN ({})", placeholders.join(", "));
    let rows = snapshot.fetch(sql, parameters).await?;
    rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?))).collect()
}

// === impl Query ===

impl Query {
    /// Returns the query for the first `limit` resources of a kind within reach, in the default order.
    pub fn of_kind(kind: &str, reach: &Reach, limit: i64) -> Self {
        Self {
            reach: reach.clone(),
            kind: Some(kind.to_owned()),
            owner_id: None,
            reference: None,
            search: Search::default(),
            order: Order::default(),
            offset: 0,
            limit,
        }
    }

    /// Returns the statement for these columns of the page's rows, with the length of the whole list behind them.
    fn statement(&self, dialect: Dialect, columns: &str, found: Found) -> (String, Parameters) {
        let mut parameters = Parameters::default();
        if let Found::Range(number) = found
            && let Some(sql) = self.range_statement(dialect, columns, number, &mut parameters)
        {
            return (sql, parameters);
        }
        let ids = match found {
            Found::By(number) => self.search.found_by_index(number, dialect, &mut parameters),
            Found::All | Found::Range(_) => None,
        };
        let is_found = ids.is_some();
        let condition = match ids {
            Some(ids) => format!("r.id IN ({ids}) AND {}", self.filter(&mut parameters)),
            None => self.condition(dialect, &mut parameters),
        };
        let order = self.order.sql();
        if self.search.is_blank() {
            let total = self.total(&condition, &mut parameters);
            let page = self.limits(&mut parameters);
            let sql = format!("SELECT {columns}, ({total}) FROM resources r WHERE {condition} ORDER BY {order} {page}");
            return (sql, parameters);
        }
        if !is_found && self.is_walk() {
            let most = parameters.add(Value::Number(self.offset + self.limit + COUNTED));
            let total = self.total_of_kind(&mut parameters);
            let page = self.limits(&mut parameters);
            let sql = format!(
                "SELECT {columns}, (SELECT CASE WHEN counted.n < {most} THEN counted.n ELSE ({total}) END FROM (SELECT \
                 COUNT(*) AS n FROM (SELECT 1 FROM resources r WHERE {condition} ORDER BY {order} LIMIT {most}) walked) counted) \
                 FROM resources r WHERE {condition} ORDER BY {order} {page}"
            );
            return (sql, parameters);
        }
        if dialect == Dialect::Sqlite && !is_found {
            // It would keep all that the search finds for a window, which takes longer than to count it first.
            let total = self.total(&condition, &mut parameters);
            let page = self.limits(&mut parameters);
            let sql = format!(
                "SELECT {columns}, ({total}) FROM (SELECT r.id AS id FROM resources r WHERE {condition} ORDER BY {order} \
                 {page}) found JOIN resources r ON r.id = found.id ORDER BY {order}"
            );
            return (sql, parameters);
        }
        // All that a search finds is counted and sorted: ids are cheaper to sort than resources.
        let page = self.limits(&mut parameters);
        let sql = format!(
            "SELECT {columns}, found.total FROM (SELECT r.id AS id, COUNT(*) OVER () AS total FROM resources r \
             WHERE {condition} ORDER BY {order} {page}) found JOIN resources r ON r.id = found.id ORDER BY {order}"
        );
        (sql, parameters)
    }

    /// Returns the statement for the page and the length of the list in the range of an index.
    fn range_statement(
        &self,
        dialect: Dialect,
        columns: &str,
        number: usize,
        parameters: &mut Parameters,
    ) -> Option<String> {
        let range = self.range(number, dialect, parameters)?;
        let in_range = self.order.by_creation("f.created_time", "f.resource_id")?;
        let on_page = self.order.by_creation("found.time", "found.id")?;
        let page = self.limits(parameters);
        Some(format!(
            "SELECT {columns}, (SELECT COUNT(*) FROM {range}) FROM (SELECT f.resource_id AS id, f.created_time AS time \
             FROM {range} ORDER BY {in_range} {page}) found JOIN resources r ON r.id = found.id ORDER BY {on_page}"
        ))
    }

    /// Returns the rows `f` in the range of an index that has those that pass the test with that number, in the order of
    /// creation, for lists in that order.
    fn range(&self, number: usize, dialect: Dialect, parameters: &mut Parameters) -> Option<String> {
        let is_kind = self.owner_id.is_none() && self.reference.is_none();
        let kind = self.kind.as_ref().filter(|_| is_kind && self.order.by_creation("", "").is_some())?;
        self.search.range(number, Scope { kind, reach: &self.reach }, dialect, parameters)
    }

    /// Returns the limits of the page.
    fn limits(&self, parameters: &mut Parameters) -> String {
        let limit = parameters.add(Value::Number(self.limit));
        format!("LIMIT {limit} OFFSET {}", parameters.add(Value::Number(self.offset)))
    }

    /// Returns true for a walk through a whole kind in the order of ids, from page to page by `id > 'X'`. Its length need not be
    /// counted for each page anew: beyond [`COUNTED`] it is at most the number of resources of the kind.
    fn is_walk(&self) -> bool {
        self.order.is_by_id() && self.kind.is_some() && self.owner_id.is_none() && self.reference.is_none()
    }

    /// Returns true if the whole list is every resource of the kind.
    pub(super) fn is_whole_kind(&self) -> bool {
        self.owner_id.is_none() && self.reference.is_none() && self.search.is_blank()
    }

    /// Returns the statement for the length of the whole list.
    pub(super) fn total(&self, condition: &str, parameters: &mut Parameters) -> String {
        if self.is_whole_kind() {
            self.total_of_kind(parameters)
        } else {
            format!("SELECT COUNT(*) FROM resources r WHERE {condition}")
        }
    }

    /// Returns the statement for the kept number of the resources of the kind.
    fn total_of_kind(&self, parameters: &mut Parameters) -> String {
        let mut conditions = vec![self.reach.sql("c.tenancy", parameters)];
        if let Some(kind) = &self.kind {
            conditions.push(format!("c.kind = {}", parameters.add(Value::Text(kind.clone()))));
        }
        let conditions = conditions.join(" AND ");
        format!("SELECT CAST(COALESCE(SUM(c.count), 0) AS BIGINT) FROM resource_counts c WHERE {conditions}")
    }

    pub(super) fn condition(&self, dialect: Dialect, parameters: &mut Parameters) -> String {
        let search = |parameters: &mut Parameters| self.search.sql(dialect, parameters);
        self.conditions("r", search, parameters)
    }

    /// Returns the condition on SQLite for resources that another condition finds: it uses no index.
    fn filter(&self, parameters: &mut Parameters) -> String {
        self.conditions("+r", |parameters| self.search.filter(parameters), parameters)
    }

    /// Returns the condition on the table with that alias; a `+` before it keeps SQLite from using an index.
    fn conditions(
        &self,
        alias: &str,
        search: impl FnOnce(&mut Parameters) -> String,
        parameters: &mut Parameters,
    ) -> String {
        let mut conditions = vec![self.reach.sql(&format!("{alias}.tenancy"), parameters)];
        if let Some(kind) = &self.kind {
            conditions.push(format!("{alias}.kind = {}", parameters.add(Value::Text(kind.clone()))));
        }
        if let Some(owner) = &self.owner_id {
            conditions.push(format!("{alias}.owner_id = {}", parameters.add(Value::Text(owner.clone()))));
        }
        if let Some((ref_type, target)) = &self.reference {
            conditions.push(format!(
                "{alias}.id IN (SELECT source_id FROM resource_references WHERE target_id = {} AND ref_type = {})",
                parameters.add(Value::Text(target.clone())),
                parameters.add(Value::Text(ref_type.clone())),
            ));
        }
        conditions.push(format!("({})", search(parameters)));
        conditions.join(" AND ")
    }
}
