//! The whole way on a complete real node: systemd, containerd, kubelet and a registry that wants a password.

mod machine;

use serde_json::{Value, json};

use crate::cluster::{ADDITIONAL, GLOBAL, STATUS, SYNCER, SYSTEM, until};
use crate::rig::encode;
use machine::{Controller, Machine};

/// The node's file before and after: the original alone, with a spelling that shows manual edits.
const ORIGINAL: &str = r#"{ "auths": { "original.example.com": { "auth": "b3JpZ2luYWw6c2VjcmV0" } } }"#;

/// The minor version of Kubernetes since which a kubelet verifies who may use an image that is on its node.
const VERIFIES_IMAGES: u32 = 35;

#[tokio::test(flavor = "multi_thread")]
async fn a_private_image_is_pulled_when_the_additional_secret_is_applied_and_refused_when_it_is_gone() {
    let Some(machine) = Machine::here().await else { return };
    machine.write_kubelet_file(ORIGINAL);
    machine.make_original(ORIGINAL);
    let restarts = machine.kubelet_starts();
    machine.run_pod("waiting", &Pull::ALWAYS).await;
    machine.is_refused("waiting").await;

    let controller = Controller::start(&machine);
    let apply = machine.apply_additional();
    assert_eq!(apply, "secret/additional-pull-secret created\n");
    // The same Pod, without manual intervention.
    machine.succeeds("waiting").await;
    assert_eq!(machine.in_namespace(&["logs", "waiting"]), "pulled\n");
    machine.shows("RolledOut=True (RolledOut): 1/1 nodes have the content").await;
    the_specifications_three_commands(&machine);
    the_documented_commands(&machine);
    the_commands_of_the_admins_guide(&machine);
    assert_eq!(machine.registries_of_kubelet_file(), [machine.registry.as_str(), "original.example.com"]);
    assert_eq!(machine.kubelet_starts(), restarts + 1, "one change is one restart");

    machine.kubectl(&["delete", "secret", ADDITIONAL, "-n", SYSTEM]);
    for object in ["daemonset", "serviceaccount", "role", "rolebinding"] {
        machine.is_gone(object, SYNCER).await;
    }
    machine.is_gone("secret", GLOBAL).await;
    machine.is_gone("configmap", STATUS).await;
    assert_eq!(machine.kubelet_file(), serde_json::from_str::<Value>(ORIGINAL).unwrap());
    assert_eq!(machine.kubelet_starts(), restarts + 2, "coming back is one more");
    machine.run_pod("fresh", &Pull::ALWAYS).await;
    machine.is_refused("fresh").await;
    // The kubelet has recorded that the image was pulled with the node's credentials, so that all Pods may use it.
    machine.run_pod("kept", &Pull::IF_NOT_PRESENT).await;
    machine.succeeds("kept").await;

    let log = controller.stop();
    assert!(
        !log.contains(&machine.password) && !log.contains(&machine.auth()),
        "the controller's log has a credential"
    );
}

/// The kubelet verifies that a Pod may use an image that another one has pulled with a Secret of its own.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_was_pulled_with_a_pods_own_secret_is_verified_with_the_nodes_credentials() {
    let Some(machine) = Machine::here().await else { return };
    machine.write_kubelet_file(ORIGINAL);
    machine.make_original(ORIGINAL);
    machine.create_secret("own", &machine.document());
    let other = |secret| Pull { image: Some(&machine.other_image), secret, ..Pull::IF_NOT_PRESENT };
    machine.run_pod("owner", &other(Some("own"))).await;
    machine.succeeds("owner").await;
    machine.run_pod("stranger", &other(None)).await;
    if machine.kubelet_minor() < VERIFIES_IMAGES {
        machine.succeeds("stranger").await;
        return;
    }
    machine.is_refused("stranger").await;
    let _controller = Controller::start(&machine);
    machine.apply_additional();
    machine.succeeds("stranger").await;
    machine.revert_additional().await;
}

