//! The Secret watched on a real API server, with TLS and a Role for this one Secret.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use daemon::environment::Environment as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::real::Syncer;

struct Cluster {
    kubectl: String,
    kubeconfig: String,
    namespace: String,
}

impl Cluster {
    fn real() -> Option<Self> {
        let variable = |name| daemon::environment::ProcessEnvironment.text(name).unwrap();
        let (Some(kubeconfig), Some(kubectl)) = (variable("REAL_KUBECONFIG"), variable("REAL_KUBECTL")) else {
            let notice =
                "not tried on a real API server: run it by `hack/real-parts/with.sh kubernetes -- cargo test …`";
            assert!(variable("CI").as_deref() != Some("true"), "{notice}");
            eprintln!("{notice}");
            return None;
        };
        let cluster = Self { kubectl, kubeconfig, namespace: format!("syncer-{}", std::process::id()) };
        cluster.kubectl(&["create", "namespace", &cluster.namespace]);
        Some(cluster)
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.kubectl);
        let output = command.args(["--kubeconfig", &self.kubeconfig]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn in_namespace(&self, arguments: &[&str]) -> String {
        self.kubectl(&[&["--namespace", &self.namespace], arguments].concat())
    }

    /// The server's address, and files with its authority and with a token that may do no more than the Role says.
    fn access(&self, folder: &Path) -> String {
        self.in_namespace(&["create", "serviceaccount", "syncer"]);
        let verbs = ["--verb=list,watch", "--resource=secrets", "--resource-name=global-pull-secret"];
        self.in_namespace(&[&["create", "role", "syncer"], &verbs[..]].concat());
        let subject = format!("--serviceaccount={}:syncer", self.namespace);
        self.in_namespace(&["create", "rolebinding", "syncer", "--role=syncer", &subject]);
        let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        daemon::file::replace(&folder.join("request.json"), request.to_string().as_bytes()).unwrap();
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/syncer/token", self.namespace);
        let request = folder.join("request.json");
        let answer = self.kubectl(&["create", "--raw", &path, "--filename", request.to_str().unwrap()]);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let token = answer["status"]["token"].as_str().unwrap();
        daemon::file::replace(&folder.join("token"), token.as_bytes()).unwrap();
        let config: Value = serde_json::from_str(&self.kubectl(&["config", "view", "--raw", "-o", "json"])).unwrap();
        let cluster = &config["clusters"][0]["cluster"];
        let authority = STANDARD.decode(cluster["certificate-authority-data"].as_str().unwrap()).unwrap();
        daemon::file::replace(&folder.join("ca.crt"), &authority).unwrap();
        cluster["server"].as_str().unwrap().to_owned()
    }

    fn sync(&self, folder: &Path, server: &str) -> Syncer {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sync-global-pullsecret"));
        command.args(["--restart-policy", "never", "--api-server", server]);
        command.args(["--secret", &format!("{}/global-pull-secret", self.namespace)]);
        for (flag, file) in [("kubelet-file", "config.json"), ("api-authority", "ca.crt"), ("api-token", "token")] {
            command.arg(format!("--{flag}")).arg(folder.join(file));
        }
        Syncer::start(command)
    }

    fn publish(&self, folder: &Path, registry: &str) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": { "name": "global-pull-secret" },
            "stringData": { ".dockerconfigjson": document(registry), "revision": registry },
        });
        let path = folder.join("secret.json");
        daemon::file::replace(&path, secret.to_string().as_bytes()).unwrap();
        self.in_namespace(&["apply", "--filename", path.to_str().unwrap()]);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let mut command = Command::new(&self.kubectl);
        command.args(["--kubeconfig", &self.kubeconfig, "delete", "namespace", &self.namespace, "--wait=false"]);
        let _too_late_to_care = command.output();
    }
}

fn document(registry: &str) -> String {
    format!(r#"{{"auths":{{"{registry}":{{"auth":"YTph"}}}}}}"#)
}

#[test]
fn a_secret_is_watched_with_a_role_for_no_other() {
    let Some(cluster) = Cluster::real() else { return };
    let folder = TempDir::new().unwrap();
    let server = cluster.access(folder.path());
    let file = folder.path().join("config.json");
    let mut syncer = cluster.sync(folder.path(), &server);
    syncer.until("SourceMissing");
    for registry in ["a.io", "b.io"] {
        cluster.publish(folder.path(), registry);
        syncer.until_line("is replaced");
        syncer.until("Applied");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), document(registry));
    }
    cluster.in_namespace(&["delete", "secret", "global-pull-secret"]);
    syncer.until("SourceMissing");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), document("b.io"));
    cluster.publish(folder.path(), "c.io");
    syncer.until_line("is replaced");
    syncer.until("Applied");
    // Without the Role the reason is logged, and the applied credentials stay.
    assert!(syncer.terminate().success());
    cluster.in_namespace(&["delete", "rolebinding", "syncer"]);
    let mut syncer = cluster.sync(folder.path(), &server);
    syncer.until_line("may not list and watch the Secret (403)");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), document("c.io"));
}
