//! The current kubelet, with the guide's configuration: it pulls from a real registry with a password that came from the Quay emulator.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use emulators::quay::{Operation, Settings};
use emulators::real_registry::{Login, RealRegistry};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::environment::{absent, missing, variable};
use testkit::quay::Server;
use testkit::registry;
use tokio::sync::{Mutex, MutexGuard};

use crate::federation::bind;
use crate::guide::example;
use crate::rig::{ANNOTATION, PROGRAM};

/// Folder of the program and its configuration on the node.
const FOLDER: &str = "/var/lib/kubelet/keyless";
/// The names of the guide's two modes.
const NAMES: [&str; 2] = ["keyless-credential-provider", "keyless-node-credential-provider"];
const DROP_IN: &str = "run/systemd/system/kubelet.service.d/keyless.conf";
/// The issuer of the node's cluster.
const ISSUER: &str = "https://kubernetes.default.svc";
/// The audience of the guide.
const AUDIENCE: &str = "quay.io";
/// Time for a pull, on a busy machine.
const PULL: Duration = Duration::from_mins(3);

/// The node has one test at a time.
static NODE: Mutex<()> = Mutex::const_new(());

struct Node {
    kubeconfig: String,
    kubectl: String,
    root: PathBuf,
    enter: String,
    script: String,
    instance: String,
    namespace: String,
    folder: TempDir,
    _alone: MutexGuard<'static, ()>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Node {
    /// `None`, with a line that says why, where there is none.
    async fn here() -> Option<Self> {
        if let Some(why) = variable("REAL_NODE_ABSENT") {
            return absent("a complete node", &why);
        }
        let part = |name: &str| {
            variable(name).or_else(|| missing(&format!("{name} is not set; `make real-parts` starts what it names")))
        };
        let mut node = Self {
            kubeconfig: part("REAL_NODE_KUBECONFIG")?,
            kubectl: part("REAL_NODE_KUBECTL")?,
            root: PathBuf::new(),
            enter: part("REAL_NODE_ENTER")?,
            script: part("REAL_NODE_SCRIPT")?,
            instance: part("REAL_NODE_INSTANCE")?,
            namespace: format!("keyless-{}", std::process::id()),
            folder: tempfile::tempdir().unwrap(),
            _alone: NODE.lock().await,
        };
        // Another test may have started it again, which changes its root.
        let exports = node.script("up", &[]);
        let root = exports.lines().find_map(|line| line.strip_prefix("export REAL_NODE_ROOT="));
        node.root = root.unwrap().into();
        Some(node)
    }

    fn script(&self, command: &str, arguments: &[&str]) -> String {
        let mut script = Command::new(&self.script);
        succeeded(script.args([command, &self.instance]).args(arguments))
    }

    fn command(&self, arguments: &[&str]) -> Output {
        let cache = self.folder.path().join("kubectl");
        let mut command = Command::new(&self.kubectl);
        command.args(["--kubeconfig", &self.kubeconfig, "--cache-dir"]).arg(cache).args(arguments).output().unwrap()
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn apply(&self, object: &Value) {
        let file = self.folder.path().join("object.json");
        daemon::file::replace(&file, object.to_string().as_bytes()).unwrap();
        self.kubectl(&["apply", "--filename", file.to_str().unwrap()]);
    }

    fn in_node(&self, arguments: &[&str]) {
        succeeded(Command::new(&self.enter).args(arguments));
    }

    fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    fn write(&self, absolute: &str, content: &str) {
        let path = self.path(absolute);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        daemon::file::replace(&path, content.as_bytes()).unwrap();
    }

    /// Puts the program and the guide's configuration on the node, and starts the kubelet with them.
    fn install(&self, registry: &str, federation: &str) {
        let folder = self.path(FOLDER);
        fs::create_dir_all(&folder).unwrap();
        let [program, link] = NAMES.map(|name| folder.join(name));
        fs::copy(PROGRAM, &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let _left_behind = fs::remove_file(&link);
        symlink(NAMES[0], link).unwrap();
        let mut config = example("CredentialProviderConfig");
        for provider in config["providers"].as_array_mut().unwrap() {
            let images = provider["matchImages"][0].as_str().unwrap().replace("quay.io/my-org", registry);
            provider["matchImages"] = json!([images.replace("/shared", "/hyperfleet/shared")]);
            let arguments = provider["args"].as_array_mut().unwrap();
            assert_eq!(arguments[..2], ["--registry", "quay.io"]);
            arguments[1] = registry.into();
            arguments.extend(["--federation-url".into(), federation.into()]);
            for argument in arguments.iter_mut().filter(|argument| *argument == "my-org+nodes") {
                *argument = "hyperfleet+nodes".into();
            }
        }
        self.write(&format!("{FOLDER}/config.yaml"), &config.to_string());
        self.write(
            DROP_IN,
            &format!(
                "[Service]\nEnvironment=\"KUBELET_EXTRA_ARGS=--image-credential-provider-config={FOLDER}/config.yaml \
                 --image-credential-provider-bin-dir={FOLDER}\"\n"
            ),
        );
        self.restart();
    }

    fn restart(&self) {
        self.in_node(&["systemctl", "daemon-reload"]);
        // Its unit is ready when it has started.
        self.in_node(&["systemctl", "restart", "kubelet"]);
    }

    /// Makes a service account, from the guide's, and a Pod of it that pulls an image.
    fn run_pod(&self, account: &str, robot: Option<&str>, image: &str) {
        let mut object = example("ServiceAccount");
        object["metadata"]["name"] = account.into();
        object["metadata"]["namespace"] = self.namespace.as_str().into();
        assert!(object["metadata"]["annotations"][ANNOTATION].is_string());
        object["metadata"]["annotations"] = robot.map_or(json!({}), |robot| json!({ANNOTATION: robot}));
        self.apply(&object);
        self.apply(&json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": account, "namespace": self.namespace},
            "spec": {
                "serviceAccountName": account, "automountServiceAccountToken": false, "restartPolicy": "Never",
                "containers": [{"name": "c", "image": image, "imagePullPolicy": "Always", "command": ["/none"]}],
            },
        }));
    }

