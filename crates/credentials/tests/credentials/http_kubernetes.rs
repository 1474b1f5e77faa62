//! Callers of the HTTP API whose tokens and roles are those of a real Kubernetes.

use std::path::Path;

use credentials::http::{KubernetesReviewer, Limits, Reviewer as _};
use credentials::state::State;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kubernetes::{Cluster, Settings};
use secrecy::SecretString;
use serde_json::{Value, json};
use testkit::api_server::{ApiServer, Kind, TIMEOUT, until};
use testkit::http::{Reply, exchange};

use crate::http_rig::{CLUSTER, ELSEWHERE, Served};

const AUDIENCE: &str = "hyperfleet-credentials";

/// A namespace with service accounts, and cluster roles of its name.
struct Accounts {
    server: ApiServer,
    namespace: String,
}

// === impl Accounts ===

impl Accounts {
    async fn new() -> Option<Self> {
        let server = ApiServer::start(Kind::Real).await?;
        let namespace = format!("credentials-{}", std::process::id());
        server.create_namespace(&namespace).await;
        let new = Self { server, namespace };
        for account in ["service", "reader", "viewer", "stranger"] {
            let account = json!({"metadata": {"name": account}});
            drop(new.server.create::<ServiceAccount>(&new.namespace, account).await);
        }
        Some(new)
    }

    /// Binds an account to a cluster role, which is made of these rules if there are any.
    async fn bind(&self, account: &str, role: &str, rules: Value) {
        let (name, client) = (format!("{}-{account}", self.namespace), &self.server.client);
        let mut role = role.to_owned();
        if rules.is_array() {
            role.clone_from(&name);
            let made = serde_json::from_value(json!({"metadata": {"name": name}, "rules": rules})).unwrap();
            drop(Api::<ClusterRole>::all(client.clone()).create(&PostParams::default(), &made).await.unwrap());
        }
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": self.namespace}],
        });
        let binding = serde_json::from_value(binding).unwrap();
        drop(Api::<ClusterRoleBinding>::all(client.clone()).create(&PostParams::default(), &binding).await.unwrap());
    }

    /// The reviews that the API server makes for an account.
    async fn reviewer(&self, account: &str) -> KubernetesReviewer {
        let kubeconfig = self.server.kubeconfig_of(&self.namespace, account).await;
        let folder = tempfile::tempdir().unwrap();
        let path: &Path = &folder.path().join("kubeconfig");
        daemon::file::replace(path, serde_json::to_string(&kubeconfig).unwrap().as_bytes()).unwrap();
        let settings = Settings { kubeconfig: Some(path.to_owned()), call_timeout: TIMEOUT, ..Settings::default() };
        KubernetesReviewer { cluster: Cluster::connect(&settings).await.unwrap(), audience: AUDIENCE.to_owned() }
    }

    async fn token(&self, account: &str, audience: &str) -> String {
        self.server.token_for(&self.namespace, account, audience).await
    }

    async fn remove(&self) {
        for account in ["service", "reader", "viewer"] {
            let (name, client) = (format!("{}-{account}", self.namespace), &self.server.client);
            drop(Api::<ClusterRole>::all(client.clone()).delete(&name, &DeleteParams::default()).await);
            drop(Api::<ClusterRoleBinding>::all(client.clone()).delete(&name, &DeleteParams::default()).await);
        }
        self.server.delete_namespace(&self.namespace).await;
    }
}

async fn send(served: &Served, token: &str, method: &str, path: &str) -> Reply {
    exchange(served.address, method, path, "", &format!("authorization: Bearer {token}\r\n")).await.unwrap()
}

#[tokio::test]
async fn kubernetes_says_who_a_caller_is_and_what_it_may_do() {
    let Some(accounts) = Accounts::new().await else { return };
    accounts.bind("service", "system:auth-delegator", Value::Null).await;
    let of_cluster = |resource: &str, verbs: Value| json!({"apiGroups": ["hyperfleet.io"], "resources": [resource], "resourceNames": [CLUSTER], "verbs": verbs});
    let metadata = of_cluster("clusters/pull-secrets", json!(["get", "create"]));
    let content = of_cluster("clusters/pull-secrets/content", json!(["get"]));
    let rotations = of_cluster("clusters/pull-secrets/rotations", json!(["list"]));
    accounts.bind("reader", "", json!([metadata, content, rotations])).await;
    accounts.bind("viewer", "", json!([metadata])).await;
    let reviewer = accounts.reviewer("service").await;
    let (reader, viewer) = (accounts.token("reader", AUDIENCE).await, accounts.token("viewer", AUDIENCE).await);
    // A real server's authorizer learns of the roles a little later.
    until("the roles hold", async || {
        let id = CLUSTER.parse().unwrap();
        let may_review = reviewer.identify(&SecretString::from(viewer.as_str())).await;
        let identity = may_review.ok()??;
        let is_permitted = reviewer.permits(&identity, credentials::http::Permission::GetPullSecrets, &id).await;
        is_permitted.is_ok_and(|permitted| permitted).then_some(())
    })
    .await;
    let (rig, cluster, served) = Served::with(Limits::default(), reviewer.clone()).await;
    let secrets = format!("/v1/clusters/{CLUSTER}/pull-secrets");
    let made = send(&served, &reader, "POST", &secrets).await.expect(202);
    let credential = made["credentials"][0]["credential_id"].as_str().unwrap().parse().unwrap();
    let worker = rig.worker("one");
    rig.until(&worker, &cluster, credential, State::Published).await;
    let read = send(&served, &reader, "GET", &secrets).await.expect(200);
    assert!(read["pull_secret"]["auths"]["memory.invalid"]["auth"].is_string(), "{read:#}");
    let read = send(&served, &viewer, "GET", &secrets).await.expect(200);
    assert_eq!((read.get("pull_secret"), &read["state"]), (None, &json!("ready")));
    send(&served, &reader, "GET", &format!("/v1/clusters/{CLUSTER}/rotations")).await.expect(200);
    // Neither another verb, nor another part, nor another cluster.
    send(&served, &viewer, "DELETE", &secrets).await.expect(403);
    send(&served, &viewer, "GET", &format!("/v1/clusters/{CLUSTER}/rotations")).await.expect(403);
    send(&served, &reader, "GET", &format!("/v1/clusters/{ELSEWHERE}/pull-secrets")).await.expect(403);
    let stranger = accounts.token("stranger", AUDIENCE).await;
    let denied = send(&served, &stranger, "GET", &secrets).await.expect(403);
    let name = |account: &str| format!("system:serviceaccount:{}:{account}", accounts.namespace);
    assert!(denied["detail"].as_str().unwrap().starts_with(&name("stranger")), "{denied:#}");
    let wrong_audience = accounts.token("reader", "another").await;
    send(&served, &wrong_audience, "GET", &secrets).await.expect(401);
    let forged = format!("{}x", reader.trim_end_matches(|last| last != '.'));
    send(&served, &forged, "GET", &secrets).await.expect(401);
    let events = worker.ledger.events(credential).await.unwrap();
    assert!(events.iter().any(|event| event.action == "Reserve" && event.actor == name("reader")), "{events:?}");
    let text = served.text();
    assert!([&reader, &viewer, &stranger, &forged].iter().all(|token| !text.contains(token.as_str())));
    // A service whose account may not review answers nothing.
    let powerless = accounts.reviewer("stranger").await;
    let refused = powerless.identify(&SecretString::from(reader.as_str())).await.unwrap_err();
    assert!(refused.to_string().contains("permission denied") && !format!("{refused:?}").contains(&reader));
    accounts.remove().await;
}
