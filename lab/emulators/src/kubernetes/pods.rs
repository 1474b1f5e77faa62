//! The one node of the emulator: Pods whose image a program stands for run as child processes.
//!
//! Of a Pod's containers the first one runs; init containers, other containers and probes do not (a container is ready while
//! it runs). There is no limit to its resources, no user of its own, no network of its own. Its files are set up by
//! [`root`], its start is in [`launch`], its end in [`child`].
//!
//! Without any program nothing here happens: Pods stay Pending and without a node, so that a test can act as the kubelet.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::{fs, io, path};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::controllers::action::EventKind;
use super::controllers::daemon_set::{Fit, Node, fit};
use super::controllers::model::{self, view};
use super::controllers::perform::{Recorder, gone_is_fine, record_event};
use super::controllers::queue::{Key, Queue, Settings, key_of};
use super::status::Status;
use super::store::{Deletion, Object, Store};
use super::tokens::AUDIENCE;

mod child;
mod decide;
mod environment;
mod facts;
mod folder;
mod launch;
mod leftover;
mod log;
mod root;
mod spec;
mod status;
#[cfg(test)]
mod tests;
mod volumes;

use child::Order;
use decide::{Readiness, Step, decide};
use facts::{Exit, Facts, Life};
use folder::PodFolder;
use launch::{MessageFile, Prepared, Run, prepare};
use log::{Log, PodLogs};
use root::Isolation;
pub use root::allow_mounts;
use spec::{Container, Data, Pod, Sources};

/// The node of Pods when none is registered.
const NODE: &str = "emulator";

/// Delay before a failed write is retried.
const RETRY: SignedDuration = SignedDuration::from_secs(1);

struct Runner {
    store: Arc<Store>,
    settings: Settings,
    isolation: Isolation,
    /// Or why it cannot be made, for which no Pod runs.
    folder: io::Result<PodFolder>,
    logs: Arc<PodLogs>,
    machines: BTreeMap<Key, Machine>,
    processes: JoinSet<Ended>,
    queue: Queue,
}

/// A Pod's container on this node.
struct Machine {
    uid: String,
    facts: Facts,
    /// True once its status says so; it never starts again.
    has_ended: bool,
    orders: Option<UnboundedSender<Order>>,
    /// Removed with all its volumes when the Pod and its process are gone.
    folder: Option<Arc<TempDir>>,
}

/// A process that has ended, and when.
struct Ended {
    key: Key,
    uid: String,
    started: Timestamp,
    finished: Timestamp,
    result: io::Result<ExitStatus>,
    message: MessageFile,
    log: Arc<Log>,
}

/// Objects that Pods of one namespace may reference.
struct Namespace<'a> {
    store: &'a Store,
    name: &'a str,
}

/// Runs Pods until the store stops, and then ends every process.
pub(crate) async fn run(store: Arc<Store>, settings: Settings) {
    if settings.run_pods.is_empty() {
        return;
    }
    let logs = Arc::new(PodLogs::forwarding_to(settings.pod_lines.clone()));
    store.serve_logs(Arc::clone(&logs) as Arc<dyn super::store::Logs>);
    let folder = PodFolder::make(settings.pods_dir.as_deref());
    let isolation = match &folder {
        Ok(folder) => Isolation::probe(folder.path()).await,
        Err(_) => Isolation::Rewriting,
    };
    let (machines, processes, queue) = (BTreeMap::new(), JoinSet::new(), Queue::default());
    Runner { store, settings, isolation, folder, logs, machines, processes, queue }.run().await;
}

