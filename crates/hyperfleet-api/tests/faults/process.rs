//! The server as a process: this test binary, started again. Kills, signals, full disks.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use daemon::environment::ProcessEnvironment;
use daemon::log;
use hyperfleet_api::server::{Build, Server};
use hyperfleet_api::settings::Settings;
use serde_json::json;
use sqlx::{Connection as _, SqliteConnection};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::outages::assert_hides_driver;
use crate::rig::{Client, TIMEOUT, TestDatabase, cluster, readiness, until, variable, variables};

const MARK: &str = "serving at ";

/// A server with this variable writes its SQL statements and its own log to its standard error.
pub(crate) const TELL_STATEMENTS: &str = "FAULTS_TELL_STATEMENTS";

/// The server process that the tests of this module start; not a test by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve() {
    if variable("FAULTS_SERVE").is_none() {
        return;
    }
    if variable(TELL_STATEMENTS).is_some() {
        let (format, level) = (log::Format::Json, log::level("debug").unwrap());
        let settings = log::Settings { format, level, crates: &["sqlx", "hyperfleet_api"] };
        tracing::subscriber::set_global_default(log::subscriber(settings, std::io::stderr())).unwrap();
    }
    let stop = daemon::shutdown::on_signal().unwrap();
    let settings = Settings::load(BTreeMap::new(), &ProcessEnvironment).unwrap();
    let server = Server::prepare(settings, &ProcessEnvironment, Build { version: "0", time: "" }).await.unwrap();
    eprintln!("{MARK}{} {}", server.address(), server.health_address());
    Box::pin(server.run(stop)).await.unwrap();
}

pub(crate) struct Process {
    child: Child,
    pub(crate) client: Client,
    pub(crate) health: String,
    /// The standard error of the process since it serves.
    pub(crate) written: Arc<Mutex<Vec<String>>>,
}

impl Process {
    pub(crate) async fn start(variables: &BTreeMap<&'static str, String>) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::serve", "--nocapture", "--quiet"])
            .envs(variables)
            .env("FAULTS_SERVE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let addresses = loop {
            let line = lines.next_line().await.unwrap().expect("a server that says where it is");
            if let Some((_, addresses)) = line.split_once(MARK) {
                break addresses.to_owned();
            }
        };
        let written = Arc::new(Mutex::new(Vec::new()));
        let writing = Arc::clone(&written);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                writing.lock().unwrap().push(line);
            }
        });
        let (api, health) = addresses.split_once(' ').unwrap();
        Self { child, client: Client::new(&format!("http://{api}")), health: format!("http://{health}"), written }
    }

    pub(crate) async fn ready(&self) {
        until("readiness", async || self.readiness().await == 200).await;
    }

    async fn readiness(&self) -> u16 {
        readiness(&self.client, &self.health).await
    }

    async fn signal(&self, name: &str) {
        let pid = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().await.unwrap().success());
    }

    async fn exit_code(&mut self) -> Option<i32> {
        timeout(TIMEOUT, self.child.wait()).await.expect("the process must end").unwrap().code()
    }

    /// Returns the resident memory in KiB.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

async fn integrity(path: &str) -> String {
    let mut connection = SqliteConnection::connect(&format!("sqlite://{path}")).await.unwrap();
    let (found,): (String,) = sqlx::query_as("PRAGMA integrity_check").fetch_one(&mut connection).await.unwrap();
    found
}

