//! Migrations of databases with content.

use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::search::Search;
use crate::store::tests::{on_postgresql, on_sqlite};
use crate::store::{Query, Store};
use crate::tenancy::Reach;

/// A cluster of a tenant, as servers before the ranges stored it.
const CONTENT: &str = "INSERT INTO resources (id, kind, name, href, tenancy, generation, created_time, created_by, updated_time, \
     updated_by, spec, state, object) VALUES ('c-1', 'Cluster', 'c-1', '', '{\"org\":\"one\"}', 1, 7, 'me', 7, 'me', '{}', '{}', \
     'the cluster'); \
     INSERT INTO resource_labels (resource_id, key, value) VALUES ('c-1', 'shard', 'a'); \
     INSERT INTO resource_conditions (resource_id, type, status, observed_generation, last_updated_time, last_transition_time, \
     reason) VALUES ('c-1', 'Reconciled', 'False', 1, 7, 7, 'Waiting')";

/// Stored labels and conditions are found by the ranges that a migration adds.
async fn keeps_labels_and_conditions(store: &Store) {
    let mut transaction = store.database().begin().await.unwrap();
    transaction.run(TABLE).await.unwrap();
    for migration in MIGRATIONS.iter().take_while(|migration| migration.id != "0008-ranges") {
        let sql = match transaction.dialect() {
            Dialect::Sqlite => migration.sqlite,
            Dialect::Postgres => migration.postgres,
        };
        transaction.run(sql).await.unwrap();
        let applied = format!("INSERT INTO schema_migrations (id, applied_time) VALUES ('{}', 1)", migration.id);
        transaction.execute(applied, Parameters::default()).await.unwrap();
    }
    transaction.run(CONTENT).await.unwrap();
    transaction.commit().await.unwrap();
    store.migrate(Duration::from_secs(10), Timestamp::UNIX_EPOCH).await.unwrap();
    let one = Reach::Tenant([("org".to_owned(), "one".to_owned())].into());
    for (search, reach, found) in [
        ("labels.shard = 'a'", &Reach::Unlimited, 1),
        ("labels.shard = 'a'", &one, 1),
        ("labels.shard = 'a'", &Reach::default(), 0),
        ("labels.shard = 'b'", &one, 0),
        ("status.conditions.Reconciled = 'False'", &Reach::Unlimited, 1),
        ("status.conditions.Reconciled = 'True'", &Reach::Unlimited, 0),
        ("status.conditions.Reconciled.reason = 'Waiting' and labels.shard = 'a'", &Reach::AllTenants, 1),
    ] {
        let query = Query { search: Search::parse(search).unwrap(), ..Query::of_kind("Cluster", reach, 10) };
        let page = store.list_objects(&query).await.unwrap();
        assert_eq!((page.items.len(), page.total), (found, i64::try_from(found).unwrap()), "{search} within {reach:?}");
    }
}

#[tokio::test]
async fn sqlite_keeps_labels_and_conditions() {
    on_sqlite(keeps_labels_and_conditions).await;
}

#[tokio::test]
async fn postgresql_keeps_labels_and_conditions() {
    on_postgresql(keeps_labels_and_conditions).await;
}
