//! A real PostgreSQL that is stopped, restarted and killed under load.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use sqlx::{Connection as _, PgConnection};
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::outages::assert_hides_driver;
use crate::rig::{Client, TestDatabase, cluster, real_postgresql, start, start_at_once, until, variable};

/// An instance of PostgreSQL that only this test uses.
struct Instance {
    script: String,
    name: String,
    url: String,
}

impl Instance {
    async fn start() -> Option<Self> {
        real_postgresql()?;
        let Some(script) = variable("REAL_POSTGRESQL_SCRIPT") else {
            eprintln!("skipped: REAL_POSTGRESQL_SCRIPT is not set, so this PostgreSQL cannot be stopped");
            return None;
        };
        let name = format!("faults-{}", std::process::id());
        let exports = run(&script, "up", &name).await;
        let url = exports.lines().find_map(|line| line.strip_prefix("export REAL_POSTGRESQL_URL=")).unwrap().to_owned();
        Some(Self { script, name, url })
    }

    async fn control(&self, command: &str) {
        run(&self.script, command, &self.name).await;
    }
}

impl Drop for Instance {
    /// Stops the instance, also when the test fails.
    fn drop(&mut self) {
        let mut process = std::process::Command::new(&self.script);
        process.args(["down", &self.name]).env_remove("REAL_POSTGRESQL_URL").env_remove("REAL_POSTGRESQL_RUN");
        drop(process.output());
    }
}

async fn run(script: &str, command: &str, name: &str) -> String {
    // With these variables the script would report that a server exists already.
    let mut process = Command::new(script);
    process.args([command, name]).env_remove("REAL_POSTGRESQL_URL").env_remove("REAL_POSTGRESQL_RUN");
    let output = process.output().await.unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Creates and changes clusters; returns the acknowledged generations by id, and the number of refused requests.
async fn write(client: Client, prefix: String, stop: Arc<AtomicBool>) -> (BTreeMap<String, i64>, usize) {
    let (mut acknowledged, mut refused) = (BTreeMap::new(), 0);
    for step in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let created = client.post("/clusters", &cluster(&format!("{prefix}-{step}"))).await;
        if created.status != 201 {
            assert_hides_driver(&created);
            refused += 1;
            continue;
        }
        let id = created.body["id"].as_str().unwrap().to_owned();
        let path = format!("/clusters/{id}");
        acknowledged.insert(id.clone(), 1);
        let body = serde_json::json!({ "spec": { "n": step + 1 } });
        let patched = client.call(Method::PATCH, &path, Some(&body)).await;
        if patched.status == 200 {
            acknowledged.insert(id, 2);
        } else {
            assert_hides_driver(&patched);
            refused += 1;
        }
        let read = client.get(&path).await;
        if read.status != 200 {
            assert_hides_driver(&read);
        }
    }
    (acknowledged, refused)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outages_of_all_kinds_lose_nothing() {
    let Some(instance) = Instance::start().await else { return };
    let database = TestDatabase::postgres_at(&instance.url).await;
    let mut variables = database.variables();
    variables.insert("HYPERFLEET_DATABASE_POOL_ACQUIRE_TIMEOUT", "500ms".to_owned());
    let rig = start(&variables).await;
    let mut refused = 0;
    for (round, outage) in ["restart", "crash", "stop", "crash", "restart"].into_iter().enumerate() {
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = JoinSet::new();
        for writer in 0..8 {
            writers.spawn(write(rig.client.clone(), format!("c-{round}-{writer}"), Arc::clone(&stop)));
        }
        let total = async || rig.client.get_in_time("/clusters?size=1").await.body["total"].as_i64();
        let before = total().await.unwrap();
        until("load", async || total().await > Some(before + 40)).await;
        instance.control(outage).await;
        if outage != "restart" {
            until("unreadiness", async || rig.readiness().await == 503).await;
            assert_hides_driver(&rig.client.get("/clusters").await);
            instance.control("start").await;
        }
        rig.ready().await;
        rig.client.create_in_time(&format!("r-{round}")).await;
        stop.store(true, Ordering::SeqCst);
        while let Some(done) = writers.join_next().await {
            let (acknowledged, more) = done.unwrap();
            refused += more;
            for (id, generation) in acknowledged {
                let read = rig.client.get_in_time(&format!("/clusters/{id}")).await;
                assert_eq!(read.status, 200, "{id} was acknowledged before '{outage}' and is lost");
                assert!(read.body["generation"].as_i64() >= Some(generation), "{read:?}");
            }
        }
    }
    assert!(refused > 0, "no request was made during an outage");
    rig.end().await;
    // A server that starts while the database is down serves once it is up.
    instance.control("stop").await;
    let rig = start_at_once(&variables).await;
    assert_hides_driver(&rig.client.get("/clusters").await);
    assert_eq!(rig.readiness().await, 503);
    instance.control("start").await;
    rig.ready().await;
    assert_eq!(rig.client.get_in_time("/clusters?size=1").await.status, 200);
    // A server does not wait for a database that is down in order to stop.
    instance.control("stop").await;
    rig.end().await;
}

/// PostgreSQL itself notices neither that a request has timed out nor that its client has left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_ends_with_its_request() {
    let Some(database) = TestDatabase::postgres().await else { return };
    let rig = database.start().await;
    for number in 0..10 {
        let mut body = cluster(&format!("c-{number}"));
        body["spec"]["note"] = "a".repeat(900_000).into();
        assert_eq!(rig.client.post("/clusters", &body).await.status, 201);
    }
    rig.end().await;
    let mut variables = database.variables();
    // One search at a time.
    variables.insert("HYPERFLEET_DATABASE_POOL_MAX_CONNECTIONS", "3".to_owned());
    variables.insert("HYPERFLEET_SERVER_TIMEOUTS_WRITE", "500ms".to_owned());
    let rig = start(&variables).await;
    let search = format!("spec.note like '%{}b'", "a_".repeat(2_000));
    let query: String = form_urlencoded::Serializer::new(String::new()).append_pair("search", &search).finish();
    let slow = format!("/clusters?{query}");
    let TestDatabase::Postgres { url, .. } = &database else { return };
    let mut observer = PgConnection::connect(url).await.unwrap();
    let mut running = async || -> i64 {
        let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND datname = current_database() \
                   AND query LIKE '%FROM resources r WHERE%' AND pid <> pg_backend_pid()";
        sqlx::query_scalar(sql).fetch_one(&mut observer).await.unwrap()
    };
    for _ in 0..6 {
        assert_eq!(rig.client.get(&slow).await.status, 504);
        // The next round begins when the statement of the last one has ended.
        assert!(running().await <= 1);
    }
    // A client that leaves.
    for _ in 0..6 {
        let asked = tokio::time::timeout(std::time::Duration::from_millis(100), rig.client.get(&slow)).await;
        assert!(asked.is_err());
        assert!(running().await <= 1);
    }
    until("the end of all searches", async || running().await == 0).await;
    until("a list", async || rig.client.get("/channels").await.status == 200).await;
    rig.end().await;
    drop(observer);
    database.end().await;
}
