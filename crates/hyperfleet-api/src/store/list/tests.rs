//! Lists in the range of an index, compared with those by the condition of the search, and with the evaluation in memory.

use fleet_model::{Condition, Generation, Status};
use jiff::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::*;
use crate::resource::State;
use crate::store::tests::{on_postgresql, on_sqlite};
use crate::store::{Lock, Stored};
use crate::tenancy::Tenancy;

const RESOURCES: u32 = 150;
const SEARCHES: u32 = 600;
const VALUES: &[&str] = &["a", "b"];

fn state() -> impl Strategy<Value = State> {
    let labels = btree_map(select(&["shard", "group"][..]), select(VALUES), 0..3);
    let condition = |kind: &'static str| {
        let values = (select(&[Status::True, Status::False][..]), proptest::option::of(select(VALUES)));
        proptest::option::of(values)
            .prop_map(move |values| values.map(|(status, reason)| condition(kind, status, reason)))
    };
    (labels, condition("Reconciled"), condition("Healthy")).prop_map(|(labels, first, second)| State {
        labels: labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        conditions: [first, second].into_iter().flatten().collect(),
        ..State::default()
    })
}

fn condition(kind: &str, status: Status, reason: Option<&str>) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status,
        reason: reason.map(str::to_owned),
        message: None,
        observed_generation: Generation::from(1),
        created_time: Timestamp::UNIX_EPOCH,
        last_updated_time: Timestamp::UNIX_EPOCH,
        last_transition_time: Timestamp::UNIX_EPOCH,
        reason_since_time: Timestamp::UNIX_EPOCH,
    }
}

fn tenancy() -> impl Strategy<Value = Tenancy> {
    select(&["", "one", "two"][..])
        .prop_map(|org| if org.is_empty() { Tenancy::new() } else { [("org".to_owned(), org.to_owned())].into() })
}

/// A resource of few kinds, tenancies and times of creation; the caller sets the id.
fn resource() -> impl Strategy<Value = Resource> {
    (select(&["Cluster", "WifConfig"][..]), tenancy(), 0..20_i64, state()).prop_map(|(kind, tenancy, time, state)| {
        let created_time = Timestamp::from_second(time).unwrap();
        Resource {
            id: String::new(),
            kind: kind.to_owned(),
            name: String::new(),
            owner: None,
            spec: serde_json::Map::new(),
            href: String::new(),
            generation: Generation::from(1),
            created_time,
            created_by: "me".to_owned(),
            updated_time: created_time,
            updated_by: "me".to_owned(),
            deleted_time: None,
            deleted_by: None,
            state: State { tenancy, ..state },
        }
    })
}

/// Tests of labels and conditions that must all be passed.
fn search() -> impl Strategy<Value = String> {
    let equality = select(&[
        "labels.shard = 'a'",
        "labels.shard = 'b'",
        "labels.group = 'a'",
        "status.conditions.Reconciled = 'True'",
        "status.conditions.Healthy = 'False'",
        "status.conditions.Healthy.reason = 'b'",
    ]);
    let other = select(&[
        "labels.shard != 'a'",
        "labels.group in ['a', 'c']",
        "labels.group is null",
        "labels.shard like '%a'",
        "status.conditions.Reconciled.reason is null",
        "(labels.group = 'b' or status.conditions.Reconciled = 'False')",
    ]);
    vec(prop_oneof![3 => equality, 1 => other], 1..4).prop_map(|tests| tests.join(" and "))
}

fn query() -> impl Strategy<Value = Query> {
    let reach = prop_oneof![Just(Reach::Unlimited), Just(Reach::AllTenants), tenancy().prop_map(Reach::Tenant)];
    let order = select(&["", "created_time", "created_time desc, id desc"][..]);
    (search(), reach, order, 0..9_i64, 1..20_i64).prop_map(|(search, reach, order, offset, limit)| Query {
        search: Search::parse(&search).unwrap(),
        order: Order::parse(&[order.to_owned()]).unwrap(),
        offset,
        ..Query::of_kind("Cluster", &reach, limit)
    })
}

/// Stores a fleet, and changes the labels and conditions of a part of it.
async fn fill(store: &Store, runner: &mut TestRunner) -> Vec<Resource> {
    let mut fleet = Vec::new();
    let mut write = store.write().await.unwrap();
    for number in 0..RESOURCES {
        // Neither in the order of creation nor in the reverse.
        let id = format!("{:04}", number * 7919 % 10_000);
        let resource = Resource { name: id.clone(), id, ..one(runner, &resource()) };
        write.insert(Stored { resource: resource.clone(), sealed: None }, Vec::new(), Timestamp::UNIX_EPOCH);
        fleet.push(resource);
    }
    write.commit().await.unwrap();
    let mut write = store.write().await.unwrap();
    for resource in fleet.iter_mut().step_by(3) {
        let before = write.lock(&resource.id, Lock::Change, &Reach::Unlimited).await.unwrap().unwrap();
        resource.state = State { tenancy: resource.state.tenancy.clone(), ..one(runner, &state()) };
        let after = Stored { resource: resource.clone(), sealed: None };
        write.save(&before, after, Vec::new(), Timestamp::UNIX_EPOCH);
    }
    write.commit().await.unwrap();
    fleet
}

