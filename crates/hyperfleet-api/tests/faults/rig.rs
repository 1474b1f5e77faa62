//! A running server, its database, and a client.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use hyperfleet_api::server::{Build, Server};
use hyperfleet_api::settings::Settings;
use hyperfleet_api::store::StoreError;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use testkit::api::http_client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const BASE: &str = "/api/hyperfleet/v1";

/// Timeout of every wait; only a failing test reaches it.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// A database of one test.
pub(crate) enum TestDatabase {
    Sqlite(TempDir),
    Postgres { admin: String, url: String },
}

impl TestDatabase {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    /// Returns `None` without a PostgreSQL to test with, and prints so.
    pub(crate) async fn postgres() -> Option<Self> {
        Some(Self::postgres_at(&real_postgresql()?).await)
    }

    /// Creates a database on the server at that URL.
    pub(crate) async fn postgres_at(admin: &str) -> Self {
        let name = format!("faults_{}", uuid::Uuid::now_v7().simple());
        let mut connection = PgConnection::connect(admin).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        let url = format!("{}/{name}", admin.rsplit_once('/').unwrap().0);
        Self::Postgres { admin: admin.to_owned(), url }
    }

    /// Returns one database of each available kind.
    pub(crate) async fn all() -> Vec<Self> {
        [Some(Self::sqlite()), Self::postgres().await].into_iter().flatten().collect()
    }

    pub(crate) fn variables(&self) -> BTreeMap<&'static str, String> {
        match self {
            Self::Sqlite(folder) => variables(&format!("{}/api.db", folder.path().display()), None),
            Self::Postgres { url, .. } => variables("unused.db", Some(url)),
        }
    }

    pub(crate) async fn start(&self) -> Rig {
        start(&self.variables()).await
    }

    /// Removes the database from its server. A failing test keeps its database for inspection.
    pub(crate) async fn end(self) {
        if let Self::Postgres { admin, url } = self {
            let name = url.rsplit_once('/').unwrap().1;
            let mut connection = PgConnection::connect(&admin).await.unwrap();
            let drop = AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"));
            sqlx::raw_sql(drop).execute(&mut connection).await.unwrap();
        }
    }
}

/// Returns the variables of a server on that database.
pub(crate) fn variables(path: &str, url: Option<&str>) -> BTreeMap<&'static str, String> {
    let mut variables = BTreeMap::from([
        ("HYPERFLEET_DATABASE_PATH", path.to_owned()),
        ("HYPERFLEET_SERVER_HOST", "127.0.0.1".to_owned()),
        ("HYPERFLEET_HEALTH_HOST", "127.0.0.1".to_owned()),
        ("HYPERFLEET_METRICS_HOST", "127.0.0.1".to_owned()),
        ("HYPERFLEET_SERVER_PORT", "0".to_owned()),
        ("HYPERFLEET_HEALTH_PORT", "0".to_owned()),
        ("HYPERFLEET_METRICS_PORT", "0".to_owned()),
        // A disk of a busy machine may keep the one writer of SQLite for seconds.
        ("HYPERFLEET_DATABASE_POOL_ACQUIRE_TIMEOUT", "25s".to_owned()),
    ]);
    variables.extend(url.map(|url| ("DATABASE_URL", url.to_owned())));
    variables
}

/// Returns the URL of the PostgreSQL to test with. Without one it prints so; in CI it panics.
pub(crate) fn real_postgresql() -> Option<String> {
    let url = variable("REAL_POSTGRESQL_URL");
    if url.is_none() {
        let missing = "REAL_POSTGRESQL_URL is not set: no PostgreSQL; `make real-parts` starts one";
        assert_ne!(variable("CI").as_deref(), Some("true"), "{missing}");
        eprintln!("skipped: {missing}");
    }
    url
}

#[expect(clippy::disallowed_methods, reason = "the environment names the real parts to test with")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A server in this process.
pub(crate) struct Rig {
    pub(crate) client: Client,
    pub(crate) health: String,
    pub(crate) stop: CancellationToken,
    pub(crate) running: JoinHandle<Result<(), StoreError>>,
}

pub(crate) async fn start(variables: &BTreeMap<&'static str, String>) -> Rig {
    let rig = start_at_once(variables).await;
    rig.ready().await;
    rig
}

/// Starts a server without waiting until it is ready.
pub(crate) async fn start_at_once(variables: &BTreeMap<&'static str, String>) -> Rig {
    let environment: BTreeMap<&str, &str> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let settings = Settings::load(BTreeMap::new(), &environment).unwrap();
    let server = Server::prepare(settings, &environment, Build { version: "0", time: "" }).await.unwrap();
    let client = Client::new(&format!("http://{}", server.address()));
    let health = format!("http://{}", server.health_address());
    let stop = CancellationToken::new();
    let running = tokio::spawn(server.run(stop.clone()));
    Rig { client, health, stop, running }
}

impl Rig {
    pub(crate) async fn readiness(&self) -> u16 {
        readiness(&self.client, &self.health).await
    }

    pub(crate) async fn ready(&self) {
        until("readiness", async || self.readiness().await == 200).await;
    }

