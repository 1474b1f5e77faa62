//! The installation by the guide's commands on a real node, in Pods of the image that `hack/image-archives.sh` assembles, and the
//! life of one cluster's pull secret in it.
//!
//! An emulator is Secret Manager. The node has neither DNS nor a proxy for Services, so Pods get addresses as `hostAliases`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hyperfleet_client::{Settings, TokenSettings};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use testkit::environment::{absent, missing, variable};
use testkit::fleet::{self, Player};
use testkit::rig::Rig;
use testkit::{leaks, program};
use tokio::sync::{Mutex, MutexGuard};

use super::plane::Plane;
use super::{all_commands, commands};
use crate::guides::free_ports;
use crate::helm::{Helm, ROOT, text};
use crate::real_fleet::the_story;

/// The address of this machine for Pods.
const MACHINE: &str = "10.99.0.1";
/// The name by which Jobs reach Secret Manager; the emulator serves loopback names only.
const SECRET_MANAGER: &str = "secret-manager.localhost";
const DEPLOYMENTS: [&str; 3] = ["hyperfleet-api", "sentinel", "pullsecret-adapter"];

/// The node has one test at a time: a node agent restarts the kubelet, which cancels a container's start that is under way.
static NODE: Mutex<()> = Mutex::const_new(());

/// The node, and what installs on it.
pub(super) struct Node {
    pub(super) plane: Plane,
    pub(super) helm: Helm,
    script: String,
    instance: String,
    _alone: MutexGuard<'static, ()>,
}

/// The addresses of the parts that the fleet plane uses.
struct Services {
    postgresql: String,
    rabbitmq: String,
}

/// `None`, with a line that gives the reason, where a part is missing; in CI that is a failure.
fn part(name: &str) -> Option<String> {
    variable(name).or_else(|| missing(&format!("{name} is not set; `make real-parts` starts what it names")))
}

impl Services {
    fn here() -> Option<Self> {
        Some(Self { postgresql: part("REAL_POSTGRESQL_URL")?, rabbitmq: part("REAL_RABBITMQ_URL")? })
    }
}

impl Node {
    /// `None`, with a line that gives the reason, where a part is missing; in CI that is a failure.
    pub(super) async fn here() -> Option<Self> {
        if let Some(why) = variable("REAL_NODE_ABSENT") {
            return absent("a complete node", &why);
        }
        Some(Self {
            plane: Plane::of_node(part("REAL_NODE_KUBECONFIG")?, part("REAL_NODE_KUBECTL")?),
            helm: Helm::here()?,
            script: part("REAL_NODE_SCRIPT")?,
            instance: part("REAL_NODE_INSTANCE")?,
            _alone: NODE.lock().await,
        })
    }

