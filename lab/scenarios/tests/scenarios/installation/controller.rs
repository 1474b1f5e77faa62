//! The Global Pull Secret controller on a real node, installed by the guide's commands: its Pod and the node agent's are of the
//! images that `hack/image-archives.sh` assembles. One API server is the management cluster and the hosted one.

use serde_json::{Value, json};
use testkit::api_server::until;
use testkit::leaks;

use super::commands;
use super::node::{Node, assert_is_restricted};

const DEPLOYMENT: &str = "deployment/global-pull-secret";

struct Controller {
    node: Node,
    /// That of the hosted control plane.
    namespace: String,
}

impl Controller {
    fn kubectl(&self, arguments: &[&str]) -> String {
        self.node.plane.kubectl(&[&["--namespace", &self.namespace], arguments].concat())
    }

    fn in_hosted(&self, arguments: &[&str]) -> String {
        self.node.plane.kubectl(&[&["--namespace", "kube-system"], arguments].concat())
    }

    fn create_secret(&self, namespace: &str, name: &str, registry: &str) {
        let document = leaks::documents()[0].1.replace("quay.io", registry);
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
            "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": document},
        });
        let file = self.node.plane.folder().join("secret.yaml");
        daemon::file::replace(&file, object.to_string().as_bytes()).unwrap();
        self.node.plane.kubectl(&["create", "--filename", file.to_str().unwrap()]);
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
    fn install(&self, part: usize, tag: &str) {
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

    fn uninstall(&self) {
        let release = "helm uninstall global-pull-secret --wait --namespace";
        self.node.plane.bash(&self.node.helm, &format!("{release} {}\n{release} kube-system\n", self.namespace));
        self.node.plane.kubectl(&["delete", "namespace", &self.namespace]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_assembled_image_of_the_controller_merges_on_a_real_node() {
    let Some(node) = Node::here().await else { return };
    let controller = Controller { node, namespace: format!("clusters-image-{}", std::process::id()) };
    let (node, namespace) = (&controller.node, controller.namespace.as_str());
    let tag = node.load_image("global-pull-secret");
    assert_eq!(node.load_image("sync-global-pullsecret"), tag);
    node.plane.kubectl(&["create", "namespace", namespace]);
    node.plane.kubectl(&["label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted"]);
    controller.install(0, &tag);
    controller.create_secret(namespace, "pull-secret", "original.example.com");
    controller.create_kubeconfig();
    controller.install(1, &tag);
    controller.kubectl(&["rollout", "status", DEPLOYMENT, "--timeout=10m"]);
    let pods = node.pods(namespace);
    assert_eq!(pods.len(), 1, "{pods:#?}");
    assert_is_restricted(&pods[0]);

    controller.create_secret("kube-system", "additional-pull-secret", "additional.example.com");
    controller.shows("RolledOut=True (RolledOut): 1/1 nodes have the content").await;
    assert_eq!(controller.merged(), ["additional.example.com", "original.example.com"]);
    controller.in_hosted(&["delete", "secret", "additional-pull-secret"]);
    until("everything is removed", async || {
        let left = ["get", "daemonset,secret,configmap", "--output", "name"];
        (!controller.in_hosted(&left).contains("/global-pull-secret")).then_some(())
    })
    .await;
    leaks::check("the controller's log", &controller.kubectl(&["logs", DEPLOYMENT]));
    controller.uninstall();
}
