//! Thousands of clusters that become ready at once: throughput, latency, memory, calls.
//!
//! First the embedded plane (`pull-secret-local up`: API on SQLite, broker, Sentinel, adapter and emulators in one process, Jobs
//! as its child processes), with 100 clusters and with `BURST_CLUSTERS` (2,000), all created at once. Then, if there is a real
//! RabbitMQ (`REAL_RABBITMQ_URL`; `make real-parts` says how to get one), API, Sentinel, adapter and Kubernetes emulator as
//! processes with Secret Manager's emulator in this one: `BURST_CLUSTERS` clusters get their placement at once, in
//! `BURST_PROJECTS` projects with `BURST_WRITES` writes a minute each (0: no limit) and `BURST_RUNS` Jobs at once in each.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints, and fails where it cannot measure"
)]

mod places;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::retry::Budget;
use emulators::secret_manager::SecretManager;
use hyperfleet_client::{
    Client, Generation, ListQuery, NewCondition, NewReport, NewResource, Status, Transition, View,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Child;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use places::MANAGEMENT;

const WRITES: [&str; 4] = ["createSecret", "updateSecret", "addVersion", "destroyVersion"];
/// Maximum requests in flight.
const LANES: usize = 16;

#[tokio::main]
async fn main() {
    let number = |name: &str, default: usize| variable(name).map_or(default, |text| text.parse().unwrap());
    let load = Load {
        clusters: number("BURST_CLUSTERS", 2_000),
        projects: number("BURST_PROJECTS", 1),
        writes: number("BURST_WRITES", 0),
        runs: number("BURST_RUNS", 16),
    };
    for clusters in BTreeSet::from([load.clusters.min(100), load.clusters]) {
        let mut plane = Plane::embedded(Load { clusters, ..load }).await;
        let began = Timestamp::now();
        plane.create_all().await;
        plane.report_all("placement").await;
        plane.until_available().await;
        plane.show("embedded plane", began, 0).await;
    }
    let Some(broker) = variable("REAL_RABBITMQ_URL") else {
        println!("REAL_RABBITMQ_URL is not set: no RabbitMQ; `make real-parts` starts one");
        return;
    };
    let mut plane = Plane::of_processes(&broker, load).await;
    plane.create_all().await;
    plane.until_only_placement_is_missing().await;
    let calls = plane.store_calls();
    let began = Timestamp::now();
    plane.report_all("placement").await;
    plane.until_available().await;
    plane.show("processes and RabbitMQ", began, calls).await;
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
    /// The emulator of Secret Manager, if it is in this process.
    store: Option<SecretManager>,
    parts: Vec<(&'static str, Child)>,
}

impl Plane {
    /// Creates the clusters, with the reports of all other adapters but placement.
    async fn create_all(&self) {
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
    }

    /// Waits until the adapter has said of each cluster that it waits for placement and for nothing else.
    async fn until_only_placement_is_missing(&self) {
        self.until_not_met(|message| !message.contains("dns") && !message.contains("validation")).await;
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

    /// Waits until each cluster is available. It only counts, so that the wait costs the same whatever the number of clusters.
    async fn until_available(&self) {
        let search = Some("status.conditions.PullsecretSuccessful = 'True'".to_owned());
        let query = ListQuery { search, size: Some(1), ..ListQuery::default() };
        let clusters = u64::try_from(self.load.clusters).unwrap();
        while self.client.within(&budget()).list("clusters", &query).await.unwrap().total != Some(clusters) {
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Waits until the adapter has said of each cluster that preconditions are not met, in such a message.
    async fn until_not_met(&self, fits: impl Fn(&str) -> bool) {
        let is_so = |condition: &Value| {
            let text = |member: &str| condition[member].as_str().unwrap_or_default();
            text("reason") == "PreconditionsNotMet" && fits(text("message"))
        };
        loop {
            let budget = budget();
            let mut pages = self.client.within(&budget).list_all("clusters", ListQuery::default());
            let mut count = 0;
            while let Ok(Some(page)) = pages.next().await {
                for resource in page {
                    let view = View::of(&resource);
                    let available = view.report("pullsecret").and_then(|report| report.condition("Available"));
                    count += usize::from(available.is_some_and(is_so));
                }
            }
            if count == self.load.clusters {
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Number of calls of Secret Manager so far.
    fn store_calls(&self) -> usize {
        self.store.as_ref().map_or(0, |store| store.calls().len())
    }

    async fn show(&mut self, plane: &str, began: Timestamp, calls: usize) {
        let Load { clusters, projects, writes, runs } = self.load;
        let (mut waits, mut last) = (Vec::new(), began);
        for number in 0..clusters {
            let history = self.client.within(&budget()).history("clusters", &id(number)).await.unwrap();
            let available = became_available(&history, "pullsecret");
            last = last.max(available);
            let waited = available.duration_since(became_available(&history, "placement"));
            waits.push(waited.as_secs_f64().max(0.0));
        }
        waits.sort_by(f64::total_cmp);
        let at = |percent: usize| waits[(clusters * percent / 100).min(clusters - 1)];
        let took = last.duration_since(began).as_secs_f64();
        let many = f64::from(u32::try_from(clusters).unwrap());
        let each = |count: usize| f64::from(u32::try_from(count).unwrap()) / many;
        println!(
            "| {plane}: {clusters} clusters, {projects} projects, {writes} writes/min each (0: no limit), {runs} Jobs at once each | |"
        );
        println!("|---|---|");
        println!("| all available after | {took:.1} s |");
        println!("| throughput | {:.1} clusters/s |", many / took);
        println!("| ready to Available, p50 / p95 / most | {:.1} / {:.1} / {:.1} s |", at(50), at(95), at(100));
        if let Some(store) = &self.store {
            let calls: Vec<_> = store.calls().into_iter().skip(calls).collect();
            let written = calls.iter().filter(|call| WRITES.contains(&call.method.name())).count();
            println!("| Secret Manager calls (writes) a cluster | {:.2} ({:.2}) |", each(calls.len()), each(written));
            println!("| peak memory, CPU: this process with Secret Manager | {} |", used(std::process::id(), many));
        }
        for (name, child) in &self.parts {
            println!("| peak memory, CPU: {name} | {} |", used(child.id().unwrap(), many));
        }
        drop(std::mem::take(&mut self.parts));
    }
}

fn id(number: usize) -> String {
    format!("cls-{number:05}")
}

fn budget() -> Budget {
    Budget::new(Duration::from_mins(1), CancellationToken::new())
}

/// Time of the first such report.
fn became_available(history: &[Transition], adapter: &str) -> Timestamp {
    let is_it =
        |change: &&Transition| change.adapter == adapter && change.kind == "Available" && change.to == Status::True;
    history.iter().rev().find(is_it).map(|change| change.time).unwrap()
}

/// The most memory that a process has held, and the time for each cluster that it has worked and that its ended children have.
fn used(pid: u32, clusters: f64) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")).unwrap_or("0");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // Linux counts in hundredths of a second.
    let milliseconds =
        |places: [usize; 2]| places.iter().map(|place| fields[*place].parse::<f64>().unwrap()).sum::<f64>() * 10.0;
    let each = |places| milliseconds(places) / clusters;
    let peak = peak.parse::<f64>().unwrap() / 1024.0;
    format!("{peak:.0} MiB, {:.1} ms each; its children {:.1} ms each", each([11, 12]), each([13, 14]))
}
