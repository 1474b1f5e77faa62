//! Migrations of databases with content.

use std::time::Duration;

use database::Parameters;
use jiff::Timestamp;

use super::*;
use crate::search::Search;
use crate::store::tests::{on_postgresql, on_sqlite};
use crate::store::{Query, Store};
use crate::tenancy::Reach;

/// The table of applied migrations, as servers of every version have created it.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (id TEXT PRIMARY KEY, applied_time BIGINT NOT NULL)";

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
        transaction.run(migration.sql(transaction.dialect())).await.unwrap();
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

/// The rows of a resource in other tables are removed with it, also where its row alone is deleted.
async fn removes_rows_with_their_resource(store: &Store) {
    store.migrate(Duration::from_secs(10), Timestamp::UNIX_EPOCH).await.unwrap();
    let mut transaction = store.database().begin().await.unwrap();
    let resource = |id: &str| {
        format!(
            "INSERT INTO resources (id, kind, name, href, tenancy, generation, created_time, created_by, updated_time, \
             updated_by, spec, state, object) VALUES ('{id}', 'Cluster', '{id}', '', '{{}}', 1, 7, 'me', 7, 'me', '{{}}', \
             '{{}}', 'the cluster')"
        )
    };
    let of = |id: &str| {
        [
            format!(
                "resource_labels (resource_id, key, value, kind, tenancy, created_time) VALUES ('{id}', 'a', 'b', '', '', 7)"
            ),
            format!(
                "resource_conditions (resource_id, type, status, observed_generation, last_updated_time, \
                 last_transition_time, kind, created_time) VALUES ('{id}', 'Ready', 'True', 1, 7, 7, 'Cluster', 7)"
            ),
            format!(
                "transitions (resource_id, number, adapter, type, to_status, observed_generation, time) VALUES ('{id}', \
                 1, '', 'Ready', 'True', 1, 7)"
            ),
            format!("resource_references (source_id, ref_type, target_id) VALUES ('{id}', 'of', 'target')"),
        ]
    };
    for id in ["target", "gone", "kept"] {
        transaction.execute(resource(id), Parameters::default()).await.unwrap();
        for row in of(id) {
            transaction.execute(format!("INSERT INTO {row}"), Parameters::default()).await.unwrap();
        }
    }
    transaction.execute("DELETE FROM resources WHERE id = 'gone'".to_owned(), Parameters::default()).await.unwrap();
    for (table, column) in [
        ("resource_labels", "resource_id"),
        ("resource_conditions", "resource_id"),
        ("transitions", "resource_id"),
        ("resource_references", "source_id"),
    ] {
        let sql = format!("SELECT {column} FROM {table} ORDER BY {column}");
        let rows = transaction.fetch(sql, Parameters::default()).await.unwrap();
        let ids: Vec<_> = rows.iter().map(|row| row.text(0).unwrap()).collect();
        assert_eq!(ids, ["kept", "target"], "{table}");
    }
}

#[tokio::test]
async fn sqlite_removes_rows_with_their_resource() {
    on_sqlite(removes_rows_with_their_resource).await;
}

#[tokio::test]
async fn postgresql_removes_rows_with_their_resource() {
    on_postgresql(removes_rows_with_their_resource).await;
}