async fn ranges_agree(store: &Store) {
    store.migrate(std::time::Duration::from_secs(10), Timestamp::UNIX_EPOCH).await.unwrap();
    let mut runner = TestRunner::deterministic();
    let fleet = fill(store, &mut runner).await;
    let dialect = store.database().dialect();
    let mut compared = 0;
    for _ in 0..SEARCHES {
        let query = one(&mut runner, &query());
        let is_found = |resource: &&Resource| {
            resource.kind == "Cluster" && query.reach.covers(&resource.state.tenancy) && query.search.matches(resource)
        };
        let mut expected: Vec<_> = fleet.iter().filter(is_found).collect();
        expected.sort_by(|a, b| query.order.compare(a, b));
        let total = i64::try_from(expected.len()).unwrap();
        let (skipped, taken) = (query.offset.try_into().unwrap(), query.limit.try_into().unwrap());
        let ids: Vec<_> = expected.into_iter().skip(skipped).take(taken).map(|each| each.id.clone()).collect();
        let page = store.list(&query).await.unwrap();
        let listed: Vec<_> = page.items.into_iter().map(|resource| resource.id).collect();
        assert_eq!((&listed, page.total), (&ids, total), "{query:?}");
        let ranges = (0..TRIED).map(Found::Range);
        let is_range = |found: &Found| {
            let Found::Range(number) = *found else { return true };
            query.range(number, dialect, &mut Parameters::default()).is_some()
        };
        for found in ranges.filter(is_range).chain([Found::All]) {
            let (sql, parameters) = query.statement(dialect, "r.id", found);
            let rows = store.database().fetch(sql, parameters).await.unwrap();
            let selected: Vec<_> = rows.iter().map(|row| row.text(0).unwrap()).collect();
            assert_eq!(selected, ids, "{found:?} of {query:?}");
            let length = match rows.first() {
                Some(row) => row.number(1).unwrap(),
                None => store.length(&query, found).await.unwrap(),
            };
            assert_eq!(length, total, "{found:?} of {query:?}");
            compared += u32::from(found != Found::All && !ids.is_empty());
        }
    }
    assert!(compared > SEARCHES / 3, "only {compared} pages were read from a range");
}

fn one<S: Strategy>(runner: &mut TestRunner, strategy: &S) -> S::Value {
    strategy.new_tree(runner).unwrap().current()
}

#[tokio::test]
async fn sqlite_lists_ranges() {
    on_sqlite(ranges_agree).await;
}

#[tokio::test]
async fn postgresql_lists_ranges() {
    on_postgresql(ranges_agree).await;
}

/// Stores many clusters, each of one of 50 tenants, with a label.
fn of_tenants(dialect: Dialect) -> [String; 2] {
    let (series, analyze) = match dialect {
        Dialect::Sqlite => (
            "WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 5000) SELECT",
            "PRAGMA user_version",
        ),
        Dialect::Postgres => ("WITH s AS (SELECT generate_series(1, 5000) AS i) SELECT", "ANALYZE"),
    };
    let resources = format!(
        "INSERT INTO resources (id, kind, name, href, tenancy, generation, created_time, created_by, updated_time, updated_by, spec, \
         state, object) {series} 'c-' || i, 'Cluster', 'c-' || i, '', '{{\"org\":\"t' || (i % 50) || '\"}}', 1, i, 'me', i, 'me', \
         '{{}}', '{{}}', '{{}}' FROM s"
    );
    let labels = "INSERT INTO resource_labels (resource_id, key, value, kind, tenancy, created_time) SELECT id, 'shard', 'a', kind, \
                  tenancy, created_time FROM resources";
    [resources, format!("{labels}; {analyze}")]
}

/// A tenant's list and its search for a label walk through the indexes by tenancy.
async fn tenants_have_indexes(store: &Store) {
    store.migrate(std::time::Duration::from_secs(10), Timestamp::UNIX_EPOCH).await.unwrap();
    let dialect = store.database().dialect();
    let mut transaction = store.database().begin().await.unwrap();
    for sql in of_tenants(dialect).iter().flat_map(|sql| sql.split("; ")) {
        transaction.execute(sql.to_owned(), Parameters::default()).await.unwrap();
    }
    let reach = Reach::Tenant([("org".to_owned(), "t7".to_owned())].into());
    for (search, found, index) in [
        ("", Found::All, "resources_by_tenancy"),
        ("labels.shard = 'a'", Found::Range(0), "resource_labels_by_tenancy"),
    ] {
        let query = Query { search: Search::parse(search).unwrap(), ..Query::of_kind("Cluster", &reach, 20) };
        let (sql, parameters) = query.statement(dialect, "r.id", found);
        let (explain, column) = match dialect {
            Dialect::Sqlite => ("EXPLAIN QUERY PLAN", 3),
            Dialect::Postgres => ("EXPLAIN", 0),
        };
        let plan = transaction.fetch(format!("{explain} {sql}"), parameters).await.unwrap();
        let plan: Vec<_> = plan.iter().map(|row| row.text(column).unwrap()).collect();
        assert!(plan.iter().any(|line| line.contains(index)), "{search}: {plan:#?}");
    }
}

#[tokio::test]
async fn sqlite_finds_a_tenants_resources_by_index() {
    on_sqlite(tenants_have_indexes).await;
}

#[tokio::test]
async fn postgresql_finds_a_tenants_resources_by_index() {
    on_postgresql(tenants_have_indexes).await;
}