    pub(super) fn script(&self, command: &str, arguments: &[&str]) {
        let mut script = Command::new(&self.script);
        let output = script.args([command, &self.instance]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{command} {arguments:?}: {}", text(&output.stderr));
    }

    /// Assembles the image of a program that was built with this test, and gives it to the node; returns its tag.
    pub(super) fn load_image(&self, program: &str) -> String {
        let tag = format!("test-{}", std::process::id());
        let (binary, out) = (program::path(program), self.plane.folder().join("images"));
        let mut script = Command::new(Path::new(ROOT).join("hack/image-archives.sh"));
        script.arg(binary.parent().unwrap()).arg(&out).args([&tag, program]);
        // A build without optimisations is larger than what is released.
        let output = script.env("IMAGE_MAX_BYTES", "250000000").output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        self.script("load", &[out.join(format!("{program}.tar")).to_str().unwrap()]);
        tag
    }

    /// Lets Pods reach a port of this machine; returns its address for them.
    fn open(&self, url: &str) -> String {
        let (_, address) = url.rsplit_once("127.0.0.1:").unwrap_or_else(|| panic!("a part is not on 127.0.0.1"));
        let port = address.split('/').next().unwrap();
        self.script("forward", &["IN_NODE", &format!("{MACHINE}:{port}"), &format!("127.0.0.1:{port}")]);
        url.replace("127.0.0.1", MACHINE)
    }

    /// The guide's preparations, with the addresses of these parts.
    async fn prepare(&self, services: &Services) {
        let name = format!("onnode_{}", std::process::id());
        let mut connection = PgConnection::connect(&services.postgresql).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await.unwrap();
        let server = self.open(&services.postgresql);
        let database = format!("{}/{name}?sslmode=disable", server.rsplit_once('/').unwrap().0);
        let broker = self.open(&services.rabbitmq);
        let line = |line: &str| match line {
            line if line.ends_with("> database-url") => format!("printf %s '{database}' > database-url\n"),
            line if line.ends_with("> broker-url") => format!("printf %s '{broker}' > broker-url\n"),
            // This machine reaches the API by an address.
            line => line.replace("subjectAltName=", "subjectAltName=IP:127.0.0.1,") + "\n",
        };
        self.plane.bash(&self.helm, &all_commands("Prepare").map(line).collect::<String>());
    }

    /// The guide's installation, with the assembled image, what this node lacks, and a grant for the adapters that are played.
    fn install(&self, tag: &str, secret_manager: &str) {
        let others = json!({
            "name": "others", "issuer": "https://kubernetes.default.svc", "all_tenants": true, "kinds": ["Cluster"],
            "subject": "system:serviceaccount:hyperfleet-operators:operator", "verbs": ["get"],
            "reports_as": ["validation", "dns", "placement", "hypershift"],
        });
        let values = json!({
            "image": {"tag": tag},
            "api": {"replicas": 1, "grants": [others]}, "sentinel": {"replicas": 1},
            "adapter": {"replicas": 1, "settings": {
                "jobTemplate": {"env": [{"name": "SECRET_MANAGER_EMULATOR_HOST", "value": secret_manager}]},
            }},
            "jobs": {"podSpec": {"hostAliases": [{"ip": MACHINE, "hostnames": [SECRET_MANAGER]}]}},
        });
        let file = self.plane.folder().join("node.yaml");
        daemon::file::replace(&file, values.to_string().as_bytes()).unwrap();
        let install = commands("Install it").replace("--values values.yaml", "--values values.yaml --values node.yaml");
        self.plane.bash(&self.helm, &install);
    }

    /// Gives a Deployment's Pods names for addresses.
    fn add_names(&self, deployment: &str, names: &[(&str, &str)]) {
        let aliases: Vec<_> = names.iter().map(|(ip, name)| json!({"ip": ip, "hostnames": [name]})).collect();
        let patch = json!({"spec": {"template": {"spec": {"hostAliases": aliases}}}}).to_string();
        self.in_system(&["patch", "deployment", deployment, "--patch", &patch]);
    }

    fn in_system(&self, arguments: &[&str]) -> String {
        self.plane.kubectl(&[&["--namespace", "hyperfleet-system"], arguments].concat())
    }

    /// The Pods of a namespace, without those that are terminating.
    pub(super) fn pods(&self, namespace: &str) -> Vec<Value> {
        let pods = self.plane.kubectl(&["--namespace", namespace, "get", "pods", "--output", "json"]);
        let pods: Value = serde_json::from_str(&pods).unwrap();
        let pods = pods["items"].as_array().unwrap().iter();
        pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).cloned().collect()
    }

    /// Waits until all Pods are ready, by the guide's command; each knows what DNS would tell it.
    fn start(&self) {
        let kubernetes = ("10.96.0.1", "kubernetes.default.svc");
        self.add_names("hyperfleet-api", &[kubernetes]);
        self.in_system(&["rollout", "status", "deployment/hyperfleet-api", "--timeout=10m"]);
        let address = self.api_address();
        for deployment in &DEPLOYMENTS[1..] {
            self.add_names(deployment, &[kubernetes, (&address, "hyperfleet-api.hyperfleet-system.svc")]);
        }
        let wait = all_commands("Install it").find(|line| line.contains("rollout status")).unwrap();
        self.plane.bash(&self.helm, &format!("{wait} --timeout=10m"));
    }

