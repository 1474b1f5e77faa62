//! A real node that pulls with the accounts that the credentials service makes for its cluster: the kubelet and containerd of the
//! node, a real registry with the Quay emulator's tokens, the assembled controller of the Global Pull Secret that writes to the node.
//!
//! The fleet plane has a Kubernetes emulator; the pull secret that is applied there is copied to the hosted control plane's namespace
//! on the real one, as HyperShift does.

use std::sync::atomic::{AtomicUsize, Ordering};

use emulators::quay::{Pull, Robot};
use emulators::real_registry::{Login, RealRegistry};
use serde_json::json;
use testkit::api_server::until;
use testkit::{fleet, leaks, registry};

use super::controller::Controller;
use super::node::Node;
use crate::credentials::{Published, REPOSITORY, Service, quay};

/// The cluster.
const CLUSTER: &str = "cls-node-1";

/// A service, its registry, and a node whose Pods pull from it.
struct Scene {
    service: Service,
    controller: Controller,
    image: String,
    pods: AtomicUsize,
}

// === impl Scene ===

impl Scene {
    fn namespace(&self) -> &str {
        &self.controller.namespace
    }

    /// Runs a Pod that pulls the image whether the node has it or not; returns what the kubelet says about its container.
    async fn run_pod(&self) -> String {
        let name = format!("pod-{}", self.pods.fetch_add(1, Ordering::Relaxed));
        let plane = &self.controller.node.plane;
        let container = json!({
            "name": "main", "image": self.image, "imagePullPolicy": "Always", "command": ["/none"],
            "securityContext": {
                "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
                "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"},
            },
        });
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": self.namespace()},
            "spec": {"restartPolicy": "Never", "automountServiceAccountToken": false, "containers": [container]},
        });
        let file = plane.folder().join("pod.json");
        daemon::file::replace(&file, pod.to_string().as_bytes()).unwrap();
        plane.kubectl(&["create", "--filename", file.to_str().unwrap()]);
        let state = "jsonpath={.status.containerStatuses[0].state['terminated','waiting'].message}";
        let ask = ["--namespace", self.namespace(), "get", "pod", &name, "--output", state];
        let message = async || Some(plane.kubectl(&ask)).filter(|message| !message.is_empty());
        until("the kubelet has tried", message).await
    }

    fn pulls(&self) -> Vec<Pull> {
        self.service.quay.quay.pulls()
    }

    /// Runs Pods until one has pulled with this account: a kubelet that has not started again has the one before.
    async fn pulls_as(&self, account: &Published) {
        until("a Pod pulls with the account", async || {
            let before = self.pulls().len();
            // Pulled: the image has no program to start.
            if !self.run_pod().await.contains("/none") {
                return None;
            }
            self.service.quay.quay.wait_for_pulls(before + 1).await;
            let pulls = self.pulls();
            let pull = pulls.last().unwrap();
            assert!(pull.agent.starts_with("containerd/") && pull.repository == REPOSITORY, "{pull:?}");
            (pull.robot == account.login).then_some(())
        })
        .await;
    }

    /// The next account of the cluster, on its node, which pulls with it.
    async fn follow(&self, replaces: Option<&str>) -> Published {
        let account = self.service.applied(CLUSTER, replaces).await;
        self.controller.apply_original(&account.pull_secret);
        self.pulls_as(&account).await;
        self.service.until_state(CLUSTER, &account.id, "Adopted").await;
        account
    }

    /// Revokes an account, and waits until it is deleted.
    async fn revoke(&self, account: &Published, which: [&str; 2]) {
        self.service.order(&[&["revoke"], &which[..], &["--reason", "leaked", "--yes"]].concat()).await;
        until("the account is deleted", async || {
            let quay = &self.service.quay.quay;
            let is_it = |robot: &Robot| account.login == format!("{}+{}", quay.organization(), robot.name);
            (!quay.robots().iter().any(is_it)).then_some(())
        })
        .await;
    }

    /// Fails if a log has a password of the accounts.
    fn check_logs(&self, accounts: &[&Published]) {
        let logs = [("the service", self.service.log()), ("the fleet plane", self.service.up.output())];
        for (name, log) in logs.into_iter().chain([("the controller", self.controller.log())]) {
            leaks::check(name, &log);
            for account in accounts {
                let document: serde_json::Value = serde_json::from_str(&account.pull_secret).unwrap();
                for (_, entry) in document["auths"].as_object().unwrap() {
                    assert!(!log.contains(entry["auth"].as_str().unwrap()), "the log of {name} has a credential");
                }
            }
        }
    }
}

async fn push(service: &Service, registry: &RealRegistry) -> String {
    let quay = &service.quay.quay;
    let (user, password) = (format!("{}+pusher", quay.organization()), quay.add_pusher("pusher", REPOSITORY));
    let image = format!("{}/{REPOSITORY}:v1", quay.organization());
    registry.push(&Login { user: &user, password: &password }, &image).await.unwrap();
    format!("{}/{image}", registry.address())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_pulls_with_its_clusters_account_and_is_refused_when_it_is_revoked() {
    let Some(node) = Node::here().await else { return };
    let quay = quay().await;
    let Some(registry) = registry::start(&quay.quay).await else { return };
    for port in [quay.quay.address(), registry.address()].map(|address| address.to_string()) {
        node.script("forward", &["IN_NODE", &port, &port]);
    }
    let service = Service::start(quay, registry.address(), None).await;
    let image = push(&service, &registry).await;
    service.up.player.create(CLUSTER, &fleet::document("own")).await;
    let first = service.applied(CLUSTER, None).await;
    let namespace = format!("clusters-pulls-{}", std::process::id());
    let controller = Controller::install(node, namespace, &first.pull_secret);
    controller.add(&fleet::document("additional")).await;
    let scene = Scene { service, controller, image, pods: AtomicUsize::new(0) };
    scene.pulls_as(&first).await;
    let service = &scene.service;
    service.until_state(CLUSTER, &first.id, "Adopted").await;

    // Another one takes its place, in the same Secret.
    service.order(&["replace", &first.id, "--reason", "yearly"]).await;
    let second = scene.follow(Some(&first.id)).await;
    assert_ne!(first.login, second.login);
    scene.revoke(&first, ["--credential", &first.id]).await;
    scene.pulls_as(&second).await;

    scene.revoke(&second, ["--cluster", CLUSTER]).await;
    let pulls = scene.pulls().len();
    let refused = scene.run_pod().await;
    assert!(refused.contains("401") && refused.contains(&scene.image), "{refused}");
    assert_eq!(scene.pulls().len(), pulls);

    service.order(&["replace", &second.id, "--reason", "leaked"]).await;
    let third = scene.follow(Some(&second.id)).await;
    scene.check_logs(&[&first, &second, &third]);
    scene.controller.remove().await;
}
