//! Throughput of a server with 1,000 and 100,000 clusters on both databases, compared with HyperFleet's published figures.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints, and fails where it cannot measure"
)]

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use daemon::environment::ProcessEnvironment;
use hyperfleet_api::server::{Build, Server};
use hyperfleet_api::settings::Settings;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

const CONNECTIONS: u64 = 8;
const MARK: &str = "load: serving at ";
const SERVE: &str = "LOAD_SERVE";

/// Requests per second of HyperFleet's own server: 1,000 clusters, 8 connections, PostgreSQL with fsync off, two shared cores.
const UPSTREAM: [(&str, f64); 4] = [("get", 1538.0), ("list of 100", 150.0), ("search", 136.0), ("report", 395.0)];

#[tokio::main]
async fn main() {
    if variable(SERVE).is_some() {
        return serve().await;
    }
    let counts = variable("LOAD_CLUSTERS").unwrap_or_else(|| "1000,100000".to_owned());
    let seconds = variable("LOAD_SECONDS").map_or(3, |seconds| seconds.parse().unwrap());
    println!(
        "{:<10} {:>8}  {:<12} {:>9} {:>9} {:>9}  ratio to upstream's",
        "database", "clusters", "request", "per s", "p50 ms", "p99 ms"
    );
    let postgresql = variable("REAL_POSTGRESQL_URL");
    if postgresql.is_none() {
        println!("(REAL_POSTGRESQL_URL is not set: SQLite only)");
    }
    for count in counts.split(',').map(|count| count.trim().parse().unwrap()) {
        measure(&Database::sqlite(), count, Duration::from_secs(seconds)).await;
        if let Some(admin) = &postgresql {
            let database = Database::postgresql(admin).await;
            measure(&database, count, Duration::from_secs(seconds)).await;
            database.end().await;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the environment configures the benchmark")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Runs this program as the server under load.
async fn serve() {
    let stop = daemon::shutdown::on_signal().unwrap();
    let settings = Settings::load(BTreeMap::new(), &ProcessEnvironment).unwrap();
    let server = Server::prepare(settings, &ProcessEnvironment, Build { version: "0", time: "" }).await.unwrap();
    println!("{MARK}{} {}", server.address(), server.health_address());
    Box::pin(server.run(stop)).await.unwrap();
}

enum Database {
    Sqlite(tempfile::TempDir),
    Postgresql { admin: String, url: String },
}

impl Database {
    fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    async fn postgresql(admin: &str) -> Self {
        let name = format!("load_{}", uuid::Uuid::now_v7().simple());
        run_postgresql(admin, &format!("CREATE DATABASE {name}")).await;
        Self::Postgresql { admin: admin.to_owned(), url: format!("{}/{name}", admin.rsplit_once('/').unwrap().0) }
    }

    async fn end(self) {
        if let Self::Postgresql { admin, url } = self {
            run_postgresql(&admin, &format!("DROP DATABASE {} WITH (FORCE)", url.rsplit_once('/').unwrap().1)).await;
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgresql { .. } => "PostgreSQL",
        }
    }

    /// Copies the one stored cluster until there are `count`.
    async fn fill(&self, count: u64) {
        let series = match self {
            Self::Sqlite(_) => {
                format!("WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {count} - 1)")
            }
            Self::Postgresql { .. } => format!("WITH s AS (SELECT generate_series(1, {count} - 1) AS i)"),
        };
        let parts = [
            format!(
                "INSERT INTO resources (id, kind, name, href, tenancy, generation, created_time, created_by, \
                 updated_time, updated_by, spec, object, state) {series} SELECT 'c-' || i, kind, 'c-' || i, href, \
                 tenancy, generation, \
                 created_time + i, created_by, updated_time + i, updated_by, spec, \
                 replace(object, '\"shard\":\"0\"', '\"shard\":\"' || (i % 100) || '\"'), \
                 replace(state, '\"shard\":\"0\"', '\"shard\":\"' || (i % 100) || '\"') FROM s, resources \
                 WHERE id = 'c-0'"
            ),
            format!(
                "INSERT INTO resource_labels {series} SELECT 'c-' || i, key, \
                 CASE key WHEN 'shard' THEN '' || (i % 100) ELSE value END FROM s, resource_labels \
                 WHERE resource_id = 'c-0'"
            ),
            format!(
                "INSERT INTO resource_conditions {series} SELECT 'c-' || i, type, status, observed_generation, \
                 last_updated_time, last_transition_time FROM s, resource_conditions WHERE resource_id = 'c-0'"
            ),
        ];
        for sql in parts {
            match self {
                Self::Sqlite(folder) => {
                    let url = format!("sqlite://{}/api.db", folder.path().display());
                    let mut connection = SqliteConnection::connect(&url).await.unwrap();
                    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
                    connection.close().await.unwrap();
                }
                Self::Postgresql { url, .. } => run_postgresql(url, &sql).await,
            }
        }
        if let Self::Postgresql { url, .. } = self {
            // As autovacuum does in a running system.
            run_postgresql(url, "ANALYZE").await;
        }
    }
}

async fn run_postgresql(url: &str, sql: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// A server under load.
struct ServerUnderLoad {
    child: Child,
    base: String,
    client: reqwest::Client,
}

impl ServerUnderLoad {
    async fn start(database: &Database) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(SERVE, "1").env("HYPERFLEET_LOGGING_LEVEL", "warn");
        for listener in ["SERVER", "HEALTH", "METRICS"] {
            command.env(format!("HYPERFLEET_{listener}_PORT"), "0");
            command.env(format!("HYPERFLEET_{listener}_HOST"), "127.0.0.1");
        }
        match database {
            Database::Sqlite(folder) => command.env("HYPERFLEET_DATABASE_PATH", folder.path().join("api.db")),
            Database::Postgresql { url, .. } => command.env("DATABASE_URL", url),
        };
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().unwrap();
        let (api, health) = line.strip_prefix(MARK).unwrap().split_once(' ').unwrap();
        let under = Self {
            child,
            base: format!("http://{api}/api/hyperfleet/v1/clusters"),
            client: reqwest::Client::builder().pool_max_idle_per_host(8).build().unwrap(),
        };
        while !under.client.get(format!("http://{health}/readyz")).send().await.unwrap().status().is_success() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        under
    }

    async fn report(&self, id: &str, adapter: &str, turn: u64) {
        let conditions = ["Available", "Applied", "Health"]
            .map(|kind| json!({ "type": kind, "status": "True", "reason": "AllIsWell", "message": "all is well" }));
        let body = json!({
            "adapter": adapter, "observed_generation": 1, "conditions": conditions, "data": { "turn": turn },
        });
        let sent = self.client.put(format!("{}/{id}/statuses", self.base)).body(body.to_string()).send().await;
        assert_eq!(sent.unwrap().status(), 201);
    }

    /// Reads a path. Parsing the response is not part of the measurement.
    async fn get(&self, path: &str) {
        let response = self.client.get(format!("{}{path}", self.base)).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(!response.bytes().await.unwrap().is_empty());
    }

    /// The resident memory in MiB: current and peak.
    fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
        };
        (of("VmRSS:"), of("VmHWM:"))
    }
}

async fn measure(database: &Database, count: u64, time: Duration) {
    let under = Arc::new(ServerUnderLoad::start(database).await);
    let cluster = json!({
        "kind": "Cluster", "id": "c-0", "name": "c-0",
        "spec": {
            "platform": { "type": "gcp", "gcp": { "projectID": "my-project-1", "region": "us-central1" } },
            "release": { "image": "quay.io/openshift-release-dev/ocp-release:4.20.1-x86_64", "version": "4.20.1" },
            "networking": { "clusterNetwork": [{ "cidr": "10.128.0.0/14", "hostPrefix": 23 }] },
        },
        "labels": { "shard": "0", "environment": "production" },
    });
    let created = under.client.post(&under.base).body(cluster.to_string()).send().await.unwrap();
    assert_eq!(created.status(), 201);
    for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
        under.report("c-0", adapter, 0).await;
    }
    database.fill(count).await;
    for (request, upstream) in UPSTREAM {
        let (rate, p50, p99) = load(&under, request, count, time).await;
        println!(
            "{:<10} {count:>8}  {request:<12} {rate:>9.0} {p50:>9.2} {p99:>9.2}  {:.2}",
            database.name(),
            rate / upstream
        );
    }
    let (now, most) = under.memory();
    println!("{:<10} {count:>8}  memory: {now} MiB, at most {most} MiB", database.name());
    let began = Instant::now();
    let mut stream = under.client.get(format!("{}?watch=true", under.base)).send().await.unwrap();
    let (mut bytes, mut end) = (0, Vec::new());
    while !end.windows(10).any(|window| window == b"\"BOOKMARK\"") {
        let chunk = stream.chunk().await.unwrap().unwrap();
        bytes += chunk.len();
        end.extend_from_slice(&chunk);
        end.drain(..end.len().saturating_sub(65_536));
    }
    println!(
        "{:<10} {count:>8}  stream's present state: {} MiB in {:.2} s; memory at most {} MiB",
        database.name(),
        bytes >> 20,
        began.elapsed().as_secs_f64(),
        under.memory().1
    );
}