/// Acknowledged changes are stored after a kill, with the acknowledged generation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_changes_survive_kills() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/api.db", folder.path().display());
    let mut acknowledged = BTreeMap::new();
    for round in 0..6 {
        let mut process = Process::start(&variables(&path, None)).await;
        process.ready().await;
        for (id, generation) in &acknowledged {
            let read = process.client.get(&format!("/clusters/{id}")).await;
            assert_eq!(read.status, 200, "{id} was acknowledged and is lost");
            assert!(read.body["generation"].as_i64() >= Some(*generation), "{read:?} was at {generation}");
        }
        let mut writers = JoinSet::new();
        for writer in 0..6 {
            let client = process.client.clone();
            writers.spawn(async move {
                let mut acknowledged = Vec::new();
                for step in 0.. {
                    let body = cluster(&format!("c-{round}-{writer}-{step}"));
                    let Some(created) = client.try_call(http::Method::POST, "/clusters", Some(&body), None).await
                    else {
                        break;
                    };
                    assert_eq!(created.status, 201, "{created:?}");
                    let id = created.body["id"].as_str().unwrap().to_owned();
                    acknowledged.push((id.clone(), 1));
                    let (path, body) = (format!("/clusters/{id}"), json!({ "spec": { "n": 1 } }));
                    let Some(patched) = client.try_call(http::Method::PATCH, &path, Some(&body), None).await else {
                        break;
                    };
                    assert_eq!(patched.status, 200, "{patched:?}");
                    acknowledged.push((id, 2));
                }
                acknowledged
            });
        }
        until("load", async || process.client.get("/clusters?size=1").await.body["total"].as_i64() > Some(round * 60))
            .await;
        process.child.start_kill().unwrap();
        process.exit_code().await;
        while let Some(more) = writers.join_next().await {
            acknowledged.extend(more.unwrap());
        }
        assert_eq!(integrity(&path).await, "ok");
    }
    assert!(acknowledged.len() > 100, "{}", acknowledged.len());
}

/// Open requests are answered after a SIGTERM, streams end, and the exit code is 0.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_server_answers_open_requests() {
    for database in TestDatabase::all().await {
        let mut process = Process::start(&database.variables()).await;
        process.ready().await;
        let mut watch = process.client.watch("/clusters?watch=true").await;
        assert_eq!(watch.next().await.unwrap()["type"], "BOOKMARK");
        let stopping = Arc::new(AtomicBool::new(false));
        let mut writers: JoinSet<String> = JoinSet::new();
        for writer in 0..8 {
            let (client, stopping) = (process.client.clone(), Arc::clone(&stopping));
            writers.spawn(async move {
                for step in 0.. {
                    let name = format!("c-{writer}-{step}");
                    let body = cluster(&name);
                    match client
                        .http
                        .post(format!("{}/api/hyperfleet/v1/clusters", client.base))
                        .body(body.to_string())
                        .send()
                        .await
                    {
                        Ok(response) => assert_eq!(response.status(), 201),
                        // Requests after the signal may be refused: an idle connection may close while a request is on its
                        // way. An answer that has begun is never cut off.
                        Err(error) => {
                            let is_late = stopping.load(Ordering::SeqCst);
                            assert!(is_late && (error.is_connect() || error.is_request()), "cut off: {error:?}");
                            return name;
                        }
                    }
                }
                unreachable!("it writes until it is refused")
            });
        }
        let mut added = 0;
        while added < 30 {
            added += usize::from(watch.next().await.unwrap()["type"] == "ADDED");
        }
        stopping.store(true, Ordering::SeqCst);
        process.signal("TERM").await;
        while watch.next().await.is_some() {}
        let mut unanswered = Vec::new();
        while let Some(done) = writers.join_next().await {
            unanswered.push(done.unwrap());
        }
        assert_eq!(process.exit_code().await, Some(0));
        // Every change was answered.
        let process = Process::start(&database.variables()).await;
        process.ready().await;
        let there = process.client.list("/clusters").await;
        let names: Vec<&str> = there.iter().map(|cluster| cluster["name"].as_str().unwrap()).collect();
        assert!(names.len() >= 30 && unanswered.iter().all(|name| !names.contains(&name.as_str())), "{unanswered:?}");
        drop(process);
        database.end().await;
    }
}

/// A reader that reads nothing does not keep a server from stopping, and a second signal stops it at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_at_once() {
    let database = TestDatabase::sqlite();
    let mut variables = database.variables();
    variables.insert("HYPERFLEET_HEALTH_SHUTDOWN_TIMEOUT", "120s".to_owned());
    let mut process = Process::start(&variables).await;
    process.ready().await;
    let stalled = stalled_reader(&process, 20, 600_000).await;
    process.signal("TERM").await;
    until("the listener's end", async || tokio::net::TcpStream::connect(address(&process.client)).await.is_err()).await;
    process.signal("TERM").await;
    assert_eq!(process.exit_code().await, Some(143));
    drop(stalled);
}

