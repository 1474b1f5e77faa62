//! The node that `hack/real-parts/node.sh` has started, and the controller's process beside it.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tempfile::TempDir;
use testkit::environment::{absent, missing, variable};
use tokio::sync::{Mutex, MutexGuard};

use crate::cluster::{ADDITIONAL, SYSTEM};

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The node has one test at a time.
static NODE: Mutex<()> = Mutex::const_new(());

pub(crate) struct Machine {
    pub(crate) registry: String,
    pub(crate) user: String,
    pub(crate) password: String,
    /// An image in the registry that the node does not have.
    pub(crate) image: String,
    /// Another one, of which the node's kubelet has no record either.
    pub(crate) other_image: String,
    /// The control plane's, where the Pods are too.
    pub(crate) namespace: String,
    kubeconfig: String,
    kubectl: String,
    root: PathBuf,
    syncer_image: String,
    script: String,
    instance: String,
    folder: TempDir,
    _alone: MutexGuard<'static, ()>,
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Machine {
    /// The node, with the syncer's image on it; `None`, with a line that says why, where there is none.
    pub(crate) async fn here() -> Option<Self> {
        if let Some(why) = variable("REAL_NODE_ABSENT") {
            return absent("a complete node", &why);
        }
        let Some(kubeconfig) = variable("REAL_NODE_KUBECONFIG") else {
            return missing("REAL_NODE_KUBECONFIG is not set: no real node; `make real-parts` starts one");
        };
        let reported =
            |name: &str| variable(name).unwrap_or_else(|| panic!("{name} is not set; see hack/real-parts/node.sh"));
        let alone = NODE.lock().await;
        let mut machine = Self {
            registry: reported("REAL_NODE_REGISTRY"),
            user: reported("REAL_NODE_REGISTRY_USER"),
            password: reported("REAL_NODE_REGISTRY_PASSWORD"),
            image: reported("REAL_NODE_IMAGE"),
            other_image: reported("REAL_NODE_OTHER_IMAGE"),
            namespace: format!("clusters-node-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)),
            kubeconfig,
            kubectl: reported("REAL_NODE_KUBECTL"),
            root: PathBuf::new(),
            syncer_image: format!("localhost/sync-global-pullsecret:{}", std::process::id()),
            script: reported("REAL_NODE_SCRIPT"),
            instance: reported("REAL_NODE_INSTANCE"),
            folder: tempfile::tempdir().unwrap(),
            _alone: alone,
        };
        machine.root = machine.run_script("up");
        machine.import_syncer();
        Some(machine)
    }

    /// Cuts the node's power and starts it again; the control plane goes on.
    pub(crate) fn reboot(&mut self) {
        self.root = self.run_script("reboot");
    }

    /// Runs a command of the node's script; returns the node's root, which changes with a reboot.
    fn run_script(&self, command: &str) -> PathBuf {
        let output = Command::new(&self.script).args([command, &self.instance]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let exports = text(&output);
        PathBuf::from(exports.lines().find_map(|line| line.strip_prefix("export REAL_NODE_ROOT=")).unwrap())
    }

    /// Assembles the image of the syncer that was built with this test, and gives it to the node.
    fn import_syncer(&self) {
        let built = Path::new(env!("CARGO_BIN_EXE_global-pull-secret")).parent().unwrap();
        let missing = "sync-global-pullsecret is not beside global-pull-secret in the target folder; build it first with \
                       `cargo build -p sync-global-pullsecret`, or run `cargo test --workspace`";
        assert!(built.join("sync-global-pullsecret").is_file(), "{missing}");
        let (_, tag) = self.syncer_image.rsplit_once(':').unwrap();
        let mut assemble = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../hack/image-archives.sh"));
        assemble.arg(built).arg(self.folder.path()).args([tag, "sync-global-pullsecret"]);
        let archive = self.folder.path().join("sync-global-pullsecret.tar");
        let mut load = Command::new(&self.script);
        for command in [assemble.env("IMAGE_REGISTRY", "localhost"), load.args(["load", &self.instance]).arg(archive)] {
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }

    fn command(&self, message: &[&str]) -> Output {
        let cache = self.folder.path().join("kubectl");
        let mut command = Command::new(&self.kubectl);
        command.args(["--kubeconfig", &self.kubeconfig, "--cache-dir"]).arg(cache).args(message).output().unwrap()
    }

    /// The output of kubectl, which must succeed.
    pub(crate) fn kubectl(&self, message: &[&str]) -> String {
        let output = self.command(message);
        assert!(output.status.success(), "{message:?}: {}", String::from_utf8_lossy(&output.stderr));
        text(&output)
    }

    pub(crate) fn in_namespace(&self, message: &[&str]) -> String {
        self.kubectl(&[message, &["--namespace", &self.namespace]].concat())
    }

    /// The output of a command line of a guide, as its reader runs it: both programs on PATH, the kubeconfig in the environment.
    pub(crate) fn run_line(&self, line: &str) -> String {
        let tools = self.folder.path().join("tools");
        fs::create_dir_all(&tools).unwrap();
        for (name, program) in [("kubectl", self.kubectl.as_ref()), ("global-pull-secret", PROGRAM)] {
            let link = tools.join(name);
            if !link.exists() {
                std::os::unix::fs::symlink(program, link).unwrap();
            }
        }
        let mut command = Command::new("bash");
        command.args(["-c", line]).env("KUBECONFIG", &self.kubeconfig).env("HOME", self.folder.path());
        let output = command.env("PATH", format!("{}:/usr/bin:/bin", tools.display())).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        text(&output)
    }

    /// `kubectl apply` of a file with the object.
    pub(crate) fn apply(&self, object: &Value) -> Result<String, String> {
        let file = self.folder.path().join("object.yaml");
        daemon::file::replace(&file, object.to_string().as_bytes()).unwrap();
        let output = self.command(&["apply", "-f", file.to_str().unwrap()]);
        if output.status.success() { Ok(text(&output)) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
    }

    pub(crate) fn syncer_image(&self) -> &str {
        &self.syncer_image
    }

    /// The mounts that the syncer of the DaemonSet sees; empty if none runs.
    pub(crate) fn syncer_mounts() -> String {
        let of_process = |folder: PathBuf| {
            let command = fs::read_to_string(folder.join("cmdline")).ok()?;
            let is_syncer = command.contains("sync-global-pullsecret") && command.contains("--confirm-in");
            // The process may have ended meanwhile.
            if is_syncer { fs::read_to_string(folder.join("mountinfo")).ok() } else { None }
        };
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes.filter_map(|process| of_process(process.path())).collect()
    }

    fn of_kubelet(&self, name: &str) -> PathBuf {
        self.root.join("var/lib/kubelet").join(name)
    }

    /// The kubelet's credentials; only root may read them.
    pub(crate) fn kubelet_file(&self) -> Value {
        let file = self.of_kubelet("config.json");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
        serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
    }

    pub(crate) fn write_kubelet_file(&self, text: &str) {
        let file = self.of_kubelet("config.json");
        daemon::file::replace(&file, text.as_bytes()).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// The minor version of the kubelet, such as 37.
    pub(crate) fn kubelet_minor(&self) -> u32 {
        let version = self.kubectl(&["get", "nodes", "-o", "jsonpath={.items[0].status.nodeInfo.kubeletVersion}"]);
        version.split('.').nth(1).unwrap().parse().unwrap()
    }

    /// Number of starts of the kubelet.
    pub(crate) fn kubelet_starts(&self) -> usize {
        fs::read_to_string(self.of_kubelet("starts")).unwrap().lines().count()
    }

    /// Diagnostics for a failure.
    fn describe(&self) {
        for message in [
            ["get", "pods,events", "--all-namespaces"],
            ["logs", "--selector=name=global-pull-secret-syncer", "--namespace=kube-system"],
        ] {
            let output = self.command(&message);
            eprintln!("{message:?}:\n{}{}", text(&output), String::from_utf8_lossy(&output.stderr));
        }
    }
}

impl Drop for Machine {
    /// Restores the node, so that the test can be repeated.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.describe();
        }
        let _may_be_gone = self.command(&["delete", "secret", ADDITIONAL, "-n", SYSTEM, "--ignore-not-found"]);
        let _too_late_to_care = self.command(&["delete", "namespace", &self.namespace, "--wait=false"]);
    }
}

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_global-pull-secret");

/// Ends with its value.
pub(crate) struct Controller {
    child: Child,
    log: PathBuf,
}

impl Controller {
    /// The program as people run it, with one kubeconfig for both sides.
    pub(crate) fn start(machine: &Machine) -> Self {
        let log = machine.folder.path().join("controller.log");
        let output = File::create(&log).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["run", "--kubeconfig", &machine.kubeconfig, "--control-plane-namespace", &machine.namespace]);
        command.args(["--syncer-image", &machine.syncer_image, "--syncer-priority-class", "system-node-critical"]);
        command.args(["--health-port", "0", "--metrics-port", "0"]).stdin(Stdio::null());
        command.stdout(output.try_clone().unwrap()).stderr(output);
        Self { child: command.spawn().unwrap(), log }
    }

    /// Ends it, and gives what it has said.
    pub(crate) fn stop(mut self) -> String {
        assert_eq!(self.child.try_wait().unwrap(), None, "the controller has ended by itself");
        self.child.kill().unwrap();
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the controller:\n{}", fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}
