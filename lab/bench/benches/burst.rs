//! Thousands of clusters that become ready at once: throughput, latency, memory, calls.
//!
//! API (SQLite), Sentinel, adapter and the Kubernetes emulator are processes, Jobs are processes of the emulator; Secret
//! Manager's emulator is in this one. The broker is a real RabbitMQ (`REAL_RABBITMQ_URL`; `make real-parts` says how to get
//! one). `BURST_CLUSTERS` is how many, `BURST_PROJECTS` in how many projects, `BURST_WRITES` what writes a minute each has (0: no
//! limit), `BURST_RUNS` how many Jobs may run at once in each.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints, and fails where it cannot measure"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::retry::Budget;
use emulators::secret_manager::{SecretManager, Settings as StoreSettings};
use hyperfleet_client::{
    Client, Generation, ListQuery, NewCondition, NewReport, NewResource, Status, Transition, View,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "hyperfleet-system";
const MANAGEMENT: &str = "clusters";
const IMAGE: &str = "burst/pull-secret:1";
const WRITES: [&str; 4] = ["createSecret", "updateSecret", "addVersion", "destroyVersion"];
/// Maximum requests in flight.
const LANES: usize = 16;

#[tokio::main]
async fn main() {
    let Some(broker) = variable("REAL_RABBITMQ_URL") else {
        println!("REAL_RABBITMQ_URL is not set: no RabbitMQ; `make real-parts` starts one");
        return;
    };
    let number = |name: &str, default: usize| variable(name).map_or(default, |text| text.parse().unwrap());
    let load = Load {
        clusters: number("BURST_CLUSTERS", 2_000),
        projects: number("BURST_PROJECTS", 1),
        writes: number("BURST_WRITES", 0),
        runs: number("BURST_RUNS", 16),
    };
    let mut plane = Plane::start(&broker, load).await;
    plane.prepare().await;
    let calls = plane.store.calls().len();
    let began = Instant::now();
    plane.report_all("placement").await;
    let reported = began.elapsed();
    plane.until_available().await;
    let took = began.elapsed();
    plane.show(reported, took, calls).await;
}

fn variable(name: &str) -> Option<String> {
    ProcessEnvironment.text(name).unwrap()
}

#[derive(Clone, Copy)]
struct Load {
    clusters: usize,
    projects: usize,
    writes: usize,
    runs: usize,
}

struct Plane {
    load: Load,
    _folder: TempDir,
    client: Client,
    store: SecretManager,
    parts: Vec<(&'static str, Child)>,
}

impl Plane {
    async fn start(broker: &str, load: Load) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SecretManager::start(StoreSettings::default()).await.unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        daemon::file::replace(&folder.path().join("token"), b"burst-token").unwrap();
        let entities = "entities: [{kind: Cluster, plural: clusters, required_adapters: [validation, dns, placement, pullsecret]}]\n";
        daemon::file::replace(&folder.path().join("api.yaml"), entities.as_bytes()).unwrap();
        let image = format!("{IMAGE}={}", testkit::program::path("pull-secret").display());
        let arguments = ["emulator", "kubernetes", "--write-kubeconfig", "kubeconfig", "--run-pods", &image];
        let (kubernetes, _) = part(folder.path(), &arguments, &[("PATH", variable("PATH").unwrap())]).await;
        make_places(folder.path()).await;
        let free = ["--health-port", "0", "--metrics-port", "0"];
        let token = ("HYPERFLEET_PULL_SECRET_READER_TOKEN_FILE", path("token"));
        let arguments =
            [&["api", "--config", "api.yaml", "--server-port", "0", "--log-level", "warn"], &free[..]].concat();
        let (api, line) = part(folder.path(), &arguments, &[token]).await;
        let url = line.strip_prefix("HyperFleet API on ").unwrap().split(',').next().unwrap().to_owned();
        let topic = format!("burst-{}", std::process::id());
        let broker = |kind: &str| [("BROKER_TYPE", kind.to_owned()), ("BROKER_RABBITMQ_URL", broker.to_owned())];
        let config = adapter((&url, &topic), load, &store.address().to_string(), ["token", "kubeconfig"].map(path));
        daemon::file::replace(&folder.path().join("adapter.yaml"), config.to_string().as_bytes()).unwrap();
        let (adapter, _) = part(folder.path(), &["adapter", "--config", "adapter.yaml"], &broker("rabbitmq")).await;
        let arguments =
            ["sentinel", "--resource-type", "clusters", "--hyperfleet-api-base-url", &url, "--broker-topic", &topic];
        let arguments = [&arguments[..], &free[..]].concat();
        let (sentinel, _) = part(folder.path(), &arguments, &broker("rabbitmq")).await;
        let client = Client::new(hyperfleet_client::Settings::new(url.parse().unwrap())).unwrap();
        let parts = vec![
            ("API (SQLite)", api),
            ("Sentinel", sentinel),
            ("adapter", adapter),
            ("Kubernetes emulator", kubernetes),
        ];
        Self { load, _folder: folder, client, store, parts }
    }

    /// Creates the clusters and lets them wait for their placement alone.
    async fn prepare(&self) {
        let projects = self.load.projects;
        self.each(move |client, number| async move {
            let content = json!({"auths": {"registry.example.com": {"auth": "dXNlcjpwYXNzd29yZA=="}}});
            let project = format!("burst-project-{}", number % projects);
            let spec = json!({"provider": "gcp", "gcp": {"projectId": project}, "pullSecret": {"data": content}});
            let new = NewResource {
                id: Some(id(number)),
                kind: "Cluster".to_owned(),
                name: id(number),
                spec: spec.as_object().cloned().unwrap(),
                labels: BTreeMap::new(),
                references: BTreeMap::new(),
            };
            client.within(&budget()).create("clusters", &new).await.unwrap();
        })
        .await;
        for adapter in ["validation", "dns"] {
            self.report_all(adapter).await;
        }
        // Until the adapter has said of each that it waits for placement and for nothing else.
        self.until("PreconditionsNotMet", |message| !message.contains("dns") && !message.contains("validation")).await;
    }

    async fn report_all(&self, adapter: &'static str) {
        self.each(move |client, number| async move {
            let condition = |kind: &str| NewCondition {
                kind: kind.to_owned(),
                status: Status::True,
                reason: None,
                message: None,
                last_transition_time: None,
            };
            let data = if adapter == "placement" { json!({"namespace": MANAGEMENT}) } else { json!({}) };
            let report = NewReport {
                adapter: adapter.to_owned(),
                observed_generation: Generation::FIRST,
                conditions: ["Available", "Applied", "Health"].map(condition).to_vec(),
                data: data.as_object().cloned().unwrap(),
                observed_time: None,
                metadata: None,
            };
            drop(client.within(&budget()).report("clusters", &id(number), &report).await.unwrap());
        })
        .await;
    }

    /// Does something for every cluster.
    async fn each<F: Future<Output = ()> + Send + 'static>(&self, work: impl Fn(Client, usize) -> F) {
        let lanes = Arc::new(Semaphore::new(LANES));
        let mut all = JoinSet::new();
        for number in 0..self.load.clusters {
            let permit = Arc::clone(&lanes).acquire_owned().await.unwrap();
            let work = work(self.client.clone(), number);
            all.spawn(async move {
                work.await;
                drop(permit);
            });
        }
        all.join_all().await;
    }

    async fn until_available(&self) {
        self.until("", |_| true).await;
    }

    /// Waits until the adapter has said this of each cluster; of an empty reason, that it is available.
    async fn until(&self, reason: &str, fits: impl Fn(&str) -> bool) {
        let is_so = |condition: &Value| {
            let text = |member: &str| condition[member].as_str().unwrap_or_default();
            let is_reported = if reason.is_empty() { text("status") == "True" } else { text("reason") == reason };
            text("type") == "Available" && is_reported && fits(text("message"))
        };
        loop {
            let budget = budget();
            let mut pages = self.client.within(&budget).list_all("clusters", ListQuery::default());
            let mut count = 0;
            while let Ok(Some(page)) = pages.next().await {
                for resource in page {
                    let view = View::of(&resource);
                    let reported =
                        view.adapter("pullsecret").and_then(|reported| reported["conditions"].as_array().cloned());
                    count += usize::from(reported.is_some_and(|conditions| conditions.iter().any(is_so)));
                }
            }
            if count == self.load.clusters {
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    async fn show(&mut self, reported: Duration, took: Duration, before: usize) {
        let Load { clusters, projects, writes, runs } = self.load;
        let mut waits = Vec::new();
        for number in 0..clusters {
            let history = self.client.within(&budget()).history("clusters", &id(number)).await.unwrap();
            waits.push((became_available(&history, "pullsecret") - became_available(&history, "placement")).max(0.0));
        }
        waits.sort_by(f64::total_cmp);
        let at = |percent: usize| waits[(clusters * percent / 100).min(clusters - 1)];
        let calls: Vec<_> = self.store.calls().into_iter().skip(before).collect();
        let written = calls.iter().filter(|call| WRITES.contains(&call.method.name())).count();
        let many = f64::from(u32::try_from(clusters).unwrap());
        let each = |count: usize| f64::from(u32::try_from(count).unwrap()) / many;
        println!(
            "| {clusters} clusters, {projects} projects, {writes} writes/min each (0: no limit), {runs} Jobs at once each | |"
        );
        println!("|---|---|");
        println!("| all ready within | {:.1} s |", reported.as_secs_f64());
        println!("| all available after | {:.1} s |", took.as_secs_f64());
        println!("| throughput | {:.1} clusters/s |", many / took.as_secs_f64());
        println!("| ready to Available, p50 / p95 / most | {:.1} / {:.1} / {:.1} s |", at(50), at(95), at(100));
        println!("| Secret Manager calls (writes) a cluster | {:.2} ({:.2}) |", each(calls.len()), each(written));
        for (name, child) in &self.parts {
            println!("| peak memory, CPU: {name} | {} |", used(child.id().unwrap()));
        }
        println!("| peak memory, CPU: this process with Secret Manager | {} |", used(std::process::id()));
        drop(std::mem::take(&mut self.parts));
    }
}

fn id(number: usize) -> String {
    format!("cls-{number:05}")
}

fn budget() -> Budget {
    Budget::new(Duration::from_mins(1), CancellationToken::new())
}

/// Time of the first such report, in seconds.
fn became_available(history: &[Transition], adapter: &str) -> f64 {
    let is_it =
        |change: &&Transition| change.adapter == adapter && change.kind == "Available" && change.to == Status::True;
    let time = history.iter().rev().find(is_it).map(|change| change.time).unwrap();
    time.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64()
}

/// The most memory that a process has held, and the time it has worked.
fn used(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")).unwrap_or("0");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: f64 = [11, 12].iter().map(|place| fields[*place].parse::<f64>().unwrap()).sum();
    // Linux counts in hundredths of a second.
    format!("{:.0} MiB, {:.1} s", peak.parse::<f64>().unwrap() / 1024.0, ticks / 100.0)
}

fn adapter((url, topic): (&str, &str), load: Load, store: &str, [token, kubeconfig]: [String; 2]) -> Value {
    json!({
        "apiVersion": "hyperfleet.redhat.com/v1alpha1",
        "kind": "AdapterConfig",
        "metadata": {"name": "pullsecret-adapter", "namespace": NAMESPACE},
        "spec": {
            "adapterType": "pullsecret",
            "hyperfleetAPI": {"url": url, "tokenPath": token},
            "broker": {"type": "rabbitmq", "topic": topic},
            "kubernetes": {"kubeconfig": kubeconfig},
            "jobTemplate": {"image": IMAGE, "env": [
                {"name": "SECRET_MANAGER_EMULATOR_HOST", "value": store},
                {"name": "MANAGEMENT_KUBECONFIG", "value": kubeconfig},
            ]},
            "limits": {"writesPerMinute": load.writes, "runsPerProject": load.runs},
            "log": {"level": "warn"},
            "health": {"port": 0},
            "metrics": {"port": 0},
        },
    })
}

/// Starts a part; returns it with the first line that it says.
async fn part(folder: &Path, arguments: &[&str], environment: &[(&str, String)]) -> (Child, String) {
    let program = if arguments[0] == "emulator" { "pull-secret-local" } else { "pull-secret" };
    let mut command = Command::new(testkit::program::path(program));
    command.args(arguments).env_clear().envs(environment.iter().cloned()).env("TMPDIR", folder).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap_or_default();
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, line)
}

async fn make_places(folder: &Path) {
    let file = Kubeconfig::read_from(folder.join("kubeconfig")).unwrap();
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    let client = kube::Client::try_from(config).unwrap();
    for name in [NAMESPACE, MANAGEMENT] {
        let object: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
    }
    let account = json!({"metadata": {"name": "pullsecret-adapter-job"}});
    let account: ServiceAccount = serde_json::from_value(account).unwrap();
    Api::namespaced(client, NAMESPACE).create(&PostParams::default(), &account).await.unwrap();
}