impl Runner {
    async fn run(mut self) {
        let store = Arc::clone(&self.store);
        let mut pods = store.subscribe("pods");
        let (mut secrets, mut config_maps) = (store.subscribe("secrets"), store.subscribe("configmaps"));
        let mut nodes = store.subscribe("nodes");
        loop {
            while let Some(key) = self.queue.pop() {
                let wake = self.look_at(&key);
                self.queue.plan(key, wake);
            }
            tokio::select! {
                () = store.stopping.cancelled() => break,
                () = self.queue.due(&store) => {}
                event = pods.next() => self.queue.add(key_of(&event.object)),
                _ = secrets.next() => self.look_at_waiting(),
                _ = config_maps.next() => self.look_at_waiting(),
                _ = nodes.next() => self.look_at_waiting(),
                Some(Ok(ended)) = self.processes.join_next() => self.note_end(ended),
            }
        }
        for machine in self.machines.values() {
            machine.order(Order::Kill);
        }
        while self.processes.join_next().await.is_some() {}
    }

    /// Something that waiting Pods may have waited for has changed.
    fn look_at_waiting(&mut self) {
        let waits = |machine: &Machine| !machine.has_ended && !matches!(machine.facts.life, Life::Running { .. });
        let idle = self.machines.iter().filter(|(_, machine)| waits(machine));
        for (key, _) in idle {
            self.queue.add(key.clone());
        }
    }

    /// Decides about one Pod and performs; says when to look again.
    fn look_at(&mut self, key: &Key) -> Option<Timestamp> {
        let object = self.store.get("pods", &key.0, &key.1).ok();
        let found = object.and_then(|object| Some((view::<Pod>(&object)?, object)));
        let uid = self.machines.get(key).map(|machine| machine.uid.clone());
        if uid.is_some() && uid.as_ref() != found.as_ref().map(|(pod, _)| &pod.metadata.uid) {
            self.forget(key);
        }
        let (pod, object) = found?;
        let machine = self.machines.entry(key.clone()).or_insert_with(|| Machine::found(&pod, self.store.now()));
        machine.has_ended = pod.has_ended();
        let facts = machine.facts.clone();
        let now = self.store.now();
        let steps = decide(&pod, &facts, &|| self.readiness(&pod), now, self.settings.back_off);
        let mut wake = None;
        for step in steps {
            match step {
                Step::Wake(at) => wake = Some(at),
                step => {
                    if self.perform(key, &pod, &object, step).is_err() {
                        return Some(now.saturating_add(RETRY).unwrap_or(Timestamp::MAX));
                    }
                }
            }
        }
        wake
    }

    fn perform(&mut self, key: &Key, pod: &Pod, object: &Object, step: Step) -> Result<(), Status> {
        match step {
            Step::Bind => return self.bind(pod, object),
            Step::Status(status) => return self.write_status(pod, object, status),
            Step::Start => self.start(key, pod, object),
            Step::Terminate => self.machine(key, |machine| {
                machine.facts.terminating = true;
                machine.order(Order::Terminate);
            }),
            Step::Kill => self.machine(key, |machine| {
                machine.facts.killed = true;
                machine.order(Order::Kill);
            }),
            Step::Remove => {
                let deletion = Deletion { uid: Some(pod.metadata.uid.clone()), ..Deletion::now() };
                return gone_is_fine(self.store.delete("pods", &key.0, &key.1, &deletion));
            }
            Step::RecordEvent { kind, reason, message } => self.record_event(pod, object, kind, reason, &message),
            Step::Wake(_) => {}
        }
        Ok(())
    }

    fn machine(&mut self, key: &Key, work: impl FnOnce(&mut Machine)) {
        if let Some(machine) = self.machines.get_mut(key) {
            work(machine);
        }
    }

    fn record_event(&self, pod: &Pod, object: &Object, kind: EventKind, reason: &str, message: &str) {
        let recorder = Recorder { component: "kubelet", node: &pod.spec.node_name };
        record_event(&self.store, object, recorder, kind, reason, message);
    }

