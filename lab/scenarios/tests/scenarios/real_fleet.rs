//! The same story on real parts: PostgreSQL, RabbitMQ or Google's Pub/Sub emulator, kube-apiserver; two Sentinels and two adapters, each a process.
//!
//! The real server of `hack/real-parts` has no kubelet, so the test plays it: [`Node`] runs the Pods of one namespace as
//! processes of this program and writes down how they ended.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{Container, Pod, Secret};
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Config};
use rstest::rstest;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use testkit::broker::{self, Broker};
use testkit::fleet::{self, Player, Up, applied_secret, document, is_available, up, versions, view};
use testkit::rig::Rig;
use testkit::{environment, program};

use crate::processes::{self, Servers};

/// Addresses of the real parts, and a database of this test's own.
struct Real {
    kubeconfig: PathBuf,
    broker: Broker,
    postgresql: String,
}

/// A node of the real cluster, played.
struct Node(JoinHandle<()>);

/// Additional environment of every Pod on this node.
#[derive(Clone)]
struct Surroundings {
    secret_manager: String,
    kubeconfig: PathBuf,
}

impl Real {
    /// `None`, with a line that says what is missing, where a part is not there; in CI that is a failure.
    async fn new(name: &str, broker: Option<Broker>) -> Option<Self> {
        let broker = broker?;
        let part = |variable: &str, what: &str| {
            let missing =
                || environment::missing(&format!("{variable} is not set: no {what}; `make real-parts` starts one"));
            environment::variable(variable).or_else(missing)
        };
        let kubeconfig = part("REAL_KUBECONFIG", "real API server")?;
        let server = part("REAL_POSTGRESQL_URL", "PostgreSQL")?;
        let mut connection = PgConnection::connect(&server).await.unwrap();
        let name = format!("{name}_{}", std::process::id());
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await.unwrap();
        let postgresql = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
        Some(Self { kubeconfig: kubeconfig.into(), broker, postgresql })
    }
}

// === impl Node ===

