//! A fleet plane as `local up` starts it, and the characters that a test plays in it.

mod view;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use daemon::retry::Budget;
use hyperfleet_client::{
    Client, Error, Generation, NewCondition, NewReport, NewResource, Patch, Resource, Settings, Status, WatchKind,
    WatchQuery,
};
use kubernetes::{Cluster, SecretKey};
use secrecy::ExposeSecret as _;
use secret_store::{Endpoint, GoogleSecretManager, SecretStore as _, Version};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use view::{attempt, condition, is_available, view};

use crate::hyperfleet::patiently;
use crate::leaks::{PASSWORD, check};
use crate::program;
use crate::rig::{Signal, signal};

/// The others, in the order in which they report.
pub const BEFORE: [&str; 3] = ["validation", "dns", "placement"];
pub const PROJECT: &str = "my-project-1";

/// A running `local up`.
pub struct Up {
    pub child: Child,
    /// The line that it printed when it was ready.
    pub ready: Value,
    pub player: Player,
    output: Arc<Mutex<String>>,
}

/// Maximum time of a wait, on a busy machine. A third attempt of the adapter waits for two minutes by itself.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Plays everybody but the pull secret's adapter.
#[derive(Clone)]
pub struct Player {
    pub client: Client,
    budget: Budget,
}

/// A folder that outlives an [`Up`].
pub fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// A pull secret whose password must not show anywhere; each name is other content.
pub fn document(name: &str) -> String {
    let auth = STANDARD.encode(format!("user:{PASSWORD}"));
    format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}"}},"{name}.example.com":{{"auth":"{auth}"}}}}}}"#)
}

/// A command that is to run in `folder`, on ports that it takes as they are free.
pub fn up(folder: &Path) -> Command {
    let mut command = program::local(&["up", "--port=0", "--output=json", "--log-level=debug", "--data-dir"]);
    command.arg(folder);
    command
}

impl Up {
    /// Starts one and waits until it is ready.
    pub async fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let output = Arc::new(Mutex::new(String::new()));
        let (ready, is_ready) = oneshot::channel();
        listen(child.stdout.take().unwrap(), Arc::clone(&output), Some(ready));
        listen(child.stderr.take().unwrap(), Arc::clone(&output), None);
        let Ok(ready) = is_ready.await else { panic!("it has ended: {}", output.lock().unwrap()) };
        let player = Player::of(ready["api"].as_str().unwrap());
        Self { child, ready, player, output }
    }

    pub async fn in_folder(folder: &Path) -> Self {
        Self::start(up(folder)).await
    }

    /// All that it has said so far. It is looked through for credentials whenever it is asked for.
    pub fn output(&self) -> String {
        let output = self.output.lock().unwrap().clone();
        check("local up", &output);
        output
    }

    pub async fn kill(mut self) {
        self.output();
        self.child.kill().await.unwrap();
    }

    /// Asks it to end, as Ctrl-C does, and returns its exit code and what it has said.
    pub async fn interrupt(mut self) -> (Option<i32>, String) {
        signal(&self.child, Signal::INT);
        let status = self.child.wait().await.unwrap();
        // What it has said is read to its end when the pipes are closed, and that is before it is reaped or just after.
        while Arc::strong_count(&self.output) > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        (status.code(), self.output())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(self.ready["data_dir"].as_str().unwrap()).join(name)
    }

    pub fn place(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap()
    }

    pub async fn cluster(&self) -> Cluster {
        cluster(Path::new(self.place("kubeconfig"))).await
    }

    /// The contents of all live versions of the cluster's secret.
    pub async fn versions(&self, id: &str) -> Vec<String> {
        let token_file = self.ready["secret_manager_token_file"].as_str().map(PathBuf::from);
        versions(self.place("secret_manager").trim_start_matches("http://"), token_file, id).await
    }

    /// A project's secrets.
    pub async fn store(&self, project: &str) -> GoogleSecretManager {
        let token_file = self.ready["secret_manager_token_file"].as_str().map(PathBuf::from);
        store(self.place("secret_manager").trim_start_matches("http://"), token_file, project).await
    }

    /// The content of the Kubernetes Secret.
    pub async fn applied_secret(&self, id: &str) -> Option<String> {
        applied_secret(&self.cluster().await, id).await
    }
}

/// Keeps what is said, and hands on what is said when it is ready.
fn listen(
    from: impl AsyncRead + Unpin + Send + 'static,
    output: Arc<Mutex<String>>,
    ready: Option<oneshot::Sender<Value>>,
) {
    let mut ready = ready;
    tokio::spawn(async move {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let said: Value = serde_json::from_str(&line).unwrap_or_default();
            output.lock().unwrap().push_str(&(line + "\n"));
            if said["event"] == "ready"
                && let Some(ready) = ready.take()
            {
                drop(ready.send(said));
            }
        }
    });
}

