//! The Global Pull Secret controller on a real node, installed by the guide's commands: its Pod and the node agent's are of the
//! images that `hack/image-archives.sh` assembles. One API server is the management cluster and the hosted one.

use serde_json::{Value, json};
use testkit::api_server::until;
use testkit::leaks;

use super::commands;
use super::node::{Node, assert_is_restricted};

const DEPLOYMENT: &str = "deployment/global-pull-secret";

pub(super) struct Controller {
    pub(super) node: Node,
    /// That of the hosted control plane.
    pub(super) namespace: String,
}

impl Controller {
    /// Installs it by the guide, with this original pull secret.
    pub(super) fn install(node: Node, namespace: String, original: &str) -> Self {
        let tag = node.load_image("global-pull-secret");
        assert_eq!(node.load_image("sync-global-pullsecret"), tag);
        node.plane.kubectl(&["create", "namespace", &namespace]);
        node.plane.kubectl(&["label", "namespace", &namespace, "pod-security.kubernetes.io/enforce=restricted"]);
        let controller = Self { node, namespace };
        controller.install_part(0, &tag);
        controller.apply_original(original);
        controller.create_kubeconfig();
        controller.install_part(1, &tag);
        controller.kubectl(&["rollout", "status", DEPLOYMENT, "--timeout=10m"]);
        controller
    }

    /// Writes the pull secret of the hosted control plane.
    pub(super) fn apply_original(&self, document: &str) {
        self.apply_secret(&self.namespace, "pull-secret", document);
    }

    /// Writes the hosted cluster's additional pull secret, and waits until the node has it.
    pub(super) async fn add(&self, document: &str) {
        self.apply_secret("kube-system", "additional-pull-secret", document);
        self.shows("RolledOut=True (RolledOut): 1/1 nodes have the content").await;
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.node.plane.kubectl(&[&["--namespace", &self.namespace], arguments].concat())
    }

    fn in_hosted(&self, arguments: &[&str]) -> String {
        self.node.plane.kubectl(&[&["--namespace", "kube-system"], arguments].concat())
    }

    fn apply_secret(&self, namespace: &str, name: &str, document: &str) {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
            "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": document},
        });
        let file = self.node.plane.folder().join("secret.yaml");
        daemon::file::replace(&file, object.to_string().as_bytes()).unwrap();
        self.node.plane.kubectl(&["apply", "--filename", file.to_str().unwrap()]);
    }

    /// Makes the Secret with a kubeconfig by which a Pod acts in the hosted cluster as the controller's ServiceAccount there.
    fn create_kubeconfig(&self) {
        let config = self.node.plane.kubectl(&["config", "view", "--raw", "--flatten", "--output", "json"]);
        let mut config: Value = serde_json::from_str(&config).unwrap();
        config["clusters"][0]["cluster"]["server"] = json!("https://10.96.0.1:443");
        let token = self.in_hosted(&["create", "token", "global-pull-secret"]);
        config["users"][0]["user"] = json!({"token": token.trim()});
        let file = self.node.plane.folder().join("hosted");
        daemon::file::replace(&file, config.to_string().as_bytes()).unwrap();
        let from = format!("--from-file=kubeconfig={}", file.display());
        self.kubectl(&["create", "secret", "generic", "global-pull-secret-hosted-kubeconfig", &from]);
    }

    /// Runs one of the guide's two installations, in this namespace and with these images.
    fn install_part(&self, part: usize, tag: &str) {
        let values = json!({
            "image": {"tag": tag}, "syncerImage": {"tag": tag},
            // OpenShift's own class is not there.
            "settings": {"syncer": {"priority_class": "system-node-critical"}},
        });
        let file = self.node.plane.folder().join("controller.yaml");
        daemon::file::replace(&file, values.to_string().as_bytes()).unwrap();
        let guide = commands("The Global Pull Secret controller").replace("clusters-example", &self.namespace);
        let command = format!("{} --values controller.yaml", guide.lines().nth(part).unwrap());
        self.node.plane.bash(&self.node.helm, &command);
    }

    /// The registries of the merged Secret; none while there is none.
    fn merged(&self) -> Vec<String> {
        let template = r#"go-template={{index .data ".dockerconfigjson" | base64decode}}"#;
        let text = self.in_hosted(&["get", "secret", "global-pull-secret", "--ignore-not-found", "--output", template]);
        let document: Value = serde_json::from_str(&text).unwrap_or_default();
        document["auths"].as_object().into_iter().flat_map(|auths| auths.keys().cloned()).collect()
    }

    async fn shows(&self, line: &str) {
        let ask = ["get", "configmap", "global-pull-secret-status", "--ignore-not-found", "--output"];
        until(line, async || {
            self.in_hosted(&[&ask[..], &["jsonpath={.data.summary}"]].concat()).contains(line).then_some(())
        })
        .await;
    }

    /// Removes the additional pull secret, and then the installation.
    pub(super) async fn remove(&self) {
        self.in_hosted(&["delete", "secret", "additional-pull-secret"]);
        until("everything is removed", async || {
            let left = ["get", "daemonset,secret,configmap", "--output", "name"];
            (!self.in_hosted(&left).contains("/global-pull-secret")).then_some(())
        })
        .await;
        leaks::check("the controller's log", &self.log());
        let release = "helm uninstall global-pull-secret --wait --namespace";
        self.node.plane.bash(&self.node.helm, &format!("{release} {}\n{release} kube-system\n", self.namespace));
        self.node.plane.kubectl(&["delete", "namespace", &self.namespace]);
    }

    pub(super) fn log(&self) -> String {
        self.kubectl(&["logs", DEPLOYMENT])
    }
}

fn document(registry: &str) -> String {
    leaks::documents()[0].1.replace("quay.io", registry)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_assembled_image_of_the_controller_merges_on_a_real_node() {
    let Some(node) = Node::here().await else { return };
    let namespace = format!("clusters-image-{}", std::process::id());
    let controller = Controller::install(node, namespace, &document("original.example.com"));
    let pods = controller.node.pods(&controller.namespace);
    assert_eq!(pods.len(), 1, "{pods:#?}");
    assert_is_restricted(&pods[0]);
    controller.add(&document("additional.example.com")).await;
    assert_eq!(controller.merged(), ["additional.example.com", "original.example.com"]);
    controller.remove().await;
}
