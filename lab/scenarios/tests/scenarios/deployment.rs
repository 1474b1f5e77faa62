//! The manifests of `deploy/` and `examples/`, as a current API server validates and admits them.

use std::path::Path;
use std::process::{Command, Output};

use testkit::environment::{missing, variable};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");

const JOB: &str = include_str!("../../../../deploy/pull-secret-job.yaml");

const EXAMPLE: &str = include_str!("../../../../examples/additional-pull-secret.yaml");

/// The namespaces that the manifests name and no cluster has from the start.
const NAMESPACES: [&str; 4] = ["hyperfleet-system", "hyperfleet-pull-secret", "clusters-cls-123", "clusters-example"];

/// The kubectl of the real API server, in a folder for its files.
struct Shell {
    kubectl: String,
    kubeconfig: String,
    folder: tempfile::TempDir,
}

impl Shell {
    fn here() -> Option<Self> {
        let part = |name: &str| {
            let missing = || missing(&format!("{name} is not set: no real API server; `make real-parts` starts one"));
            variable(name).or_else(missing)
        };
        let (kubectl, kubeconfig) = (part("REAL_KUBECTL")?, part("REAL_KUBECONFIG")?);
        Some(Self { kubectl, kubeconfig, folder: tempfile::tempdir().unwrap() })
    }

    fn kubectl(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.kubectl);
        command.args(["--kubeconfig", &self.kubeconfig, "--cache-dir"]).arg(self.folder.path().join("cache"));
        command.args(arguments).output().unwrap()
    }

    /// Applies a manifest without effect; the output has the server's refusals and warnings.
    fn dry_run(&self, file: &Path) -> Output {
        self.kubectl(&["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", file.to_str().unwrap()])
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_manifest_is_admitted_under_strict_validation_and_pod_security() {
    let Some(shell) = Shell::here() else { return };
    let mark = std::process::id();
    let here = |text: &str| {
        NAMESPACES.iter().fold(text.to_owned(), |text, name| text.replace(name, &format!("{name}-{mark}")))
    };
    let namespaces: Vec<String> = NAMESPACES.map(here).into();
    for namespace in &namespaces {
        assert!(shell.kubectl(&["create", "namespace", namespace]).status.success());
        // Pods are refused, and workloads with such Pods are warned of.
        let levels = ["pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted"];
        assert!(shell.kubectl(&[&["label", "namespace", namespace], &levels[..]].concat()).status.success());
    }
    let file = shell.folder.path().join("manifest.yaml");
    let manifests =
        std::fs::read_dir(DEPLOY).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    for manifest in manifests.chain([EXAMPLE.to_owned()]) {
        daemon::file::replace(&file, here(&manifest).as_bytes()).unwrap();
        let output = shell.dry_run(&file);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && stderr.is_empty(), "{stdout}\n{stderr}\n{manifest}");
    }
    // Both checks are in force: a field that is unknown, and a Pod that is not restricted.
    let unknown = here(JOB).replace("backoffLimit:", "backOffLimit:");
    daemon::file::replace(&file, unknown.as_bytes()).unwrap();
    assert!(text(&shell.dry_run(&file).stderr).contains("backOffLimit"));
    let privileged = here(JOB).replace("allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true");
    daemon::file::replace(&file, privileged.as_bytes()).unwrap();
    assert!(text(&shell.dry_run(&file).stderr).contains("would violate PodSecurity"));
    for namespace in &namespaces {
        assert!(shell.kubectl(&["delete", "namespace", namespace, "--wait=false"]).status.success());
    }
}
