//! A Kubernetes control plane for one test, which ends with it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tempfile::TempDir;
use testkit::environment::{missing, variable};

use crate::helm::{Helm, ROOT, text};

/// Kinds that servers and controllers make by themselves.
const PASSING: [&str; 8] = [
    "apiservices.apiregistration.k8s.io",
    "componentstatuses",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "events",
    "events.events.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "leases.coordination.k8s.io",
];

pub(crate) struct Plane {
    /// The instance that ends with the test; `None` if others use the control plane too.
    name: Option<String>,
    kubeconfig: String,
    kubectl: String,
    folder: TempDir,
}

impl Plane {
    /// `None`, with a line that gives the reason, where there are no real parts; in CI that is a failure.
    pub(crate) fn start() -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        if variable("REAL_KUBECTL").is_none() {
            return missing("REAL_KUBECTL is not set: no real API server; `make real-parts` starts one");
        }
        let name = format!("install-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let output = script("up", &name);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let exports = text(&output.stdout);
        let exported = |name: &str| {
            let line = exports.lines().find_map(|line| line.strip_prefix(&format!("export {name}=")));
            line.unwrap_or_else(|| panic!("no {name}: {exports}")).to_owned()
        };
        let (kubeconfig, kubectl) = (exported("REAL_KUBECONFIG"), exported("REAL_KUBECTL"));
        Some(Self { name: Some(name), kubeconfig, kubectl, folder: tempfile::tempdir().unwrap() })
    }

    /// The control plane of the real node.
    pub(crate) fn of_node(kubeconfig: String, kubectl: String) -> Self {
        Self { name: None, kubeconfig, kubectl, folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        Path::new(&self.kubeconfig)
    }

    /// Runs kubectl; it must succeed and warn of nothing.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.try_kubectl(arguments);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && stderr.is_empty(), "kubectl {arguments:?}: {stdout}\n{stderr}");
        stdout
    }

    pub(crate) fn try_kubectl(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.kubectl);
        command.args(["--kubeconfig", &self.kubeconfig, "--cache-dir"]).arg(self.folder().join("cache"));
        command.args(arguments).output().unwrap()
    }

    /// Runs a script as the reader of the guide does: in a checkout, with helm and kubectl.
    pub(crate) fn bash(&self, helm: &Helm, commands: &str) -> String {
        let tools = self.folder().join("tools");
        if !tools.exists() {
            std::fs::create_dir(&tools).unwrap();
            std::os::unix::fs::symlink(&helm.program, tools.join("helm")).unwrap();
            std::os::unix::fs::symlink(&self.kubectl, tools.join("kubectl")).unwrap();
            for name in ["charts", "deploy"] {
                std::os::unix::fs::symlink(Path::new(ROOT).join(name), self.folder().join(name)).unwrap();
            }
        }
        let mut command = Command::new("bash");
        command.args(["-euc", commands]).current_dir(self.folder()).env_clear().stdin(Stdio::null());
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", tools.display()));
        command.env("HOME", self.folder()).env("KUBECONFIG", &self.kubeconfig).env("no_proxy", "*");
        let output = command.output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success(), "{commands}\n{said}");
        said
    }

    /// Asserts that there is no object beside those of before, and those that a control plane makes for itself as it starts.
    pub(crate) fn assert_nothing_is_left(&self, before: &BTreeSet<String>) {
        let made_at_start = [" kube-", " default/", "system:"];
        let is_of_system = |object: &&String| made_at_start.iter().any(|part| object.contains(part));
        let is_ours = |object: &&String| object.contains("pull-secret") || !is_of_system(object);
        let now = self.objects();
        let left: Vec<&String> = now.difference(before).filter(is_ours).collect();
        assert!(left.is_empty(), "{left:#?}");
    }

    /// All objects, each as `VERSION KIND NAMESPACE/NAME`.
    pub(crate) fn objects(&self) -> BTreeSet<String> {
        let kinds = self.kubectl(&["api-resources", "--verbs=list", "--output", "name"]);
        let kinds: Vec<&str> = kinds.lines().filter(|kind| !PASSING.contains(kind)).collect();
        let template = "jsonpath={range .items[*]}{.apiVersion}{\" \"}{.kind}{\" \"}{.metadata.namespace}{\"/\"}{.metadata.name}{\"\\n\"}{end}";
        let all =
            self.kubectl(&["get", &kinds.join(","), "--all-namespaces", "--ignore-not-found", "--output", template]);
        all.lines().map(str::to_owned).collect()
    }

    /// Gives the control plane the custom resources that the charts use; false where there are none.
    pub(crate) fn has_crds(&self) -> bool {
        let folder = variable("REAL_CRDS").or_else(|| {
            missing("REAL_CRDS is not set: no custom resources; `hack/real-parts/tools.sh get crds` gets them")
        });
        let Some(folder) = folder else { return false };
        self.kubectl(&["apply", "--server-side", "-f", &folder]);
        self.kubectl(&["wait", "--for=condition=Established", "--timeout=2m", "customresourcedefinitions", "--all"]);
        true
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        let Some(name) = &self.name else { return };
        let output = script("down", name);
        assert!(std::thread::panicking() || output.status.success(), "{}", text(&output.stderr));
    }
}

fn script(command: &str, name: &str) -> Output {
    let script = Path::new(ROOT).join("hack/real-parts/kubernetes.sh");
    Command::new(script).args([command, name]).env_remove("REAL_KUBECONFIG").stdin(Stdio::null()).output().unwrap()
}

/// Asserts that an object has everything that is meant; what it has besides must come from before.
pub(crate) fn assert_covers(place: &str, present: &Value, meant: &Value) {
    match (present, meant) {
        (Value::Object(present), Value::Object(meant)) => {
            for (name, meant) in meant {
                assert_covers(&format!("{place}.{name}"), present.get(name).unwrap_or(&Value::Null), meant);
            }
        }
        (Value::Array(present), Value::Array(meant)) => {
            assert_eq!(present.len(), meant.len(), "{place}: {present:?} instead of {meant:?}");
            for (index, (present, meant)) in present.iter().zip(meant).enumerate() {
                assert_covers(&format!("{place}[{index}]"), present, meant);
            }
        }
        _ => assert_eq!(present, meant, "{place}"),
    }
}