    /// The message of a Pod's container, once it has one.
    fn message(&self, pod: &str, state: &str) -> String {
        let path = format!("{{.status.containerStatuses[0].state.{state}.message}}");
        let pod = format!("pod/{pod}");
        let wait = ["wait", &pod, "--namespace", &self.namespace, "--timeout=3m", &format!("--for=jsonpath={path}")];
        self.kubectl(&wait);
        self.kubectl(&["get", &pod, "--namespace", &self.namespace, &format!("--output=jsonpath={path}")])
    }

    fn kubelet_log(&self) -> String {
        text(&fs::read(self.path("/var/log/kubelet.log")).unwrap())
    }
}

impl Drop for Node {
    /// Restores the node, so that the test can be repeated.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let lines = self.kubelet_log();
            let lines: Vec<_> = lines.lines().filter(|line| line.contains("redential")).collect();
            eprintln!("{}", lines[lines.len().saturating_sub(20)..].join("\n"));
            eprintln!("{}", text(&self.command(&["get", "pods,events", "--namespace", &self.namespace]).stdout));
        }
        let _may_be_gone = self.command(&["delete", "namespace", &self.namespace, "--wait=false"]);
        for kind in ["clusterrole", "clusterrolebinding"] {
            let _may_be_gone = self.command(&["delete", kind, "keyless-pulls", "--ignore-not-found"]);
        }
        if fs::remove_file(self.path(DROP_IN)).is_ok() {
            self.restart();
        }
    }
}

