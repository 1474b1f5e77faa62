//! Throughput of a server with 1,000 and 100,000 clusters on both databases. The baseline of the same run is the database
//! itself: `pgbench` on PostgreSQL, commits of one row on SQLite.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints, and fails where it cannot measure"
)]

mod baseline;
mod client;
mod database;
mod streams;

use std::collections::BTreeMap;
use std::process::{ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use self::database::Database;
use client::{CLUSTERS, Client};
use daemon::environment::ProcessEnvironment;
use http::Method;
use http_body_util::BodyExt as _;
use hyperfleet_api::server::{Build, Server};
use hyperfleet_api::settings::Settings;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// That of the program whose server is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CONNECTIONS: u64 = 8;
const MARK: &str = "load: serving at ";
const SERVE: &str = "LOAD_SERVE";

/// Requests per second of HyperFleet's own server with 1,000 clusters and 8 connections, where `pgbench -N` had
/// [`UPSTREAM_BASELINE`] transactions per second.
///
/// A search finds 1 % of all clusters, a search for 10 ten. Upstream's was one of 1 %.
const UPSTREAM: [(&str, f64); 6] = [
    ("create", 1027.0),
    ("get", 1903.0),
    ("list of 100", 211.0),
    ("search", 156.0),
    ("search of 10", 156.0),
    ("report", 494.0),
];
const UPSTREAM_BASELINE: f64 = 11_200.0;

#[tokio::main]
async fn main() -> ExitCode {
    if variable(SERVE).is_some() {
        serve().await;
        return ExitCode::SUCCESS;
    }
    match Chosen::read() {
        Ok(chosen) => measure_all(&chosen).await,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The names of what is to be measured.
struct Chosen {
    databases: Vec<&'static str>,
    parts: Vec<&'static str>,
    requests: Vec<&'static str>,
}

impl Chosen {
    /// Reads the variables that choose; without them all is measured.
    fn read() -> Result<Self, String> {
        let databases = chosen("LOAD_DATABASES", &["SQLite", "PostgreSQL"])?;
        if databases == ["PostgreSQL"] && variable("REAL_POSTGRESQL_URL").is_none() {
            return Err("LOAD_DATABASES is PostgreSQL alone, and REAL_POSTGRESQL_URL is not set".to_owned());
        }
        let parts = chosen("LOAD_PARTS", &["requests", "streams"])?;
        let requests = chosen("LOAD_REQUESTS", &UPSTREAM.map(|(request, _)| request))?;
        Ok(Self { databases, parts, requests })
    }
}

/// Returns the names that a variable lists, in the order of `all`; an unknown one would measure nothing. Without it, all.
fn chosen(variable_name: &str, all: &[&'static str]) -> Result<Vec<&'static str>, String> {
    let Some(list) = variable(variable_name) else { return Ok(all.to_vec()) };
    let listed: Vec<&str> = list.split(',').map(str::trim).collect();
    if let Some(unknown) = listed.iter().find(|name| !all.contains(name)) {
        return Err(format!("{variable_name}: `{unknown}` is none of: {}", all.join(", ")));
    }
    Ok(all.iter().copied().filter(|name| listed.contains(name)).collect())
}

async fn measure_all(chosen: &Chosen) {
    let counts = variable("LOAD_CLUSTERS").unwrap_or_else(|| "1000,100000".to_owned());
    let seconds = variable("LOAD_SECONDS").map_or(3, |seconds| seconds.parse().unwrap());
    println!(
        "To the baseline: requests for each transaction of the baseline. To upstream's: the same of HyperFleet's server."
    );
    println!(
        "{:<10} {:>8}  {:<13} {:>9} {:>9} {:>9} {:>11} {:>11}",
        "database", "clusters", "request", "per s", "p50 ms", "p99 ms", "to baseline", "to upstream"
    );
    let postgresql = variable("REAL_POSTGRESQL_URL");
    if postgresql.is_none() {
        println!("(REAL_POSTGRESQL_URL is not set: SQLite only)");
    }
    for count in counts.split(',').map(|count| count.trim().parse().unwrap()) {
        for part in &chosen.parts {
            let mut databases = Vec::new();
            if chosen.databases.contains(&"SQLite") {
                databases.push(Database::sqlite());
            }
            if let Some(admin) = postgresql.as_ref().filter(|_| chosen.databases.contains(&"PostgreSQL")) {
                databases.push(Database::postgresql(admin).await);
            }
            for database in databases {
                match *part {
                    "streams" => streams::measure(&database, count, Duration::from_secs(seconds)).await,
                    _ => measure(&database, count, Duration::from_secs(seconds), &chosen.requests).await,
                }
                database.end().await;
            }
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
    println!("{MARK}{} {} {}", server.address(), server.health_address(), server.metrics_address());
    Box::pin(server.run(stop)).await.unwrap();
}

/// A server under load.
struct ServerUnderLoad {
    child: Child,
    /// The addresses of the API and its metrics.
    api: String,
    metrics: String,
}

impl ServerUnderLoad {
    async fn start(database: &Database) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(SERVE, "1").env("HYPERFLEET_LOGGING_LEVEL", "warn").env("HYPERFLEET_CHANGES_MAX_STREAMS", "10000");
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
        let addresses: Vec<&str> = line.strip_prefix(MARK).unwrap().split(' ').collect();
        let mut health = Client::connect(addresses[1]).await;
        while !health.send(Method::GET, "/readyz", String::new()).await.0.is_success() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Self { child, api: addresses[0].to_owned(), metrics: addresses[2].to_owned() }
    }

    /// Opens a connection to the API.
    async fn connect(&self) -> Client {
        Client::connect(&self.api).await
    }

    /// Number of statements so far that read changes, or the newest version.
    async fn stream_reads(&self) -> u64 {
        let mut client = Client::connect(&self.metrics).await;
        let (_, metrics) = client.send(Method::GET, "/metrics", String::new()).await;
        let counts = std::str::from_utf8(&metrics).unwrap().lines().filter(|line| {
            let is_count = line.starts_with("hyperfleet_db_query_duration_seconds_count{");
            let tables = ["table=\"changes\"", "table=\"change_counter\""];
            is_count && line.contains("\"select\"") && tables.iter().any(|table| line.contains(table))
        });
        counts.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
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

/// Stores that many clusters with all reports.
async fn fleet(under: &ServerUnderLoad, database: &Database, count: u64) {
    let mut client = under.connect().await;
    client.create("c-0").await;
    for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
        client.report("c-0", adapter, 0).await;
    }
    database.fill(count).await;
}

async fn measure(database: &Database, count: u64, time: Duration, requests: &[&str]) {
    let under = ServerUnderLoad::start(database).await;
    fleet(&under, database, count).await;
    let baseline = baseline::measure(database, time).await;
    println!("{:<10} {count:>8}  {:<13} {baseline:>9.0}", database.name(), "(baseline)");
    for (request, upstream) in UPSTREAM.into_iter().filter(|(request, _)| requests.contains(request)) {
        let (rate, p50, p99) = load(&under, request, count, time).await;
        let (ours, theirs) = (rate / baseline, upstream / UPSTREAM_BASELINE);
        println!(
            "{:<10} {count:>8}  {request:<13} {rate:>9.0} {p50:>9.2} {p99:>9.2} {ours:>11.3} {:>11.1}",
            database.name(),
            ours / theirs
        );
    }
    let mut client = under.connect().await;
    let began = Instant::now();
    let read = client.walk().await;
    println!(
        "{:<10} {count:>8}  sweep of {read} as the Sentinel reads them: {:.2} s",
        database.name(),
        began.elapsed().as_secs_f64()
    );
    let (now, most) = under.memory();
    println!("{:<10} {count:>8}  memory: {now} MiB, at most {most} MiB", database.name());
    let began = Instant::now();
    let mut stream = client.open(Method::GET, &format!("{CLUSTERS}?watch=true"), String::new()).await.into_body();
    let (mut bytes, mut end) = (0, Vec::new());
    while !end.windows(10).any(|window| window == b"\"BOOKMARK\"") {
        let Ok(chunk) = stream.frame().await.unwrap().unwrap().into_data() else { continue };
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
    drop((stream, under));
    let began = Instant::now();
    let _ready = ServerUnderLoad::start(database).await;
    println!("{:<10} {count:>8}  ready {:.0} ms after a start", database.name(), began.elapsed().as_secs_f64() * 1e3);
}

/// Requests per second, and the percentiles of their times in milliseconds.
async fn load(under: &ServerUnderLoad, request: &'static str, count: u64, time: Duration) -> (f64, f64, f64) {
    static TURN: AtomicU64 = AtomicU64::new(1);
    let clients: Vec<_> = (0..CONNECTIONS).map(|_| under.connect()).collect();
    let clients = futures_util::future::join_all(clients).await;
    let began = Instant::now();
    let workers = clients.into_iter().map(|mut client| {
        tokio::spawn(async move {
            let mut times = Vec::new();
            while began.elapsed() < time {
                let turn = TURN.fetch_add(1, Ordering::Relaxed);
                // Spread over all clusters without a random source.
                let number = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) % count;
                let asked = Instant::now();
                match request {
                    "create" => client.create(&format!("new-{turn}")).await,
                    "get" => client.get(&format!("/c-{number}")).await,
                    "list of 100" => client.get("?size=100").await,
                    "search" => {
                        let shard = number % 100;
                        client.get(&format!("?size=100&search=labels.shard%3D%27{shard}%27")).await;
                    }
                    "search of 10" => {
                        let group = number / 10;
                        client.get(&format!("?size=100&search=labels.group%3D%27{group}%27")).await;
                    }
                    _ => client.report(&format!("c-{number}"), "dns", turn).await,
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