    /// Puts a Pod on the node that it asks for, on the first registered one that fits, or on the emulator's own.
    fn bind(&self, pod: &Pod, object: &Object) -> Result<(), Status> {
        let nodes: Vec<Node> = self.store.list("nodes", None).iter().filter_map(|node| view(node)).collect();
        let Some(wanted) = view::<model::Pod>(object) else { return Ok(()) };
        let fitting = nodes.iter().find(|node| fit(&wanted.spec, node) == Fit::Wanted);
        let named = wanted.node().or_else(|| fitting.map(|node| node.metadata.name.as_str()));
        let Some(node) = named.or_else(|| nodes.is_empty().then_some(NODE)) else {
            let status = status::unschedulable(pod, nodes.len(), self.store.now());
            return self.write_status(pod, object, status);
        };
        let mut bound = Value::clone(object);
        if let Some(spec) = bound.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("nodeName".to_owned(), Value::from(node));
        }
        self.store.update("pods", bound)?;
        let place = format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
        let message = format!("Successfully assigned {place} to {node}");
        let recorder = Recorder { component: "default-scheduler", node: "" };
        record_event(&self.store, object, recorder, EventKind::Normal, "Scheduled", &message);
        Ok(())
    }

    fn write_status(&self, pod: &Pod, object: &Object, status: Map<String, Value>) -> Result<(), Status> {
        if status == pod.status {
            return Ok(());
        }
        let mut new = Value::clone(object);
        if let Some(members) = new.as_object_mut() {
            members.insert("status".to_owned(), Value::Object(status));
            // The runner alone writes what it writes; what others wrote is in there as it was a moment ago.
            if let Some(meta) = members.get_mut("metadata").and_then(Value::as_object_mut) {
                meta.remove("resourceVersion");
            }
        }
        gone_is_fine(self.store.update_status("pods", new))
    }

    /// True if a Pod's container can be started now.
    fn readiness(&self, pod: &Pod) -> Readiness {
        let Some(container) = pod.spec.containers.first() else { return Readiness::NoImage };
        if !self.settings.run_pods.contains_key(&container.image) {
            return Readiness::NoImage;
        }
        let sources = Namespace { store: &self.store, name: &pod.metadata.namespace };
        let missing = |volume: &spec::Volume| {
            let problem = volumes::content(pod, volume, &sources).err()?;
            Some(Readiness::Unmountable(volume.name.clone(), problem))
        };
        if let Some(missing) = pod.spec.volumes.iter().find_map(missing) {
            return missing;
        }
        environment::resolve(pod, container, &sources).map_or_else(Readiness::Misconfigured, |_| Readiness::Ready)
    }

    fn start(&mut self, key: &Key, pod: &Pod, object: &Object) {
        let Some(container) = pod.spec.containers.first() else { return };
        let now = self.store.now();
        let prepared = self.prepare(key, pod, container);
        let log = self.logs.begin(&key.0, &key.1, &container.name);
        let Some(machine) = self.machines.get_mut(key) else { return };
        machine.facts.begin(now, self.settings.back_off);
        // Reconciled once more, to report that it runs or why it does not.
        self.queue.add(key.clone());
        let Prepared { launch, message } = match prepared {
            Ok(prepared) => prepared,
            Err(problem) => {
                machine.facts.life = Life::Ended(Exit::not_started(problem, now));
                return;
            }
        };
        let (orders, received) = unbounded_channel();
        machine.orders = Some(orders);
        let (key, uid, store) = (key.clone(), machine.uid.clone(), Arc::clone(&self.store));
        let Some(folder) = machine.folder.clone() else { return };
        self.processes.spawn(async move {
            let result = child::run(launch, folder.path(), &log, received).await;
            drop(folder);
            Ended { key, uid, started: now, finished: store.now(), result, message, log }
        });
        self.record_event(pod, object, EventKind::Normal, "Started", &format!("Started container {}", container.name));
    }

    fn prepare(&mut self, key: &Key, pod: &Pod, container: &Container) -> Result<Prepared, String> {
        let program = self.settings.run_pods.get(&container.image).ok_or("no program stands for the image")?;
        let program = path::absolute(program).map_err(|error| error.to_string())?;
        if !fs::metadata(&program).is_ok_and(|found| found.is_file()) {
            return Err(format!("exec: {:?}: no such file", program.display()));
        }
        let machine = self.machines.get_mut(key).ok_or("the pod is gone")?;
        if machine.folder.is_none() {
            let fail = |error: &io::Error| format!("cannot make the pod's folder: {error}");
            let folder = self.folder.as_ref().map_err(fail)?.of_pod().map_err(|error| fail(&error))?;
            machine.folder = Some(Arc::new(folder));
        }
        let folder: PathBuf = machine.folder.as_ref().map(|folder| folder.path().to_path_buf()).unwrap_or_default();
        let number = machine.facts.restarts + u32::from(machine.facts.life != Life::Idle);
        let run = Run { program: &program, folder: &folder, number, isolation: &self.isolation };
        let sources = Namespace { store: &self.store, name: &key.0 };
        prepare(pod, container, &run, &sources)
    }

    fn note_end(&mut self, ended: Ended) {
        let Ended { key, uid, started, finished, result, message, log } = ended;
        let Some(machine) = self.machines.get_mut(&key).filter(|machine| machine.uid == uid) else { return };
        machine.orders = None;
        machine.facts.life = Life::Ended(match result {
            Err(error) => Exit::not_started(error.to_string(), finished),
            Ok(status) => {
                let signal = status.signal();
                let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(255);
                let message = message.read(code != 0, || log.tail());
                let reason = if code == 0 { "Completed" } else { "Error" };
                Exit { code, signal, reason, message, started, finished }
            }
        });
        self.queue.add(key);
    }

    /// The Pod is no more: neither are its process, its log and its files.
    fn forget(&mut self, key: &Key) {
        if let Some(machine) = self.machines.remove(key) {
            machine.order(Order::Kill);
        }
        self.logs.forget(&key.0, &key.1);
    }
}

