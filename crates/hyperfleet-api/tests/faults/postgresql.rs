//! A real PostgreSQL that is stopped, restarted and killed under load.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::outages::assert_is_polite;
use crate::rig::{Client, Place, cluster, real_postgresql, start, start_at_once, until, variable};

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

    async fn tell(&self, command: &str) {
        run(&self.script, command, &self.name).await;
    }
}

impl Drop for Instance {
    /// Also when the test fails: nobody else would end it.
    fn drop(&mut self) {
        let mut process = std::process::Command::new(&self.script);
        process.args(["down", &self.name]).env_remove("REAL_POSTGRESQL_URL").env_remove("REAL_POSTGRESQL_RUN");
        drop(process.output());
    }
}

async fn run(script: &str, command: &str, name: &str) -> String {
    // With these the script would say that there is a server already.
    let mut process = Command::new(script);
    process.args([command, name]).env_remove("REAL_POSTGRESQL_URL").env_remove("REAL_POSTGRESQL_RUN");
    let output = process.output().await.unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Creates and changes clusters; what was acknowledged, by id, and how often an outage was answered.
async fn write(client: Client, prefix: String, ending: Arc<AtomicBool>) -> (BTreeMap<String, i64>, usize) {
    let (mut told, mut refused) = (BTreeMap::new(), 0);
    for turn in 0.. {
        if ending.load(Ordering::SeqCst) {
            break;
        }
        let created = client.post("/clusters", &cluster(&format!("{prefix}-{turn}"))).await;
        if created.status != 201 {
            assert_is_polite(&created);
            refused += 1;
            continue;
        }
        let id = created.body["id"].as_str().unwrap().to_owned();
        let path = format!("/clusters/{id}");
        told.insert(id.clone(), 1);
        let body = serde_json::json!({ "spec": { "n": turn + 1 } });
        let patched = client.call(Method::PATCH, &path, Some(&body)).await;
        if patched.status == 200 {
            told.insert(id, 2);
        } else {
            assert_is_polite(&patched);
            refused += 1;
        }
        let read = client.get(&path).await;
        if read.status != 200 {
            assert_is_polite(&read);
        }
    }
    (told, refused)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outages_of_all_kinds_lose_nothing() {
    let Some(instance) = Instance::start().await else { return };
    let place = Place::postgres_at(&instance.url).await;
    let mut variables = place.variables();
    variables.insert("HYPERFLEET_DATABASE_POOL_ACQUIRE_TIMEOUT", "500ms".to_owned());
    let rig = start(&variables).await;
    let mut refused = 0;
    for (round, outage) in ["restart", "crash", "stop", "crash", "restart"].into_iter().enumerate() {
        let ending = Arc::new(AtomicBool::new(false));
        let mut writers = JoinSet::new();
        for writer in 0..8 {
            writers.spawn(write(rig.client.clone(), format!("c-{round}-{writer}"), Arc::clone(&ending)));
        }
        let total = async || rig.client.get("/clusters?size=1").await.body["total"].as_i64();
        let before = total().await.unwrap();
        until("load", async || total().await > Some(before + 40)).await;
        instance.tell(outage).await;
        if outage != "restart" {
            until("unreadiness", async || rig.readiness().await == 503).await;
            assert_is_polite(&rig.client.get("/clusters").await);
            instance.tell("start").await;
        }
        rig.ready().await;
        until("recovery", async || rig.client.post("/clusters", &cluster(&format!("r-{round}"))).await.status == 201)
            .await;
        ending.store(true, Ordering::SeqCst);
        while let Some(done) = writers.join_next().await {
            let (told, more) = done.unwrap();
            refused += more;
            for (id, generation) in told {
                let seen = rig.client.get(&format!("/clusters/{id}")).await;
                assert_eq!(seen.status, 200, "{id} was acknowledged before '{outage}' and is lost");
                assert!(seen.body["generation"].as_i64() >= Some(generation), "{seen:?}");
            }
        }
    }
    assert!(refused > 0, "no request ever met an outage");
    rig.end().await;
    // A server that starts while the database is away serves once it is there.
    instance.tell("stop").await;
    let rig = start_at_once(&variables).await;
    assert_is_polite(&rig.client.get("/clusters").await);
    assert_eq!(rig.readiness().await, 503);
    instance.tell("start").await;
    rig.ready().await;
    assert_eq!(rig.client.get("/clusters?size=1").await.status, 200);
    // Nor does one wait for a database that is away in order to end.
    instance.tell("stop").await;
    rig.end().await;
}