pub async fn cluster(kubeconfig: &Path) -> Cluster {
    let kubeconfig = Some(kubeconfig.to_path_buf());
    let settings = kubernetes::Settings { kubeconfig, ..kubernetes::Settings::default() };
    Cluster::connect(&settings).await.unwrap()
}

pub fn secret_key(id: &str) -> SecretKey {
    SecretKey { namespace: namespace(id), name: format!("{id}-pull-secret") }
}

pub fn namespace(id: &str) -> String {
    format!("clusters-{id}")
}

pub async fn applied_secret(cluster: &Cluster, id: &str) -> Option<String> {
    let secret = cluster.find_secret(&secret_key(id)).await.unwrap()?;
    Some(String::from_utf8(secret.content?.expose_secret().to_vec()).unwrap())
}

/// The secrets of a project in an emulator.
pub async fn store(host: &str, token_file: Option<PathBuf>, project: &str) -> GoogleSecretManager {
    let settings = secret_store::Settings {
        project: project.parse().unwrap(),
        location: None,
        endpoint: Endpoint::Emulator { host: host.to_owned(), token_file },
        call_timeout: Duration::from_secs(10),
        calls: None,
    };
    GoogleSecretManager::connect(&settings).await.unwrap()
}

pub async fn versions(host: &str, token_file: Option<PathBuf>, id: &str) -> Vec<String> {
    let store = store(host, token_file, PROJECT).await;
    let secret = format!("hyperfleet-{id}-pull-secret").parse().unwrap();
    let mut contents = Vec::new();
    for version in store.list_versions(&secret).await.unwrap_or_default() {
        if let Version::Live(live) = store.read_version(&secret, version.number).await.unwrap() {
            contents.push(String::from_utf8(live.content.expose_secret().to_vec()).unwrap());
        }
    }
    contents
}

impl Player {
    pub fn of(api: &str) -> Self {
        Self::with(Settings::new(api.parse().unwrap()))
    }

    pub fn with(settings: Settings) -> Self {
        let client = Client::new(settings).unwrap();
        Self { client, budget: Budget::new(Duration::from_mins(10), CancellationToken::new()) }
    }

    pub async fn create(&self, id: &str, content: &str) -> Resource {
        self.try_create(id, content).await.unwrap()
    }

    pub async fn try_create(&self, id: &str, content: &str) -> Result<Resource, Error> {
        self.try_create_named(id, id, content).await
    }

    /// Creates a cluster whose name is not its id.
    pub async fn try_create_named(&self, id: &str, name: &str, content: &str) -> Result<Resource, Error> {
        self.try_create_with(id, name, spec(content)).await
    }

    pub async fn try_create_with(&self, id: &str, name: &str, spec: Map<String, Value>) -> Result<Resource, Error> {
        let new = NewResource {
            id: Some(id.to_owned()),
            kind: "Cluster".to_owned(),
            name: name.to_owned(),
            spec,
            ..NewResource::default()
        };
        patiently(async || self.client.within(&self.budget).create("clusters", &new).await).await
    }

    pub async fn rotate(&self, id: &str, content: &str) -> Resource {
        self.patch(id, spec(content)).await
    }

    /// Stores the pull secret in another project from now on.
    pub async fn move_to(&self, id: &str, project: &str, content: &str) -> Resource {
        let mut spec = spec(content);
        spec.insert("gcp".to_owned(), json!({"projectId": project}));
        self.patch(id, spec).await
    }

    /// Stores the pull secret in another folder in OpenBao from now on.
    pub async fn move_to_folder(&self, id: &str, folder: &str, content: &str) -> Resource {
        let pull_secret = json!({"data": content, "folder": folder});
        self.patch(id, Map::from_iter([("pullSecret".to_owned(), pull_secret)])).await
    }

    pub async fn patch(&self, id: &str, spec: Map<String, Value>) -> Resource {
        let patch = Patch { spec: Some(spec), ..Patch::default() };
        patiently(async || self.client.within(&self.budget).patch("clusters", id, &patch, None).await).await.unwrap()
    }

    pub async fn delete(&self, id: &str) -> Resource {
        patiently(async || self.client.within(&self.budget).delete("clusters", id).await).await.unwrap().unwrap()
    }

    pub async fn get(&self, id: &str) -> Option<Resource> {
        self.client.within(&self.budget).get("clusters", id).await.unwrap()
    }