impl Machine {
    /// A Pod seen for the first time. One that runs according to its status ran on an emulator that is gone.
    fn found(pod: &Pod, now: Timestamp) -> Self {
        let mut facts = Facts::default();
        let statuses = pod.status.get("containerStatuses").and_then(view::<Vec<model::ContainerStatus>>);
        if let Some(status) = statuses.unwrap_or_default().first() {
            facts.restarts = status.restart_count;
            if status.state.running.is_some() {
                let message = "The container could not be located when the pod was terminated".to_owned();
                let reason = "ContainerStatusUnknown";
                let lost = Exit { code: 137, signal: None, reason, message, started: now, finished: now };
                facts.life = Life::Ended(lost);
            }
        }
        Self { uid: pod.metadata.uid.clone(), facts, has_ended: false, orders: None, folder: None }
    }

    /// A process that has ended meanwhile does not hear it.
    fn order(&self, order: Order) {
        let Some(orders) = &self.orders else { return };
        orders.send(order).unwrap_or_default();
    }
}

impl Exit {
    fn not_started(message: String, now: Timestamp) -> Self {
        Self { code: 128, signal: None, reason: "StartError", message, started: now, finished: now }
    }
}

impl Sources for Namespace<'_> {
    fn secret(&self, name: &str) -> Option<Data> {
        let secret = self.store.get("secrets", self.name, name).ok()?;
        Some(decoded(secret.get("data")))
    }

    fn config_map(&self, name: &str) -> Option<Data> {
        let map = self.store.get("configmaps", self.name, name).ok()?;
        let texts = map.get("data").and_then(Value::as_object).into_iter().flatten();
        let texts = texts.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().as_bytes().to_vec()));
        Some(texts.chain(decoded(map.get("binaryData"))).collect())
    }

    fn token(&self, account: &str, seconds: i64) -> Option<String> {
        let until = self.store.now().saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        self.store.issue_token(self.name, account, &[AUDIENCE.to_owned()], until).ok()
    }
}

fn decoded(data: Option<&Value>) -> Data {
    let members = data.and_then(Value::as_object).into_iter().flatten();
    let known = members.filter_map(|(key, value)| Some((key.clone(), STANDARD.decode(value.as_str()?).ok()?)));
    known.collect()
}