impl Node {
    /// Runs the Pods of a namespace until it is dropped.
    async fn start(namespace: &str, surroundings: Surroundings) -> Self {
        let file = Kubeconfig::read_from(&surroundings.kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let namespace = namespace.to_owned();
        Self(tokio::spawn(async move {
            let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
            let mut news =
                watcher(pods.clone(), watcher::Config::default()).default_backoff().applied_objects().boxed();
            let mut begun = BTreeSet::new();
            while let Some(pod) = news.next().await {
                let Ok(pod) = pod else { continue };
                let uid = pod.metadata.uid.clone().unwrap();
                if pod.metadata.deletion_timestamp.is_none() && begun.insert(uid) {
                    let secrets = Api::namespaced(client.clone(), &namespace);
                    tokio::spawn(run(pod, pods.clone(), secrets, surroundings.clone()));
                }
            }
        }))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a Pod's container to its end and writes down how it ended. A Pod that is deleted meanwhile is ignored.
async fn run(pod: Pod, pods: Api<Pod>, secrets: Api<Secret>, surroundings: Surroundings) {
    let folder = tempfile::tempdir().unwrap();
    let name = pod.metadata.name.clone().unwrap();
    let container = pod.spec.as_ref().unwrap().containers[0].clone();
    let mut command = command(&pod, &container, &secrets, folder.path()).await;
    let message = folder.path().join("termination-log");
    daemon::file::replace(&message, b"").unwrap();
    command
        .env("TERMINATION_LOG_PATH", &message)
        .env("SECRET_MANAGER_EMULATOR_HOST", &surroundings.secret_manager)
        .env("MANAGEMENT_KUBECONFIG", &surroundings.kubeconfig);
    let output = command.output().await.unwrap();
    testkit::leaks::check("a job", &String::from_utf8_lossy(&output.stdout));
    testkit::leaks::check("a job", &String::from_utf8_lossy(&output.stderr));
    let code = output.status.code().unwrap_or(137);
    let message = std::fs::read_to_string(&message).unwrap();
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let terminated = json!({
        "exitCode": code, "reason": "Completed", "message": message, "startedAt": now, "finishedAt": now,
    });
    let status = json!({"status": {
        "phase": if code == 0 { "Succeeded" } else { "Failed" },
        "containerStatuses": [{
            "name": container.name, "image": container.image.unwrap_or_default(), "imageID": "", "ready": false,
            "restartCount": 0, "state": {"terminated": terminated},
        }],
    }});
    drop(pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await);
}

/// The container's program with its arguments and environment; its volumes are folders, and paths to them lead there.
async fn command(pod: &Pod, container: &Container, secrets: &Api<Secret>, folder: &Path) -> Command {
    let mut command = Command::new(program::path("pull-secret"));
    command.args(container.args.iter().flatten()).env_clear().stdin(Stdio::null()).kill_on_drop(true);
    let mut mounts = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let place = folder.join(&mount.name);
        std::fs::create_dir_all(&place).unwrap();
        mounts.push((mount.mount_path.clone(), place.display().to_string()));
        let volumes = pod.spec.as_ref().unwrap().volumes.iter().flatten();
        let volume = volumes.into_iter().find(|volume| volume.name == mount.name);
        let Some(source) = volume.and_then(|volume| volume.secret.as_ref()) else { continue };
        let secret = secrets.get(source.secret_name.as_deref().unwrap_or_default()).await;
        for (key, value) in secret.ok().and_then(|secret| secret.data).unwrap_or_default() {
            daemon::file::replace(&place.join(key), &value.0).unwrap();
        }
    }
    for variable in container.env.iter().flatten() {
        let value = variable.value.clone().unwrap_or_default();
        let value = mounts.iter().fold(value, |value, (path, place)| value.replace(path.as_str(), place));
        command.env(&variable.name, value);
    }
    command
}

/// The processes of a fleet plane, two of each that there may be several of.
struct Processes {
    player: Player,
    sentinels: Vec<Child>,
    adapters: Vec<Child>,
    _api: Child,
    folder: TempDir,
}

impl Processes {
    async fn start(real: &Real, namespace: &str) -> Self {
        let folder = fleet::folder();
        let (api, address) = processes::api(folder.path(), &[("DATABASE_URL", &real.postgresql)]).await;
        let mut processes =
            Self { player: Player::of(&address), sentinels: Vec::new(), adapters: Vec::new(), _api: api, folder };
        for _ in 0..2 {
            let servers = Servers { api: &address, topic: namespace, kubeconfig: &real.kubeconfig };
            processes.adapters.push(processes::adapter(processes.folder.path(), servers, &real.broker).await);
        }
        for _ in 0..2 {
            let mut command =
                program::pull_secret(&["sentinel", "--resource-type=clusters", "--leader-election=postgres"]);
            command.args(["--health-port=0", "--metrics-port=0", "--broker-topic", namespace]);
            command.args(["--hyperfleet-api-base-url", &address]).envs(real.broker.iter().cloned());
            command.env("HYPERFLEET_LEADER_ELECTION_DATABASE_URL", &real.postgresql);
            processes.sentinels.push(processes::started(command, "Sentinel of clusters").await.0);
        }
        processes
    }
}

/// The common start: a namespace for Jobs, a node, a Secret Manager.
async fn prepared(real: &Real, namespace: &str) -> (Rig, kubernetes::Cluster, Node) {
    let rig = Rig::new().await;
    let cluster = fleet::cluster(&real.kubeconfig).await;
    cluster.ensure_namespace(namespace).await.unwrap();
    cluster.ensure_service_account(namespace, "pullsecret-adapter-job").await.unwrap();
    let secret_manager = rig.emulator.address().to_string();
    let surroundings = Surroundings { secret_manager, kubeconfig: real.kubeconfig.clone() };
    let node = Node::start(namespace, surroundings).await;
    (rig, cluster, node)
}

/// The whole life of a cluster's pull secret. `between` happens after it is available for the first time.
pub(crate) async fn the_story(
    player: &Player,
    cluster: &kubernetes::Cluster,
    store: &str,
    id: &str,
    between: impl AsyncFnOnce(),
) {
    player.create(id, &document("a")).await;
    player.until(id, |cluster| !view(cluster).is_null()).await;
    player.make_ready(cluster, id, 1).await;
    player.until(id, |cluster| is_available(cluster, 1)).await;
    assert_eq!(versions(store, None, id).await, [document("a")]);
    assert_eq!(applied_secret(cluster, id).await, Some(document("a")));
    between().await;
    player.rotate(id, &document("b")).await;
    player.make_ready(cluster, id, 2).await;
    player.until(id, |cluster| is_available(cluster, 2)).await;
    assert_eq!(versions(store, None, id).await, [document("b"), document("a")]);
    assert_eq!(applied_secret(cluster, id).await, Some(document("b")));
    let terminating = player.delete(id).await;
    player.finalize(id, terminating.generation).await;
    player.until_gone(id).await;
    assert_eq!((versions(store, None, id).await, applied_secret(cluster, id).await), (vec![], None));
}

/// Two adapters, two Sentinels; one of each is killed in the middle.
#[rstest]
#[case::rabbitmq("rabbitmq", broker::rabbitmq())]
#[case::pubsub("pubsub", broker::pubsub())]
#[tokio::test(flavor = "multi_thread")]
async fn the_story_on_real_parts_with_two_of_each(#[case] name: &str, #[case] broker: Option<Broker>) {
    let Some(real) = Real::new(name, broker).await else { return };
    let namespace = format!("fleet-{name}-{}", std::process::id());
    let (rig, cluster, _node) = prepared(&real, &namespace).await;
    let mut processes = Processes::start(&real, &namespace).await;
    let store = rig.emulator.address().to_string();
    let player = processes.player.clone();
    let (sentinels, adapters) = (&mut processes.sentinels, &mut processes.adapters);
    let kill = async || {
        sentinels[0].kill().await.unwrap();
        adapters[0].kill().await.unwrap();
    };
    let id = format!("cls-{name}-{}", std::process::id());
    the_story(&player, &cluster, &store, &id, kill).await;
}

/// `local up` with every part replaced by the real one, Secret Manager by an emulator elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn every_part_of_local_up_can_be_a_real_one() {
    let Some(real) = Real::new("replaced", broker::rabbitmq()).await else { return };
    let (rig, cluster, _node) = prepared(&real, "hyperfleet-pull-secret").await;
    let (folder, store) = (fleet::folder(), rig.emulator.address().to_string());
    let mut command = up(folder.path());
    command.arg("--kubeconfig").arg(&real.kubeconfig).args(["--secret-manager", &store]);
    let broker = real.broker.iter().find(|(name, _)| *name == "BROKER_RABBITMQ_URL").map(|(_, url)| url.clone());
    command.env("LOCAL_BROKER", broker.unwrap()).env("LOCAL_DATABASE_URL", &real.postgresql);
    let up = Up::start(command).await;
    let id = format!("cls-all-{}", std::process::id());
    the_story(&up.player, &cluster, &store, &id, async || {}).await;
    let listeners: Value = up.ready["listeners"].clone();
    assert!(listeners.get("kubernetes").is_none() && listeners.get("secret-manager").is_none(), "{listeners}");
    assert!(!up.path("hyperfleet.db").exists() && !up.path("broker.db").exists());
    let (code, output) = up.interrupt().await;
    assert_eq!(code, Some(0), "{output}");
}
