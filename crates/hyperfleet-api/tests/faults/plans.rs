//! Checks that both databases use an index for the statements that a server sends.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, SqliteConnection};

use crate::process::{Process, TELL_STATEMENTS};
use crate::rig::{TestDatabase, report, until, variable};

/// Number of clusters, and of node pools, changes and transitions each.
const MANY: u32 = 20_000;

/// The requests, true where the results may be sorted, and the beginning of the index's name if it matters. The few matches
/// of a search may be sorted, and the ids of many, but not a whole kind.
const ASKED: [(&str, bool, &str); 29] = [
    ("/clusters?size=100", false, ""),
    ("/clusters?size=100&order=name", false, ""),
    ("/clusters?size=20&order=updated_time%20desc", false, ""),
    ("/clusters/c-7/nodepools", false, ""),
    ("/clusters?search=labels.shard%3D%2717%27", true, "resource_labels_by_"),
    ("/clusters?search=status.conditions.Reconciled%3D%27True%27", true, "resource_conditions_by_"),
    // Almost every cluster passes the first test, few pass the second one.
    ("/clusters?search=status.conditions.Reconciled%3D%27False%27", true, "resource_conditions_by_"),
    (
        "/clusters?search=status.conditions.Reconciled%3D%27False%27+and+labels.shard%3D%2717%27",
        true,
        "resource_labels_by_",
    ),
    ("/clusters?search=status.conditions.Reconciled.reason%3D%27R17%27", true, "resource_conditions_by_"),
    ("/clusters?search=name%3D%27c-77%27", true, ""),
    ("/clusters?search=id%3E%27c-77%27&order=id&size=100", false, ""),
    ("/clusters?ref_type=wif_config&ref_target_id=wif", true, ""),
    ("/clusters/c-0/statuses/history", false, ""),
    // Ranges of labels and conditions, which hold all that is counted and sorted.
    ("/clusters?search=labels.shard+in+[%2717%27,%2718%27]", true, "resource_labels_by_"),
    ("/clusters?search=labels.shard!%3D%2717%27", true, "resource_labels_by_"),
    ("/clusters?search=labels.shard+like+%271%25%27", true, "resource_labels_by_"),
    (
        "/clusters?search=labels.shard%3D%2717%27+and+status.conditions.Reconciled%3D%27False%27&order=created_time",
        true,
        "resource_labels_by_",
    ),
    // Neither labels nor conditions alone: few are found by one, or the kind is walked through.
    ("/clusters?search=labels.shard%3D%2717%27+and+deleted_time+is+null", true, ""),
    ("/clusters?search=labels.shard%3D%2717%27+or+labels.shard%3D%2718%27", true, ""),
    ("/clusters?search=not+(name%3D%27c-77%27)", true, "resources_by_created_time"),
    ("/clusters?search=labels.shard+is+null", true, ""),
    ("/clusters?search=deleted_time+is+null", true, "resources_by_created_time"),
    ("/clusters?search=generation%3E1", true, "resources_by_created_time"),
    ("/clusters?search=name+like+%27c-77%25%27", true, ""),
    ("/clusters?search=name+ilike+%27C-77%25%27", true, "resources_by_created_time"),
    ("/clusters?search=created_time%3E%272026-01-01T00:00:00Z%27&order=created_time", true, ""),
    ("/clusters?search=updated_time%3C%272026-01-01T00:00:00Z%27", true, ""),
    ("/clusters/c-7/nodepools?search=name%3D%27n-77%27", true, ""),
    // Only PostgreSQL has an index over paths of the spec.
    ("/clusters?search=spec.platform.region%3D%27r-17%27", true, ""),
];

