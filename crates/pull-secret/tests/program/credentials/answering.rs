//! `pull-secret credentials serve` with its HTTP API, whose callers a real Kubernetes reviews.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use testkit::api_server::{ApiServer, Kind, until};
use testkit::fleet::document;
use testkit::http::exchange;

use super::Rig;

const AUDIENCE: &str = "hyperfleet-credentials";

/// An account that may have the credentials of any cluster made, and read them. Returns its token.
async fn installer(server: &ApiServer, namespace: &str) -> String {
    server.create_namespace(namespace).await;
    drop(server.create::<ServiceAccount>(namespace, json!({"metadata": {"name": "installer"}})).await);
    let resources = ["clusters/pull-secrets", "clusters/pull-secrets/content"];
    let role = json!({
        "metadata": {"name": namespace},
        "rules": [{"apiGroups": ["hyperfleet.io"], "resources": resources, "verbs": ["get", "create"]}],
    });
    let binding = json!({
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": namespace}],
    });
    let (roles, bindings) = (Api::all(server.client.clone()), Api::all(server.client.clone()));
    let (role, binding) = (serde_json::from_value(role).unwrap(), serde_json::from_value(binding).unwrap());
    let _created: ClusterRole = roles.create(&PostParams::default(), &role).await.unwrap();
    let _created: ClusterRoleBinding = bindings.create(&PostParams::default(), &binding).await.unwrap();
    server.token_for(namespace, "installer", AUDIENCE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installer_gets_the_pull_secret_of_a_cluster() {
    let Some(server) = ApiServer::start(Kind::Real).await else { return };
    let namespace = format!("installer-{}", std::process::id());
    let token = installer(&server, &namespace).await;
    let rig = Rig::new().await;
    let kubeconfig = serde_json::to_string(&server.kubeconfig).unwrap();
    daemon::file::replace(&rig.path("kubeconfig"), kubeconfig.as_bytes()).unwrap();
    let settings = std::fs::read_to_string(rig.path("credentials.yaml")).unwrap()
        + &format!("server: {{enabled: true, port: 0, kubeconfig: '{}'}}\n", rig.path("kubeconfig").display());
    daemon::file::replace(&rig.path("credentials.yaml"), settings.as_bytes()).unwrap();
    rig.player.create("cls-1", &document("one")).await;
    let mut serving = rig.serve("first").await;
    let notes = std::fs::read_to_string(rig.path("first.notes")).unwrap();
    let address = notes.split("the HTTP API on ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    let headers = format!("authorization: Bearer {token}\r\n");
    let path = "/v1/clusters/cls-1/pull-secrets";
    // The authorizer learns of the role a little later, and the account is made meanwhile.
    let answer = until("the pull secret is ready", async || {
        let reply = exchange(address, "POST", path, "", &headers).await?;
        (reply.status == 200).then(|| reply.expect(200))
    })
    .await;
    rig.named("cls-1").await;
    let host = rig.quay.quay.address().to_string();
    let ours = rig.pull_secret("cls-1").await["auths"][&host]["auth"].clone();
    assert_eq!((&answer["pull_secret"]["auths"][&host]["auth"], ours.is_string()), (&ours, true));
    let absent = exchange(address, "POST", "/v1/clusters/cls-9/pull-secrets", "", &headers).await.unwrap().expect(404);
    assert_eq!(absent["code"], "HYPERFLEET-NTF-001");
    let anonymous = exchange(address, "GET", path, "", "").await.unwrap().expect(401);
    assert_eq!(anonymous.get("pull_secret"), None::<&Value>);
    serving.child.kill().await.unwrap();
    let log = std::fs::read_to_string(rig.path("first.log")).unwrap();
    rig.check_leaks("first.log", &log);
    assert!(log.contains("\"operation\":\"read-pull-secret\"") && !log.contains(&token), "{log}");
    drop(Api::<ClusterRole>::all(server.client.clone()).delete(&namespace, &DeleteParams::default()).await);
    drop(Api::<ClusterRoleBinding>::all(server.client.clone()).delete(&namespace, &DeleteParams::default()).await);
    server.delete_namespace(&namespace).await;
}