/// The syncer's mount of the kubelet's folder has the volumes of all Pods below it.
#[tokio::test(flavor = "multi_thread")]
async fn the_volume_of_a_deleted_pod_is_unmounted_while_the_syncer_runs() {
    let Some(machine) = Machine::here().await else { return };
    machine.write_kubelet_file(ORIGINAL);
    machine.make_original(ORIGINAL);
    let uid = machine.run_with_volume("with-volume").await;
    let _controller = Controller::start(&machine);
    machine.apply_additional();
    machine.shows("RolledOut=True (RolledOut): 1/1 nodes have the content").await;
    assert!(Machine::syncer_mounts().contains(&uid), "the syncer sees the volume, or this test proves nothing");
    machine.in_namespace(&["delete", "pod", "with-volume", "--now"]);
    until("the syncer does not hold the volume", async || {
        let mounts = Machine::syncer_mounts();
        (!mounts.is_empty() && !mounts.contains(&uid)).then_some(())
    })
    .await;
    machine.revert_additional().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_reboots_in_the_middle_of_a_change_finishes_it() {
    let Some(mut machine) = Machine::here().await else { return };
    machine.write_kubelet_file(ORIGINAL);
    machine.make_original(ORIGINAL);
    let _controller = Controller::start(&machine);
    let starts = machine.kubelet_starts();
    machine.apply_additional();
    // The file is replaced, and the kubelet not yet restarted, or just now.
    until("the file is replaced", async || (machine.registries_of_kubelet_file().len() == 2).then_some(())).await;
    machine.reboot();
    machine.run_pod("first", &Pull::ALWAYS).await;
    machine.succeeds("first").await;
    machine.shows("RolledOut=True (RolledOut): 1/1 nodes have the content").await;
    assert!(machine.kubelet_starts() > starts);
    // The kubelet has been restarted, and is watched.
    let starts = machine.kubelet_starts();
    machine.kubectl(&["delete", "secret", ADDITIONAL, "-n", SYSTEM]);
    until("the kubelet is restarted", async || (machine.kubelet_starts() > starts).then_some(())).await;
    machine.reboot();
    machine.is_gone("daemonset", SYNCER).await;
    assert_eq!(machine.kubelet_file(), serde_json::from_str::<Value>(ORIGINAL).unwrap());
    machine.run_pod("last", &Pull::ALWAYS).await;
    machine.is_refused("last").await;
}

/// Each with what an admin reads in its answer.
fn the_specifications_three_commands(machine: &Machine) {
    let set = machine.kubectl(&["get", "daemonset", "global-pull-secret-syncer", "-n", "kube-system"]);
    assert_eq!(cells(&set, 1)[..6], ["global-pull-secret-syncer", "1", "1", "1", "1", "1"], "{set}");
    let merged = machine.kubectl(&["get", "secret", "global-pull-secret", "-n", "kube-system"]);
    assert_eq!(cells(&merged, 1)[..3], ["global-pull-secret", "kubernetes.io/dockerconfigjson", "2"], "{merged}");
    let pods = machine.kubectl(&["get", "pods", "-n", "kube-system", "-l", "name=global-pull-secret-syncer"]);
    assert_eq!(cells(&pods, 1)[1..4], ["1/1", "Running", "0"], "{pods}");
    assert_eq!(pods.lines().count(), 2, "{pods}");
}

/// `docs/guides/node-agent.md` documents these commands.
fn the_documented_commands(machine: &Machine) {
    let name = machine.kubectl(&["get", "pods", "-n", SYSTEM, "-l", "name=global-pull-secret-syncer", "-o", "name"]);
    let ask = ["exec", "-n", SYSTEM, name.trim(), "--", "sync-global-pullsecret", "status", "--output", "json"];
    let status: Value = serde_json::from_str(&machine.kubectl(&ask)).unwrap();
    assert_eq!((&status["ready"], &status["reason"]), (&json!(true), &json!("Applied")), "{status}");
    let log = machine.kubectl(&["logs", "-n", SYSTEM, name.trim()]);
    assert!(log.contains("\"reason\":\"Applied\""), "{log}");
    assert!(!log.contains(&machine.password) && !log.contains(&machine.auth()), "the syncer's log has a credential");
}

/// Every line that needs a cluster, as it is written; each with what an admin finds in its answer.
fn the_commands_of_the_admins_guide(machine: &Machine) {
    let guide = include_str!("../../../../docs/guides/hosted-cluster-admin.md");
    let lines = guide.lines().filter_map(|line| line.strip_prefix("    "));
    let answers: Vec<_> = lines
        .filter(|line| line.starts_with("kubectl ") || line.starts_with("global-pull-secret explain"))
        .map(|line| machine.run_line(line))
        .collect();
    let expected = [
        "global-pull-secret-syncer",
        "kubernetes.io/dockerconfigjson",
        "Running",
        "Secret/additional-pull-secret",
        "RolledOut=True",
        machine.registry.as_str(),
        "quay.io/team/app",
    ];
    assert_eq!(answers.len(), expected.len(), "{answers:?}");
    for (answer, expected) in answers.iter().zip(expected) {
        assert!(answer.contains(expected), "{expected} is missing: {answer}");
        assert!(!answer.contains(&machine.password) && !answer.contains(&machine.auth()), "an answer has a credential");
    }
}

fn cells(table: &str, line: usize) -> Vec<&str> {
    table.lines().nth(line).unwrap().split_whitespace().collect()
}

fn secret(namespace: &str, name: &str, document: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": encode(document.as_bytes())},
    })
}