    /// Reports what must be reported, with conditions given as type, status and reason.
    pub async fn report(
        &self,
        (adapter, id): (&str, &str),
        generation: impl Into<Generation>,
        conditions: &[(&str, Status, &str)],
        data: Value,
    ) {
        let condition = |(kind, status, reason): &(&str, Status, &str)| NewCondition {
            kind: (*kind).to_owned(),
            status: *status,
            reason: Some((*reason).to_owned()),
            message: Some(format!("{reason} is so")),
            last_transition_time: None,
        };
        let report = NewReport {
            adapter: adapter.to_owned(),
            observed_generation: generation.into(),
            conditions: conditions.iter().map(condition).collect(),
            data: data.as_object().cloned().unwrap_or_default(),
            observed_time: None,
            metadata: None,
        };
        self.client.within(&self.budget).report("clusters", id, &report).await.unwrap();
    }

    /// Reports that an adapter is done.
    pub async fn play(&self, adapter: &str, id: &str, generation: impl Into<Generation>) {
        let conditions =
            [("Applied", Status::True, "Done"), ("Available", Status::True, "Done"), ("Health", Status::True, "Done")];
        let data = if adapter == "placement" { json!({"namespace": namespace(id)}) } else { json!({}) };
        self.report((adapter, id), generation.into(), &conditions, data).await;
    }

    /// Makes the namespace, as placement does, and reports for all that come before.
    pub async fn make_ready(&self, cluster: &Cluster, id: &str, generation: impl Into<Generation>) {
        let generation = generation.into();
        cluster.ensure_namespace(&namespace(id)).await.unwrap();
        for adapter in BEFORE {
            self.play(adapter, id, generation).await;
        }
    }

    /// Reports for all others that nothing of theirs is left.
    pub async fn finalize(&self, id: &str, generation: Generation) {
        let conditions = ["Applied", "Available", "Health", "Finalized"].map(|kind| (kind, Status::True, "Done"));
        for adapter in BEFORE.into_iter().chain(["hypershift"]) {
            self.report((adapter, id), generation, &conditions, json!({})).await;
        }
    }

    /// Waits until the cluster satisfies the condition.
    pub async fn until(&self, id: &str, is_so: impl Fn(&Resource) -> bool) -> Resource {
        let stop = CancellationToken::new();
        let mut watch = self.client.watch("clusters", WatchQuery::default(), stop.clone());
        let mut last = None;
        let waiting = async {
            while let Some(event) = watch.next().await {
                let Some(resource) = event.object.filter(|resource| resource.id == id) else { continue };
                if event.kind != WatchKind::Deleted && is_so(&resource) {
                    return resource;
                }
                last = Some(view(&resource));
            }
            panic!("the watch has ended")
        };
        match tokio::time::timeout(TIMEOUT, waiting).await {
            Ok(resource) => *resource,
            Err(tokio::time::error::Elapsed { .. }) => {
                panic!("waited in vain for {id}; the adapter's last word: {last:?}")
            }
        }
    }

    /// Waits until a later attempt than that of `before` has repaired what is stored; fails unless the adapter has reported the
    /// finding. A test that looks for the condition itself comes too late on a busy machine.
    pub async fn until_repaired(&self, before: &Resource, finding: &str) -> Resource {
        let (id, generation) = (before.id.as_str(), before.generation);
        let is_repaired = |cluster: &Resource| is_available(cluster, generation) && attempt(cluster) > attempt(before);
        let repaired = self.until(id, is_repaired).await;
        let history = self.client.within(&self.budget).history("clusters", id).await.unwrap();
        let messages: Vec<&str> = history.iter().filter_map(|change| change.message.as_deref()).collect();
        assert!(messages.iter().any(|message| message.contains(finding)), "{finding}: {messages:?}");
        repaired
    }

    /// Waits until the cluster is gone.
    pub async fn until_gone(&self, id: &str) {
        let stop = CancellationToken::new();
        let mut watch = self.client.watch("clusters", WatchQuery::default(), stop.clone());
        let waiting = async {
            let mut there = false;
            while let Some(event) = watch.next().await {
                let is_it = event.object.as_ref().is_some_and(|resource| resource.id == id);
                there |= is_it;
                if (is_it && event.kind == WatchKind::Deleted) || (event.kind == WatchKind::Bookmark && !there) {
                    return;
                }
            }
        };
        tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
    }
}

fn spec(content: &str) -> Map<String, Value> {
    spec_of("gcp", content)
}

pub fn spec_of(provider: &str, content: &str) -> Map<String, Value> {
    let spec = json!({"provider": provider, "gcp": {"projectId": PROJECT}, "pullSecret": {"data": content}});
    spec.as_object().cloned().unwrap()
}

/// Output of a command, checked for credentials.
pub async fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().await.unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    check("a command", &stdout);
    check("a command", &stderr);
    (output.status.code(), stdout, stderr)
}

/// Looks through files that are no stores.
pub fn check_files(folder: &Path, names: &[&str]) {
    for name in names {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        check(name, &String::from_utf8_lossy(&bytes));
    }
}
