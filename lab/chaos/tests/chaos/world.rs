//! The fleet plane as processes: where they are, how they are set up, and what has been done to them.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::time::sleep;

use super::broker::Broker;
use super::fleet::CREDENTIAL;
use super::part::Part;
use testkit::environment;

/// The adapter's namespace.
pub(crate) const NAMESPACE: &str = "hyperfleet-system";
/// That of the hosted control planes.
pub(crate) const MANAGEMENT: &str = "clusters";
const IMAGE: &str = "chaos/pull-secret:1";
const TOKEN: &str = "chaos-readers-token";

/// Faults of Secret Manager, injected at each start.
const FAULTS_OF_STORE: [&str; 7] = [
    "addVersion:commit-then-timeout*4@6",
    "addVersion:commit-then-cut*2@15",
    "createSecret:commit-then-timeout*3@9",
    "getSecret:unavailable*6@25",
    "accessVersion:resource-exhausted(retry-after=1s)*6@12",
    "updateSecret:unavailable*3@4",
    "deleteSecret:commit-then-timeout*2@3",
];
/// Faults of Kubernetes, injected at each start.
const FAULTS_OF_KUBERNETES: [&str; 7] = [
    "create/jobs:commit-then-timeout*3@12",
    "create/jobs:503*3@20",
    "create/secrets:commit-then-cut*3@10",
    "list/jobs:429(retry-after=1s)*4@60",
    "watch/jobs:cut(after=40)*4",
    "patch/secrets:409*3@5",
    "delete/jobs:commit-then-cut*2@4",
];

pub(crate) struct World {
    /// API, adapters, Sentinels, Secret Manager and Kubernetes.
    pub(crate) parts: Vec<Part>,
    /// Violations that were observed during the run.
    pub(crate) wrong: Vec<String>,
    folder: TempDir,
    /// The emulators' data; on a memory file system where there is one, as a busy disk may take seconds for a write.
    data: TempDir,
    ports: Ports,
    pub(crate) broker: Broker,
    database: Database,
    blows: BTreeMap<String, usize>,
}

#[derive(Clone, Copy)]
struct Ports {
    api: u16,
    store: u16,
    kubernetes: u16,
}

/// A database of its own on the real PostgreSQL.
struct Database {
    server: String,
    name: String,
}

impl World {
    /// `None`, with a line that says why, where a part is missing; in CI that is a failure.
    pub(crate) async fn start() -> Option<Self> {
        let missing = |name: &str| format!("{name} is not set: no chaos; `make real-parts` starts what it takes");
        let [server, broker, program] = ["REAL_POSTGRESQL_URL", "REAL_RABBITMQ_URL", "REAL_RABBITMQ_CTL"]
            .map(|name| environment::variable(name).or_else(|| environment::missing(&missing(name))));
        let (server, broker, program) = (server?, broker?, program?);
        // Kept, with the logs, unless all goes well.
        let folder = tempfile::Builder::new().prefix("chaos-").disable_cleanup(true).tempdir().unwrap();
        let memory = std::path::Path::new("/dev/shm");
        let data = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let ports = Ports::free();
        let broker = Broker::make(&broker, program.into(), ports.api).await;
        let database = Database::make(server, ports).await;
        let (parts, blows, wrong) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut world = Self { parts, wrong, folder, data, ports, broker, database, blows };
        world.write_files();
        world.parts = world.all_parts();
        // Kubernetes first: it writes the kubeconfig that others read.
        let kubeconfig = world.path("kubeconfig");
        for part in world.parts.iter_mut().rev() {
            part.start();
            while !kubeconfig.exists() {
                sleep(Duration::from_millis(50)).await;
            }
        }
        let client = world.kube().await;
        for name in [NAMESPACE, MANAGEMENT] {
            let object: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
            Api::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
        }
        let account = json!({"metadata": {"name": "pullsecret-adapter-job"}});
        let account: ServiceAccount = serde_json::from_value(account).unwrap();
        Api::namespaced(client, NAMESPACE).create(&PostParams::default(), &account).await.unwrap();
        Some(world)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text_path(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn api_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.api)
    }

    pub(crate) fn store_address(&self) -> String {
        format!("127.0.0.1:{}", self.ports.store)
    }

    /// The file with the token that the store requires.
    pub(crate) fn store_token(&self) -> String {
        self.text_path("store-token")
    }