/// The way in which a Pod gets its image.
struct Pull<'a> {
    policy: &'static str,
    /// The private image, unless it is another one.
    image: Option<&'a str>,
    /// A Secret of the Pod's own.
    secret: Option<&'a str>,
}

impl Pull<'_> {
    /// Pulled whether the node has it or not.
    const ALWAYS: Self = Self { policy: "Always", image: None, secret: None };

    const IF_NOT_PRESENT: Self = Self { policy: "IfNotPresent", ..Self::ALWAYS };
}

impl Machine {
    /// The credential for the private image.
    fn auth(&self) -> String {
        encode(format!("{}:{}", self.user, self.password).as_bytes())
    }

    fn document(&self) -> String {
        json!({"auths": {self.registry.as_str(): {"auth": self.auth()}}}).to_string()
    }

    fn apply_additional(&self) -> String {
        self.apply(&secret(SYSTEM, ADDITIONAL, &self.document())).unwrap()
    }

    /// Deletes the additional Secret, and waits until the node is as it was before.
    async fn revert_additional(&self) {
        self.kubectl(&["delete", "secret", ADDITIONAL, "-n", SYSTEM]);
        self.is_gone("daemonset", SYNCER).await;
    }

    fn make_original(&self, document: &str) {
        self.kubectl(&["create", "namespace", &self.namespace]);
        self.create_secret("pull-secret", document);
    }

    fn create_secret(&self, name: &str, document: &str) {
        drop(self.apply(&secret(&self.namespace, name, document)).unwrap());
    }

    async fn run_pod(&self, name: &str, pull: &Pull<'_>) {
        let image = pull.image.unwrap_or(&self.image);
        let secrets: Vec<_> = pull.secret.iter().map(|name| json!({"name": name})).collect();
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                // A restart of the kubelet cancels a container's start that is under way.
                "restartPolicy": "OnFailure",
                "imagePullSecrets": secrets,
                "containers": [{"name": "main", "image": image, "imagePullPolicy": pull.policy, "args": ["echo", "pulled"]}],
            },
        });
        // Refused until the namespace's ServiceAccount is complete.
        until("the Pod is taken", async || self.apply(&pod).ok()).await;
    }

    /// Runs a Pod with a volume in memory; returns its uid, which is in the path of the volume.
    async fn run_with_volume(&self, name: &str) -> String {
        let arguments =
            ["--from-files", "/scratch", "--restart-policy", "never", "--kubelet-file", "/scratch/config.json"];
        let container = json!({
            "name": "main",
            "image": self.syncer_image(),
            "imagePullPolicy": "Never",
            "args": arguments,
            "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        });
        let volumes = json!([{"name": "scratch", "emptyDir": {"medium": "Memory"}}]);
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"containers": [container], "volumes": volumes},
        });
        // Refused until the namespace's ServiceAccount is complete.
        until("the Pod is taken", async || self.apply(&pod).ok()).await;
        let ask = ["get", "pod", name, "-o", "jsonpath={.status.phase} {.metadata.uid}"];
        until("the Pod runs", async || self.in_namespace(&ask).strip_prefix("Running ").map(str::to_owned)).await
    }

    async fn is_refused(&self, pod: &str) {
        let about = format!("involvedObject.name={pod}");
        let ask = ["get", "events", "--field-selector", &about, "-o", "jsonpath={.items[*].message}"];
        let refused = "authorization failed";
        until(refused, async || self.in_namespace(&ask).contains(refused).then_some(())).await;
    }

    async fn succeeds(&self, pod: &str) {
        let ask = ["get", "pod", pod, "-o", "jsonpath={.status.phase}"];
        until("the Pod succeeds", async || (self.in_namespace(&ask) == "Succeeded").then_some(())).await;
    }

    async fn shows(&self, line: &str) {
        let ask = ["get", "configmap", STATUS, "-n", SYSTEM, "-o", "jsonpath={.data.summary}", "--ignore-not-found"];
        until(line, async || self.kubectl(&ask).contains(line).then_some(())).await;
    }

    async fn is_gone(&self, kind: &str, name: &str) {
        let ask = ["get", kind, name, "-n", SYSTEM, "-o", "name", "--ignore-not-found"];
        until(&format!("no {kind} {name}"), async || self.kubectl(&ask).is_empty().then_some(())).await;
    }

    fn registries_of_kubelet_file(&self) -> Vec<String> {
        self.kubelet_file()["auths"].as_object().unwrap().keys().cloned().collect()
    }
}