/// Returns statements that multiply `c-0`, its node pool and their rows in all tables.
fn filling(series: &str) -> Vec<String> {
    let own = "created_by, updated_time, updated_by";
    let spec = "'{\"platform\":{\"region\":\"r-' || (i % 500) || '\"}}'";
    vec![
        format!(
            "INSERT INTO resources (id, kind, name, href, tenancy, generation, created_time, {own}, spec, state, object) {series} \
             SELECT 'c-' || i, kind, 'c-' || i, href, tenancy, 1, created_time + i, {own}, SPEC, state, object \
             FROM s, resources WHERE id = 'c-0'"
        )
        .replace("SPEC", spec),
        format!(
            "INSERT INTO resources (id, kind, name, href, owner_id, owner_kind, owner_href, tenancy, generation, \
             created_time, {own}, spec, state, object) {series} SELECT 'n-' || i, kind, 'n-' || i, href, \
             'c-' || (i / 10), owner_kind, owner_href, tenancy, 1, created_time + i, {own}, spec, state, object \
             FROM s, resources WHERE id = 'n-0'"
        ),
        format!(
            "INSERT INTO resource_labels (resource_id, key, value, kind, tenancy, created_time) {series} \
             SELECT id, names.key, '' || (i % 200), kind, tenancy, created_time FROM s JOIN resources ON id = 'c-' || i \
             CROSS JOIN (SELECT 'shard' AS key UNION SELECT 'group' UNION SELECT 'owner' UNION SELECT 'region') names"
        ),
        format!(
            "INSERT INTO resource_conditions {series} SELECT id, names.type, \
             CASE i % 200 WHEN 0 THEN 'True' ELSE 'False' END, 1, 1, 1, 'R' || (i % 200), kind, created_time \
             FROM s JOIN resources ON id = 'c-' || i \
             CROSS JOIN (SELECT 'Reconciled' AS type UNION SELECT 'Applied' UNION SELECT 'Available' UNION SELECT 'Health') names"
        ),
        format!(
            "INSERT INTO resource_references {series} SELECT 'c-' || i, 'wif_config', \
             CASE i % 200 WHEN 0 THEN 'wif' ELSE 'wif-' || (i % 200) END FROM s"
        ),
        format!(
            "INSERT INTO transitions (resource_id, number, adapter, type, to_status, observed_generation, time) {series} \
             SELECT 'c-' || (i % 400), 1000 + i, 'dns', 'Available', 'True', 1, i FROM s"
        ),
        format!(
            "INSERT INTO changes (version, kind, resource_id, type, time, object) {series} \
             SELECT v.version + i, 'Cluster', 'c-' || i, 'DELETED', i + 4000000000000000, '{{}}' \
             FROM s, change_counter v"
        ),
        format!("UPDATE change_counter SET version = version + {}", MANY - 1),
        format!("UPDATE resource_counts SET count = count + {} WHERE kind <> 'WifConfig'", MANY - 1),
    ]
}

async fn fill(database: &TestDatabase, client: &crate::rig::Client) {
    let wif = |name: String| json!({ "kind": "WifConfig", "id": name, "name": name, "spec": {} });
    assert_eq!(client.post("/wifconfigs", &wif("wif".to_owned())).await.status, 201);
    for number in 1..200 {
        assert_eq!(client.post("/wifconfigs", &wif(format!("wif-{number}"))).await.status, 201);
    }
    let body = json!({ "kind": "Cluster", "id": "c-0", "name": "c-0", "spec": {} });
    assert_eq!(client.post("/clusters", &body).await.status, 201);
    assert_eq!(client.put("/clusters/c-0/statuses", &report("dns", 1, "True")).await.status, 201);
    let body = json!({ "kind": "NodePool", "id": "n-0", "name": "n-0", "spec": {} });
    assert_eq!(client.post("/clusters/c-0/nodepools", &body).await.status, 201);
    match database {
        TestDatabase::Sqlite(_) => {
            let series =
                format!("WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {MANY} - 1)");
            let mut connection = sqlite(database).await;
            for sql in filling(&series) {
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
            }
        }
        TestDatabase::Postgres { url, .. } => {
            let series = format!("WITH s AS (SELECT generate_series(1, {MANY} - 1) AS i)");
            let mut connection = PgConnection::connect(url).await.unwrap();
            for sql in filling(&series) {
                let sql = sql.replace("\"}}',", "\"}}')::jsonb,").replace("'{\"platform\"", "('{\"platform\"");
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
            }
            // As autovacuum does.
            sqlx::raw_sql("VACUUM ANALYZE").execute(&mut connection).await.unwrap();
        }
    }
}

async fn sqlite(database: &TestDatabase) -> SqliteConnection {
    let TestDatabase::Sqlite(folder) = database else { panic!("a file") };
    SqliteConnection::connect(&format!("sqlite://{}/api.db", folder.path().display())).await.unwrap()
}

/// Returns true for statements that read a page.
fn is_page(sql: &str) -> bool {
    sql.contains("ORDER BY")
        && ["FROM resources r", "found JOIN resources r", "FROM transitions", "FROM changes"]
            .iter()
            .any(|it| sql.contains(it))
}

/// Returns the expectations of a request; changes since a version are not sorted.
fn expected(path: &str) -> (bool, &'static str) {
    ASKED.iter().find(|(asked, ..)| *asked == path).map_or((false, ""), |(_, may_sort, index)| (*may_sort, index))
}