    pub(crate) fn kubernetes_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.kubernetes)
    }

    pub(crate) async fn kube(&self) -> Client {
        let file = Kubeconfig::read_from(self.path("kubeconfig")).unwrap();
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        Client::try_from(config).unwrap()
    }

    fn write_files(&self) {
        let write = |name: &str, text: &str| daemon::file::replace(&self.path(name), text.as_bytes()).unwrap();
        write("token", TOKEN);
        write("key", &"k".repeat(32));
        let adapters = "[validation, dns, placement, pullsecret]";
        let (key, token) = (self.text_path("key"), self.text_path("token"));
        write(
            "api.yaml",
            &format!(
                "entities: [{{kind: Cluster, plural: clusters, required_adapters: {adapters}}}]\n\
                 pull_secret: {{keys: [{{id: one, file: {key}}}], reader_token_file: {token}}}\n"
            ),
        );
        let environment = json!([
            {"name": "SECRET_MANAGER_EMULATOR_HOST", "value": self.store_address()},
            {"name": "SECRET_MANAGER_EMULATOR_TOKEN_FILE", "value": self.store_token()},
            {"name": "MANAGEMENT_KUBECONFIG", "value": self.text_path("kubeconfig")},
            {"name": "GCP_API_TIMEOUT", "value": "5s"},
            {"name": "RUN_TIMEOUT", "value": "60s"},
        ]);
        let config = json!({
            "apiVersion": "hyperfleet.redhat.com/v1alpha1",
            "kind": "AdapterConfig",
            "metadata": {"name": "pullsecret-adapter", "namespace": NAMESPACE},
            "spec": {
                "adapterType": "pullsecret",
                "hyperfleetAPI": {"url": self.api_url(), "tokenPath": token},
                "broker": {"type": "rabbitmq"},
                "kubernetes": {"kubeconfig": self.text_path("kubeconfig"), "lease": "pullsecret-adapter"},
                "jobTemplate": {"image": IMAGE, "env": environment, "keepFinished": "1m"},
                "limits": {"writesPerMinute": 300},
                "retry": {"transientAfter": "3s", "permanentAfter": "10s"},
                "health": {"port": 0},
                "metrics": {"port": 0},
            },
        });
        write("adapter.yaml", &config.to_string());
        // Records the processes and their output: the emulator removes logs with their Pods.
        let program = testkit::program::path("pull-secret");
        let (program, folder) = (program.display(), self.folder.path().display());
        write(
            "job.sh",
            &format!("#!/bin/sh\necho $$ >>'{folder}/jobs.pids'\nexec '{program}' \"$@\" >>'{folder}/jobs.log' 2>&1\n"),
        );
        let runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.path("job.sh"), runnable).unwrap();
    }

    fn all_parts(&self) -> Vec<Part> {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let part = |name, arguments, environment| Part::new(self.folder.path(), name, arguments, environment);
        let free = "--health-port 0 --metrics-port 0";
        let broker =
            |kind: &str| vec![("BROKER_TYPE", kind.to_owned()), ("BROKER_RABBITMQ_URL", self.broker.url().to_owned())];
        let adapter = |name| part(name, words("adapter --config adapter.yaml"), broker("rabbitmq"));
        let sentinel = |name| {
            let url = self.api_url();
            let arguments = format!(
                "sentinel --resource-type clusters --hyperfleet-api-base-url {url} --broker-topic \
                 hyperfleet-system-clusters --min-interval 2s --max-interval 10s --resync 1m --leader-election postgres {free}"
            );
            let lock = ("HYPERFLEET_LEADER_ELECTION_DATABASE_URL", self.database.url());
            part(name, words(&arguments), broker("rabbitmq").into_iter().chain([lock]).collect())
        };
        let faults = |faults: &[&str]| {
            faults.iter().flat_map(|fault| ["--fault".to_owned(), (*fault).to_owned()]).collect::<Vec<_>>()
        };
        let store = words(&format!(
            "emulator secret-manager --listen {} --data-dir {}/store --write-token store-token --writes-per-minute 600",
            self.store_address(),
            self.data.path().display()
        ));
        let mut kubernetes = words(&format!(
            "emulator kubernetes --listen 127.0.0.1:{} --data-dir {}/objects --write-kubeconfig kubeconfig --run-pods",
            self.ports.kubernetes,
            self.data.path().display()
        ));
        kubernetes.push(format!("{IMAGE}={}", self.text_path("job.sh")));
        let pods = ("TMPDIR", self.folder.path().to_str().unwrap().to_owned());
        let path = ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
        let api = format!("api --config api.yaml --server-port {} {free}", self.ports.api);
        vec![
            adapter("adapter-a"),
            adapter("adapter-b"),
            sentinel("sentinel-a"),
            sentinel("sentinel-b"),
            part("api", words(&api), vec![("DATABASE_URL", self.database.url())]),
            part("secret-manager", [store, faults(&FAULTS_OF_STORE)].concat(), vec![]),
            part("kubernetes", [kubernetes, faults(&FAULTS_OF_KUBERNETES)].concat(), vec![pods, path]),
        ]
    }

    pub(crate) fn struck(&mut self, name: &str, signal: Signal) {
        let manner = if signal == Signal::KILL { "killed" } else { "stopped" };
        *self.blows.entry(format!("{name} {manner}")).or_default() += 1;
    }

    /// Summary of the injected faults.
    pub(crate) fn blows(&self) -> String {
        self.blows.iter().map(|(what, count)| format!("{what} {count}x")).collect::<Vec<_>>().join(", ")
    }

    /// The Jobs' processes that run.
    pub(crate) fn job_pids(&self) -> Vec<i32> {
        let known = std::fs::read_to_string(self.path("jobs.pids")).unwrap_or_default();
        let is_job = |pid: &i32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains("run-job\0pull-secret")
        };
        known.lines().rev().take(60).filter_map(|line| line.parse().ok()).filter(is_job).collect()
    }

    /// Ends every part as its operator would, and reads what they have said.
    pub(crate) async fn stop(&mut self) -> Vec<String> {
        let mut wrong = std::mem::take(&mut self.wrong);
        for part in &mut self.parts {
            wrong.extend(part.end(Signal::TERM).await.err());
        }
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                if holds_credential(&text) {
                    wrong.push(format!("a credential shows in {}", path.display()));
                }
                let is_broken = |line: &&str| line.contains("panicked at") || line.contains("has a defect");
                wrong.extend(text.lines().filter(is_broken).map(|line| format!("{}: {line}", path.display())));
            }
        }
        wrong
    }

    /// Location of the logs.
    pub(crate) fn place(&self) -> String {
        format!("logs are in {}", self.folder.path().display())
    }

    /// The parts that have ended without being asked to.
    pub(crate) fn ended(&mut self) -> Vec<String> {
        self.parts.iter_mut().filter_map(Part::has_ended).collect()
    }

    pub(crate) async fn end(mut self) {
        self.folder.disable_cleanup(false);
        for pid in self.job_pids() {
            // One that an emulator has left behind.
            let _ended = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
        }
        self.broker.end().await;
        self.database.end().await;
    }
}