    /// Waits until the server gives up; until then it must refuse every request.
    pub(crate) async fn refuses(self) -> StoreError {
        let client = self.client;
        let ask = async {
            for method in [Method::GET, Method::POST].into_iter().cycle() {
                if let Some(answer) = client.try_call(method, "/clusters", Some(&cluster("never")), None).await {
                    assert_eq!(answer.status, 503, "{answer:?}");
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            ended = tokio::time::timeout(TIMEOUT, self.running) => ended.expect("it must give up").unwrap().unwrap_err(),
            () = ask => unreachable!("it asks for ever"),
        }
    }

    /// Stops the server, which must succeed.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        tokio::time::timeout(TIMEOUT, self.running).await.expect("the server must end").unwrap().unwrap();
    }
}

pub(crate) async fn readiness(client: &Client, health: &str) -> u16 {
    client.http.get(format!("{health}/readyz")).send().await.map_or(0, |response| response.status().as_u16())
}

/// Polls until a state holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(TIMEOUT, waiting).await.is_ok(), "waited in vain for {what}");
}

/// A client of one server.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) http: reqwest::Client,
    pub(crate) base: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// Returns `None` if the response has broken off.
    async fn of(response: reqwest::Response) -> Option<Self> {
        let status = response.status().as_u16();
        let text = response.text().await.ok()?;
        Some(Self { status, body: serde_json::from_str(&text).unwrap_or(Value::Null) })
    }
}

impl Client {
    pub(crate) fn new(base: &str) -> Self {
        Self { http: http_client(), base: base.to_owned() }
    }

    /// Returns `None` if there was no answer.
    pub(crate) async fn try_call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        if_match: Option<i64>,
    ) -> Option<Answer> {
        let mut request = self.http.request(method, format!("{}{BASE}{path}", self.base));
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        if let Some(generation) = if_match {
            request = request.header("if-match", format!("\"{generation}\""));
        }
        Answer::of(request.send().await.ok()?).await
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        self.try_call(method, path, body, None).await.expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, None).await
    }

    /// Repeats a read while the server has no connection to its database in time, and returns the first other answer.
    pub(crate) async fn get_in_time(&self, path: &str) -> Answer {
        Answer::of(self.response_in_time(path).await).await.expect("an answer")
    }

    async fn response_in_time(&self, path: &str) -> reqwest::Response {
        let url = format!("{}{BASE}{path}", self.base);
        let asking = async {
            loop {
                let response = self.http.get(&url).send().await.unwrap();
                if !is_busy(response.status().as_u16()) {
                    return response;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, asking).await.expect("an answer in time")
    }

    /// Creates a cluster, and tries again while the server has no connection to its database in time. A failed attempt may
    /// have created it.
    pub(crate) async fn create_in_time(&self, name: &str) {
        let mut may_be_there = false;
        until(name, async || {
            let answer = self.post("/clusters", &cluster(name)).await;
            let is_there = answer.status == 201 || (may_be_there && answer.status == 409);
            assert!(is_there || is_busy(answer.status), "{answer:?}");
            may_be_there = true;
            is_there
        })
        .await;
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::PUT, path, Some(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::PATCH, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, None).await
    }

    /// Returns every item of a list, over all its pages.
    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        let mut items = Vec::new();
        for page in 1.. {
            let join = if path.contains('?') { '&' } else { '?' };
            let answer = self.get(&format!("{path}{join}size=100&page={page}&order=id")).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let more = answer.body["items"].as_array().unwrap();
            items.extend(more.iter().cloned());
            if more.len() < 100 {
                assert_eq!(answer.body["total"], items.len(), "{path}");
                break;
            }
        }
        items
    }

    /// Follows the change stream, once the server has a connection to its database for it.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let response = self.response_in_time(path).await;
        assert_eq!(response.status(), 200);
        Watch { response, rest: Vec::new() }
    }

    /// Opens a stream of the changes after the one with that number.
    pub(crate) async fn watch_from(&self, path: &str, number: u64) -> Watch {
        // The bookmark of a stream that selects nothing has the epoch.
        let mut nothing = self.watch(&format!("{path}?watch=true&search=id='none'")).await;
        let bookmark = nothing.next().await.unwrap();
        let (epoch, _) = bookmark["resource_version"].as_str().unwrap().split_once('-').unwrap();
        self.watch(&format!("{path}?watch=true&resource_version={epoch}-{number}")).await
    }
}

/// An open change stream.
pub(crate) struct Watch {
    response: reqwest::Response,
    rest: Vec<u8>,
}

impl Watch {
    /// Returns the next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            match tokio::time::timeout(TIMEOUT, self.response.chunk()).await.expect("an event or the end of the stream")
            {
                Ok(Some(chunk)) => self.rest.extend_from_slice(&chunk),
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

/// True for the answers of a server that has no connection to its database, or none in time.
fn is_busy(status: u16) -> bool {
    [503, 504].contains(&status)
}

pub(crate) fn cluster(name: &str) -> Value {
    json!({ "kind": "Cluster", "name": name, "spec": { "n": 0 } })
}

/// Returns a report with the same status in all conditions.
pub(crate) fn report(adapter: &str, generation: i64, status: &str) -> Value {
    let conditions =
        ["Available", "Applied", "Health", "Finalized"].map(|kind| json!({"type": kind, "status": status}));
    json!({ "adapter": adapter, "observed_generation": generation, "conditions": conditions })
}