/// Sends all requests of [`ASKED`] and follows the stream from the middle; returns the statements of each.
async fn ask(process: &Process, mut sent: impl AsyncFnMut() -> Vec<String>) -> BTreeMap<&'static str, Vec<String>> {
    let mut all = BTreeMap::new();
    for (path, ..) in ASKED {
        // PostgreSQL may use a generic plan after the fifth execution.
        for _ in 0..7 {
            assert_eq!(process.client.get(path).await.status, 200, "{path}");
        }
        all.insert(path, sent().await);
    }
    let mut watch = process.client.watch_from("/clusters", 10_000).await;
    assert_eq!(watch.next().await.unwrap()["type"], "DELETED");
    // The stream goes on meanwhile. Of the last page, which is empty, PostgreSQL expects one row and may sort it.
    let mut pages = sent().await;
    pages.truncate(1);
    all.insert("changes since", pages);
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_finds_pages_by_index() {
    let database = TestDatabase::sqlite();
    let mut variables = database.variables();
    variables.insert(TELL_STATEMENTS, "1".to_owned());
    let process = Process::start(&variables).await;
    process.ready().await;
    fill(&database, &process.client).await;
    drop(pages_until(&process, "/channels/mark-0").await);
    let mut marks = 0;
    let asked = ask(&process, async || {
        marks += 1;
        pages_until(&process, &format!("/channels/mark-{marks}")).await
    })
    .await;
    let mut connection = sqlite(&database).await;
    let mut faults = Vec::new();
    for analyzed in [false, true] {
        if analyzed {
            sqlx::raw_sql("ANALYZE").execute(&mut connection).await.unwrap();
        }
        for (path, statements) in &asked {
            assert!(!statements.is_empty(), "{path}: no statement was logged");
            let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", statements[0]));
            let rows = sqlx::raw_sql(explain).fetch_all(&mut connection).await.unwrap();
            let plan: Vec<String> = rows.iter().map(|row| row.get(3)).collect();
            let (may_sort, index) = expected(path);
            let sorts = plan.iter().any(|line| line.contains("TEMP B-TREE"));
            // What a search has found is scanned as well, but not the table.
            let found = ["found", "walked", "counted", "(subquery"];
            let is_scan = |line: &String| {
                line.strip_prefix("SCAN ").is_some_and(|scanned| found.iter().all(|name| !scanned.starts_with(name)))
            };
            let scans = plan.iter().any(is_scan);
            let walks = path.contains("search=spec.");
            let is_found = plan.iter().any(|line| line.contains(index));
            if (scans && !walks) || (sorts && !may_sort) || !is_found {
                faults.push(format!("{path} (analyzed: {analyzed}): {plan:#?}\n{}", statements[0]));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Requests this path, which no other request has, and returns the statements of pages that were logged before it.
async fn pages_until(process: &Process, path: &str) -> Vec<String> {
    // A statement is logged before its request is answered, but the lines arrive through a pipe, which may be slower.
    assert_eq!(process.client.get(path).await.status, 404, "{path}");
    let (mut lines, end): (Vec<String>, _) = (Vec::new(), format!("{path}\""));
    until("the request's line in the log", async || {
        lines.append(&mut process.written.lock().unwrap());
        lines.iter().any(|line| line.contains(&end))
    })
    .await;
    let before = lines.iter().take_while(|line| !line.contains(&end));
    before.filter_map(|line| statement(line)).filter(|sql| is_page(sql)).collect()
}

/// Returns the statement of a line of the log.
fn statement(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    Some(line["db.statement"].as_str()?.trim().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql_finds_pages_by_index() {
    let Some(database) = TestDatabase::postgres().await else { return };
    let Some(run) = variable("REAL_POSTGRESQL_RUN") else {
        eprintln!("skipped: REAL_POSTGRESQL_RUN is not set, so this PostgreSQL's log cannot be read");
        return;
    };
    let log = format!("{run}/postgres.log");
    let TestDatabase::Postgres { url, .. } = &database else { return };
    let name = url.rsplit_once('/').unwrap().1;
    let process = Process::start(&database.variables()).await;
    process.ready().await;
    fill(&database, &process.client).await;
    drop(process);
    // The server logs the plan of each statement of this database.
    let mut connection = PgConnection::connect(url).await.unwrap();
    for setting in ["session_preload_libraries = 'auto_explain'", "auto_explain.log_min_duration = 0"] {
        let load = if setting.starts_with("auto") { "LOAD 'auto_explain'; " } else { "" };
        let sql = format!("{load}ALTER DATABASE {name} SET {setting}");
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    }
    let mut variables = database.variables();
    variables.insert("HYPERFLEET_DATABASE_POOL_MAX_CONNECTIONS", "3".to_owned());
    let process = Process::start(&variables).await;
    process.ready().await;
    let mut read = std::fs::read_to_string(&log).unwrap().len();
    // A plan is logged before its statement is answered.
    let asked = ask(&process, async || {
        let text = std::fs::read_to_string(&log).unwrap();
        let logged = plans(&text[read..]);
        read = text.len();
        logged
    })
    .await;
    let mut faults = Vec::new();
    for (path, plans) in &asked {
        let (may_sort, index) = expected(path);
        assert!(!plans.is_empty(), "{path}: no plan was logged");
        for plan in plans {
            // The counts are a row for each kind and tenancy.
            if plan.replace("Seq Scan on resource_counts", "").contains("Seq Scan")
                || (plan.contains("Sort Key") && !may_sort)
                || !plan.contains(index)
            {
                faults.push(format!("{path}: {plan}"));
                break;
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    drop(process);
    database.end().await;
}

/// Returns the plans of pages in a log.
fn plans(log: &str) -> Vec<String> {
    let mut plans: Vec<String> = Vec::new();
    let mut inside = false;
    for line in log.lines() {
        if let Some(line) = line.strip_prefix('\t').filter(|_| inside) {
            let plan = plans.last_mut().unwrap();
            plan.push('\n');
            plan.push_str(line);
        } else {
            inside = line.contains("plan:");
            if inside {
                plans.push(String::new());
            }
        }
    }
    plans.retain(|plan| is_page(plan));
    plans
}