#[track_caller]
fn succeeded(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Quay, which knows the keys of the node's cluster, and a registry that takes its tokens.
struct Registry {
    quay: Server,
    registry: RealRegistry,
}

impl Registry {
    async fn start(node: &Node) -> Option<Self> {
        let keys = serde_json::from_str(&node.kubectl(&["get", "--raw", "/openid/v1/jwks"])).unwrap();
        let repositories = ["release".to_owned(), "shared".to_owned()].into();
        let settings = Settings { issuers: [(ISSUER.to_owned(), keys)].into(), repositories, ..Settings::default() };
        let quay = Server::start(settings).await;
        let registry = registry::start(&quay.quay).await?;
        for repository in ["release", "shared"] {
            let pusher = format!("pusher-{repository}");
            let password = quay.quay.add_pusher(&pusher, repository);
            let login = Login { user: &format!("hyperfleet+{pusher}"), password: &password };
            registry.push(&login, &format!("hyperfleet/{repository}:v1")).await.unwrap();
        }
        for (robot, repository) in [("puller", "release"), ("nodes", "shared")] {
            quay.robot(robot).await;
            quay.permit(robot, repository, "read").await;
        }
        Some(Self { quay, registry })
    }

    /// Waits until a robot has pulled a repository with the node's containerd.
    async fn pulled(&self, robot: &str, repository: &str) {
        let is_it = |pull: &emulators::quay::Pull| pull.robot == robot && pull.repository == repository;
        let waiting = async {
            loop {
                let pulls = self.quay.quay.pulls();
                if let Some(pull) = pulls.iter().find(|pull| is_it(pull)) {
                    assert!(pull.agent.starts_with("containerd/"), "{pull:?}");
                    return;
                }
                self.quay.quay.wait_for_pulls(pulls.len() + 1).await;
            }
        };
        let waited = tokio::time::timeout(PULL, waiting).await;
        waited.unwrap_or_else(|_elapsed| panic!("{robot} has not pulled: {:?}", self.quay.quay.calls()));
    }

    fn image(&self, repository: &str) -> String {
        format!("{}/hyperfleet/{repository}:v1", self.registry.address())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_pulls_without_a_pull_secret_and_only_for_the_service_accounts_that_are_bound() {
    let Some(node) = Node::here().await else { return };
    let Some(registry) = Registry::start(&node).await else { return };
    let (quay, address) = (registry.quay.quay.address().to_string(), registry.registry.address().to_string());
    for port in [&quay, &address] {
        node.script("forward", &["IN_NODE", port, port]);
    }
    let subject = |account: &str| format!("system:serviceaccount:{}:{account}", node.namespace);
    let (puller, plain) = (subject("puller"), subject("plain"));
    bind(&registry.quay, "puller", &[(ISSUER, &puller)]).await;
    bind(&registry.quay, "nodes", &[(ISSUER, &plain)]).await;
    node.kubectl(&["create", "namespace", &node.namespace]);
    node.install(&address, &format!("http://{quay}/oauth2/federation/robot/token"));

    // The annotation's robot, for the service account that it is bound to.
    node.run_pod("puller", Some("hyperfleet+puller"), &registry.image("release"));
    registry.pulled("hyperfleet+puller", "release").await;
    let started = node.message("puller", "terminated");
    assert!(started.contains("/none"), "the image has no program to start: {started}");

    // Another service account names the same robot.
    let before = registry.quay.quay.pulls().len();
    node.run_pod("other", Some("hyperfleet+puller"), &registry.image("release"));
    let refused = node.message("other", "waiting");
    assert!(refused.contains("authorization failed"), "{refused}");
    assert_eq!(registry.quay.quay.pulls().len(), before);
    let outcomes = registry.quay.outcomes(Operation::ExchangeToken);
    assert!(outcomes.contains(&Some(200)) && outcomes.contains(&Some(400)), "{outcomes:?}");
    let expected = format!(
        "the registry refused to exchange the service account's token for a password of hyperfleet+puller (status 400): its federation \
         needs issuer '{ISSUER}' and subject '{}'",
        subject("other")
    );
    let log = node.kubelet_log();
    assert!(log.contains(&expected), "{expected}");

    // One robot for service accounts without the annotation, by the other name.
    node.run_pod("plain", None, &registry.image("shared"));
    registry.pulled("hyperfleet+nodes", "shared").await;
    // A token begins with `{"alg":` in base64.
    assert!(!node.kubelet_log().contains("eyJhbGciOi"), "the kubelet's log has a token");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubelet_may_ask_for_the_audience_only_with_the_guides_grant() {
    let Some(mut node) = Node::here().await else { return };
    node.namespace += "-grant";
    node.kubectl(&["create", "namespace", &node.namespace]);
    node.run_pod("puller", None, "localhost/busybox:1");
    let placed = ["wait", "pod/puller", "--namespace", &node.namespace, "--timeout=3m"];
    node.kubectl(&[&placed, &["--for=jsonpath={.spec.nodeName}=localhost"][..]].concat());
    let uid = ["get", "pod/puller", "--namespace", &node.namespace, "--output=jsonpath={.metadata.uid}"];
    let uid = node.kubectl(&uid);
    // What a kubelet may do anyway; the node's own one is an administrator here.
    let binding = format!("{}-nodes", node.namespace);
    node.kubectl(&["create", "clusterrolebinding", &binding, "--clusterrole=system:node", "--group=system:nodes"]);
    let as_kubelet = |audience: &str| {
        let token = ["create", "token", "puller", "--namespace", &node.namespace, "--audience", audience];
        let bound = ["--bound-object-kind=Pod", "--bound-object-name=puller", "--bound-object-uid", &uid];
        let user = ["--as=system:node:localhost", "--as-group=system:nodes", "--as-group=system:authenticated"];
        node.command(&[&token[..], &bound, &user].concat())
    };
    let refused = as_kubelet(AUDIENCE);
    let message = text(&refused.stderr);
    assert!(
        !refused.status.success() && message.contains("not authorized to request tokens for audience \"quay.io\""),
        "{message}"
    );
    node.apply(&example("ClusterRole"));
    node.apply(&example("ClusterRoleBinding"));
    let granted = as_kubelet(AUDIENCE);
    let other = as_kubelet("other.example.com");
    node.kubectl(&["delete", "clusterrolebinding", &binding]);
    assert!(granted.status.success(), "{}", text(&granted.stderr));
    assert!(!other.status.success());
}