/// Requests per second, and the percentiles of their times in milliseconds.
async fn load(under: &Arc<ServerUnderLoad>, request: &'static str, count: u64, time: Duration) -> (f64, f64, f64) {
    static TURN: AtomicU64 = AtomicU64::new(1);
    let began = Instant::now();
    let workers = (0..CONNECTIONS).map(|_| {
        let under = Arc::clone(under);
        tokio::spawn(async move {
            let mut times = Vec::new();
            while began.elapsed() < time {
                let turn = TURN.fetch_add(1, Ordering::Relaxed);
                // Spread over all clusters without a random source.
                let number = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) % count;
                let asked = Instant::now();
                match request {
                    "get" => under.get(&format!("/c-{number}")).await,
                    "list of 100" => under.get("?size=100").await,
                    "search" => {
                        let shard = number % 100;
                        under.get(&format!("?size=100&search=labels.shard%3D%27{shard}%27")).await;
                    }
                    _ => under.report(&format!("c-{number}"), "dns", turn).await,
                }
                times.push(asked.elapsed());
            }
            times
        })
    });
    let mut times: Vec<Duration> =
        futures_util::future::join_all(workers).await.into_iter().flat_map(Result::unwrap).collect();
    let seconds = began.elapsed().as_secs_f64();
    times.sort_unstable();
    let percentile = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e3;
    let done = u32::try_from(times.len()).unwrap();
    (f64::from(done) / seconds, percentile(50), percentile(99))
}
