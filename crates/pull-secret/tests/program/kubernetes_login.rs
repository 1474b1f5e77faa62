//! The Pull Secret Job at a real OpenBao that has a real API server review the token of the Job's service account.

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use testkit::api_server::{ApiServer, Kind, address};

use crate::stores::bao;
use crate::vault::{Run, Vault};

/// The account that the role accepts.
const JOB: &str = "pull-secret-job";
/// An account of the same namespace.
const OTHER: &str = "another-job";
/// The audience of the role `with-audience`.
const AUDIENCE: &str = "openbao";

/// A mount of the auth method `kubernetes`, and a namespace whose service accounts log in there.
struct Method {
    vault: Vault,
    api: ApiServer,
    /// Names the namespace and the mount.
    name: String,
}

impl Method {
    /// `None` after a line that says which server there is not.
    async fn new() -> Option<Self> {
        let (vault, api) = (Vault::new()?, ApiServer::start(Kind::Real).await?);
        let name = vault.folder.to_lowercase();
        api.create_namespace(&name).await;
        for account in [JOB, OTHER, "reviewer"] {
            let _account: ServiceAccount = api.create(&name, json!({"metadata": {"name": account}})).await;
        }
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:auth-delegator"},
            "subjects": [{"kind": "ServiceAccount", "name": "reviewer", "namespace": name}],
        });
        let binding: ClusterRoleBinding = serde_json::from_value(binding).unwrap();
        Api::all(api.client.clone()).create(&PostParams::default(), &binding).await.unwrap();
        let method = Self { vault, api, name };
        method.enable().await;
        Some(method)
    }

    async fn enable(&self) {
        let Self { vault, name, .. } = self;
        bao(&["auth", "enable", &format!("-path={name}"), "kubernetes"]).await;
        let mut kubeconfig = self.api.kubeconfig.clone();
        let reviewer = self.token("reviewer", None).await;
        bao(&[
            "write",
            &format!("auth/{name}/config"),
            &format!("kubernetes_host={}", address(&mut kubeconfig)),
            &format!("kubernetes_ca_cert={}", authority(&self.api)),
            &format!("token_reviewer_jwt={reviewer}"),
        ])
        .await;
        let policy =
            format!("path \"secret/+/{}/*\" {{ capabilities = [\"create\", \"read\", \"update\"] }}\n", vault.folder);
        let file = vault.files.path().join("policy.hcl");
        daemon::file::replace(&file, policy.as_bytes()).unwrap();
        bao(&["policy", "write", name, file.to_str().unwrap()]).await;
        for (role, audience) in [("without-audience", None), ("with-audience", Some(AUDIENCE))] {
            let path = format!("auth/{name}/role/{role}");
            let [account, namespace, policies] = [
                format!("bound_service_account_names={JOB}"),
                format!("bound_service_account_namespaces={name}"),
                format!("token_policies={name}"),
            ];
            let audience = audience.map(|audience| format!("audience={audience}"));
            let mut arguments = vec!["write", &path, &account, &namespace, &policies, "token_ttl=10m"];
            arguments.extend(audience.as_deref());
            bao(&arguments).await;
        }
    }

    /// A token as kubelet projects it: for an audience, or for the API server.
    async fn token(&self, account: &str, audience: Option<&str>) -> String {
        let audiences = audience.iter().map(|audience| (*audience).to_owned()).collect();
        let request = TokenRequest {
            spec: TokenRequestSpec { audiences, ..TokenRequestSpec::default() },
            ..TokenRequest::default()
        };
        let accounts = self.api.api::<ServiceAccount>(&self.name);
        let token = accounts.create_token_request(account, &PostParams::default(), &request).await.unwrap();
        token.status.unwrap().token
    }

    /// Runs the Job with this role and token.
    async fn run(&self, role: &str, token: &str, generation: u64) -> Run {
        let file = self.vault.files.path().join("jwt");
        daemon::file::replace(&file, token.as_bytes()).unwrap();
        let mut job = self.vault.job("a", generation);
        job.env_remove("VAULT_TOKEN_FILE").env("VAULT_AUTH", "kubernetes").env("VAULT_AUTH_MOUNT", &self.name);
        job.env("VAULT_ROLE", role).env("VAULT_JWT_FILE", &file).env("LOG_LEVEL", "debug");
        let run = self.vault.finish(job.spawn().unwrap(), "a", generation).await;
        assert!(!run.text.contains(token), "{}", run.text);
        run
    }
}

/// The certificate authority of an API server, PEM.
fn authority(api: &ApiServer) -> String {
    let cluster = api.kubeconfig.clusters[0].cluster.as_ref().unwrap();
    let Some(data) = &cluster.certificate_authority_data else {
        return std::fs::read_to_string(cluster.certificate_authority.as_ref().unwrap()).unwrap();
    };
    String::from_utf8(base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_reviews_the_token_of_the_jobs_service_account() {
    let Some(method) = Method::new().await else { return };
    for (generation, role, audience) in [(1, "without-audience", None), (2, "with-audience", Some(AUDIENCE))] {
        let run = method.run(role, &method.token(JOB, audience).await, generation).await;
        assert_eq!((run.code, run.reason.as_str()), (Some(0), "SecretStored"), "{role}: {}", run.text);
    }
    let job = method.token(JOB, Some(AUDIENCE)).await;
    let accounts = method.api.api::<ServiceAccount>(&method.name);
    drop(accounts.delete(JOB, &DeleteParams::default()).await.unwrap());
    let _again: ServiceAccount = method.api.create(&method.name, json!({"metadata": {"name": JOB}})).await;
    let refusals = [
        (
            "another account's",
            "with-audience",
            method.token(OTHER, Some(AUDIENCE)).await,
            "service account name not authorized",
        ),
        ("for another audience", "with-audience", method.token(JOB, None).await, "audience"),
        ("of a deleted account", "with-audience", job, "permission denied"),
        ("for a role that is not there", "absent", method.token(JOB, Some(AUDIENCE)).await, "invalid role name"),
    ];
    for (whose, role, token, said) in refusals {
        let run = method.run(role, &token, 3).await;
        assert_eq!((run.code, run.reason.as_str()), (Some(4), "Unauthenticated"), "{whose}: {}", run.text);
        let hint = format!("check that the auth method at auth/{} has the role {role}", method.name);
        for expected in ["the login is refused: ", said, &hint] {
            assert!(run.text.contains(expected), "{whose}: {expected}: {}", run.text);
        }
    }
    method.api.delete_namespace(&method.name).await;
}