    fn api_address(&self) -> String {
        let pods = self.pods("hyperfleet-system");
        let api = pods.iter().find(|pod| pod["metadata"]["labels"]["app.kubernetes.io/name"] == "hyperfleet-api");
        api.unwrap()["status"]["podIP"].as_str().unwrap().to_owned()
    }

    /// An operator, as the chart knows one: a ServiceAccount of the operators' namespace.
    fn operator(&self) -> Player {
        let port = free_ports(1)[0];
        let here = format!("127.0.0.1:{port}");
        self.script("forward", &["OUTSIDE", &here, &format!("{}:8000", self.api_address())]);
        let of_operators = ["--namespace", "hyperfleet-operators", "create"];
        self.plane.kubectl(&[&of_operators, &["serviceaccount", "operator"][..]].concat());
        let token =
            self.plane.kubectl(&[&of_operators, &["token", "operator", "--audience", "hyperfleet-api"][..]].concat());
        let path = self.plane.folder().join("token");
        daemon::file::replace(&path, token.trim().as_bytes()).unwrap();
        let token = Some(TokenSettings { path, cache_ttl: Duration::from_mins(1) });
        let ca_file = Some(self.plane.folder().join("ca.crt"));
        Player::with(Settings { token, ca_file, ..Settings::new(format!("https://{here}").parse().unwrap()) })
    }

    fn uninstall(&self) {
        self.plane.bash(&self.helm, &commands("Uninstall"));
    }
}

/// Asserts that a Pod's container runs as the specification's `securityContext` says.
pub(super) fn assert_is_restricted(pod: &Value) {
    let (of_pod, of_container) = (&pod["spec"]["securityContext"], &pod["spec"]["containers"][0]["securityContext"]);
    let runs_as_root = of_container["runAsNonRoot"] != true && of_pod["runAsNonRoot"] != true;
    let drops = &of_container["capabilities"]["drop"];
    assert!(!runs_as_root && *drops == json!(["ALL"]), "{pod:#}");
    assert_eq!(of_container["allowPrivilegeEscalation"], false);
    assert_eq!(of_container["readOnlyRootFilesystem"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_assembled_image_serves_a_cluster_on_a_real_node() {
    let (Some(services), Some(node)) = (Services::here(), Node::here().await) else { return };
    let rig = Rig::new().await;
    let store = rig.emulator.address().to_string();
    let tag = node.load_image("pull-secret");
    node.prepare(&services).await;
    node.open(&store);
    node.install(&tag, &store.replace("127.0.0.1", SECRET_MANAGER));
    node.start();
    let (player, cluster) = (node.operator(), fleet::cluster(node.plane.kubeconfig()).await);
    let id = format!("cls-node-{}", std::process::id());
    let check_pods = async || {
        let (system, jobs) = (node.pods("hyperfleet-system"), node.pods("hyperfleet-pull-secret"));
        assert_eq!(system.len(), 3, "{system:#?}");
        // A Pod that the store was too slow for has a successor.
        let succeeded = jobs.iter().filter(|pod| pod["status"]["phase"] == "Succeeded").count();
        assert_eq!(succeeded, 1, "{jobs:#?}");
        system.iter().chain(&jobs).for_each(assert_is_restricted);
        assert_eq!(jobs[0]["spec"]["containers"][0]["securityContext"]["runAsUser"], 1000);
        leaks::check("a Job's Pod", &jobs[0].to_string());
    };
    the_story(&player, &cluster, &store, &id, check_pods).await;
    for deployment in DEPLOYMENTS {
        leaks::check(deployment, &node.in_system(&["logs", &format!("deployment/{deployment}"), "--tail=-1"]));
    }
    node.uninstall();
    node.plane.kubectl(&["delete", "namespace", &fleet::namespace(&id)]);
}