/// After the drain time-out, readers that do not read are cut off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_reader_does_not_keep_the_server_up() {
    let database = TestDatabase::sqlite();
    let mut variables = database.variables();
    variables.insert("HYPERFLEET_HEALTH_SHUTDOWN_TIMEOUT", "1s".to_owned());
    let mut process = Process::start(&variables).await;
    process.ready().await;
    let stalled = stalled_reader(&process, 20, 600_000).await;
    process.signal("TERM").await;
    assert_eq!(process.exit_code().await, Some(0));
    drop(stalled);
}

fn address(client: &Client) -> String {
    client.base.strip_prefix("http://").unwrap().to_owned()
}

/// Follows the stream without reading, while more changes than fit into the sockets.
async fn stalled_reader(process: &Process, changes: usize, size: usize) -> tokio::net::TcpStream {
    use tokio::io::AsyncWriteExt as _;
    let body = json!({ "kind": "Cluster", "name": "large", "spec": { "text": "x".repeat(size) } });
    let created = process.client.post("/clusters", &body).await;
    let path = format!("/clusters/{}", created.body["id"].as_str().unwrap());
    let mut stream = tokio::net::TcpStream::connect(address(&process.client)).await.unwrap();
    let request = "GET /api/hyperfleet/v1/clusters?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    for step in 0..changes {
        let patch = json!({ "labels": { "step": step.to_string() } });
        assert_eq!(process.client.patch(&path, &patch).await.status, 200);
    }
    stream
}

/// A reader that does not read costs its sockets and one batch, not all changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_readers_do_not_fill_the_memory() {
    let database = TestDatabase::sqlite();
    let process = Process::start(&database.variables()).await;
    process.ready().await;
    let first = stalled_reader(&process, 100, 30_000).await;
    let before = process.resident();
    let body = json!({ "spec": { "text": "y".repeat(30_000) } });
    let id = process.client.get("/clusters").await.body["items"][0]["id"].as_str().unwrap().to_owned();
    for step in 0..3000 {
        let mut body = body.clone();
        body["spec"]["n"] = json!(step);
        assert_eq!(process.client.patch(&format!("/clusters/{id}"), &body).await.status, 200);
    }
    // 3,000 events of 30 kB are 90 MB.
    let grown = process.resident().saturating_sub(before);
    assert!(grown < 45 * 1024, "grew by {grown} KiB");
    drop(first);
}

/// A full disk is reported as unavailable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_unavailable_and_heals() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::small(folder.path()).await else {
        eprintln!("skipped: no small file system can be mounted here");
        return;
    };
    let path = format!("{}/api.db", folder.path().display());
    let process = Process::start(&variables(&path, None)).await;
    process.ready().await;
    let mut acknowledged = 0;
    let refused = loop {
        let body = json!({
            "kind": "Cluster", "name": format!("c-{acknowledged}"), "spec": { "text": "x".repeat(20_000) }
        });
        let answer = process.client.post("/clusters", &body).await;
        if answer.status != 201 {
            break answer;
        }
        acknowledged += 1;
    };
    assert_hides_driver(&refused);
    until("readiness to fail", async || process.readiness().await == 503).await;
    assert_eq!(
        process.client.list("/clusters").await.len(),
        acknowledged,
        "exactly the acknowledged clusters are stored"
    );
    assert!(
        Command::new("mount").args(["-o", "remount,size=64m"]).arg(folder.path()).status().await.unwrap().success()
    );
    until("readiness", async || process.readiness().await == 200).await;
    until("recovery", async || process.client.post("/clusters", &cluster("after")).await.status == 201).await;
    assert_eq!(process.client.list("/clusters").await.len(), acknowledged + 1);
    drop(process);
    // The process may need a moment to exit.
    until("the file's end of use", async || integrity(&path).await == "ok").await;
    mount.end().await;
}

struct Mount(std::path::PathBuf);

impl Mount {
    async fn small(folder: &Path) -> Option<Self> {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(folder).stderr(Stdio::null());
        command.status().await.ok()?.success().then(|| Self(folder.to_owned()))
    }

    async fn end(self) {
        Command::new("umount").arg("-l").arg(&self.0).status().await.unwrap();
    }
}