impl Ports {
    /// Ports below those that the system gives away: a part that is down must get its own again.
    fn free() -> Self {
        let first = 15_000 + u16::try_from(std::process::id() % 5_000).unwrap();
        let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
        let mut free = (first..21_000).filter(is_free);
        let mut next = || free.next().unwrap();
        Self { api: next(), store: next(), kubernetes: next() }
    }
}

impl Database {
    async fn make(server: String, ports: Ports) -> Self {
        let name = format!("chaos_{}_{}", std::process::id(), ports.api);
        let database = Self { server, name };
        database.say(&format!("CREATE DATABASE {}", database.name)).await;
        database
    }

    fn url(&self) -> String {
        format!("{}/{}", self.server.rsplit_once('/').unwrap().0, self.name)
    }

    async fn end(&self) {
        self.say(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
    }

    async fn say(&self, statement: &str) {
        let mut connection = PgConnection::connect(&self.server).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
    }
}

/// True if a pull secret shows: its text, its base64, or that of a whole document.
pub(crate) fn holds_credential(text: &str) -> bool {
    let word = CREDENTIAL.split_once(':').unwrap().1;
    // Three bytes are four digits, so that these are the first of every credential.
    let digits = STANDARD.encode(&CREDENTIAL[..15]);
    let document = STANDARD.encode(r#"{"auths":"#);
    [word, &digits, &document].iter().any(|sign| text.contains(*sign))
}

#[test]
fn credentials_are_known_in_each_of_their_forms() {
    let auth = STANDARD.encode(format!("{CREDENTIAL}-cls-1-1234"));
    let document = format!(r#"{{"auths":{{"r":{{"auth":"{auth}"}}}}}}"#);
    for text in ["Hunter2Chaos-cls-1", auth.as_str(), &STANDARD.encode(&document)] {
        assert!(holds_credential(&format!("a line with {text} in it")));
    }
    assert!(!holds_credential(r#"{"message": "stored as version 1"}"#));
}
