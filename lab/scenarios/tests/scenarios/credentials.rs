//! `pull-secret credentials serve` beside the fleet plane on embedded parts, with an emulated Quay.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use emulators::quay::Settings;
use fleet_model::Generation;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::api_server::{ApiServer, Kind, TIMEOUT, until};
use testkit::environment::variable;
use testkit::fleet::{self, Up, run};
use testkit::http::{Reply, exchange, exchange_over, secured};
use testkit::program;
use testkit::quay::{Server, bearer};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;
use tokio::time::{sleep, timeout};

/// The team whose members may pull.
const TEAM: &str = "pullers";
/// The repository of images, without its organization.
pub(crate) const REPOSITORY: &str = "release";

/// A fleet plane and the service that makes the accounts of its clusters.
pub(crate) struct Service {
    pub(crate) up: Up,
    pub(crate) quay: Server,
    /// The HTTP API, if it is served.
    http: Option<SocketAddr>,
    health: SocketAddr,
    metrics: SocketAddr,
    folder: TempDir,
    _child: Child,
}

/// An account of a cluster, and the pull secret of the Kubernetes Secret that has it.
pub(crate) struct Published {
    pub(crate) id: String,
    pub(crate) login: String,
    pub(crate) pull_secret: String,
}

/// A Quay whose team may pull from the repository.
pub(crate) async fn quay() -> Server {
    let settings = Settings { repositories: [].into(), teams: [TEAM.to_owned()].into(), ..Settings::default() };
    let quay = Server::start(settings).await;
    let rule = json!({"delegate": {"kind": "team", "name": TEAM}, "role": "read"});
    quay.call("POST", "prototypes", rule).await.expect(200);
    quay.quay.add_repository(REPOSITORY);
    quay
}

// === impl Service ===

impl Service {
    /// Starts all, with accounts at `quay` for the registry at this address. The HTTP API is served if there is a kubeconfig of the
    /// API server that reviews its callers.
    pub(crate) async fn start(quay: Server, registry: SocketAddr, reviews: Option<&Path>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let up = Up::in_folder(&folder.path().join("up")).await;
        let token = folder.path().join("quay-token");
        daemon::file::replace(&token, quay.quay.token().as_bytes()).unwrap();
        let organization = quay.quay.organization();
        let policy = json!({
            "retire": "manual", "nodes": "renounced", "quiet": "2s", "interval": "500ms", "fresh": "5s", "late": "5m",
        });
        let registry = json!({
            "name": "quay", "type": "quay", "url": quay.quay.url(), "host": registry.to_string(),
            "organization": organization, "team": TEAM, "token_file": token,
            "image": format!("{organization}/{REPOSITORY}"), "calls_per_minute": 6000, "policy": policy,
        });
        let api = json!({"base_url": up.place("api"), "auth": {"token_path": up.path("adapter-token")}});
        let mut config = json!({
            "clients": {"hyperfleet_api": api}, "database": {"path": folder.path().join("credentials.db")},
            "registries": [registry], "health": {"port": 0}, "metrics": {"port": 0},
        });
        if let Some(reviews) = reviews {
            let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
            let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
            daemon::file::replace(&certificate, pair.cert.pem().as_bytes()).unwrap();
            daemon::file::replace(&key, pair.signing_key.serialize_pem().as_bytes()).unwrap();
            let tls = json!({"cert_file": certificate, "key_file": key});
            config["server"] = json!({"enabled": true, "port": 0, "kubeconfig": reviews, "tls": tls});
        }
        daemon::file::replace(&folder.path().join("credentials.yaml"), config.to_string().as_bytes()).unwrap();
        let mut command = program::pull_secret(&["credentials", "serve", "--config"]);
        command.arg(folder.path().join("credentials.yaml"));
        let mut child = command.stdout(File::create(folder.path().join("log")).unwrap()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).await.unwrap();
        let address = |name: &str| -> Option<SocketAddr> {
            let (_, rest) = line.split_once(&format!("{name} on "))?;
            Some(rest.split([',', ' ']).next().unwrap().trim_end_matches('.').parse().unwrap())
        };
        let [health, metrics] =
            ["probes", "metrics"].map(|name| address(name).unwrap_or_else(|| panic!("it has not started: {line}")));
        let service = Self { up, quay, http: address("the HTTP API"), health, metrics, folder, _child: child };
        until("the service is ready", async || service.is_ready().await.then_some(())).await;
        service
    }

    async fn is_ready(&self) -> bool {
        exchange(self.health, "GET", "/readyz", "", "").await.unwrap().status == 200
    }

    /// Runs a command of `pull-secret credentials`; returns its data.
    pub(crate) async fn order(&self, arguments: &[&str]) -> String {
        let mut command = program::pull_secret(&["credentials"]);
        command.args(arguments).env("USER", "jane");
        let (code, stdout, stderr) = run(command.env("HYPERFLEET_CREDENTIALS_CONFIG", self.config())).await;
        assert_eq!(code, Some(0), "{arguments:?}: {stdout}{stderr}");
        stdout
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("credentials.yaml")
    }

    /// Waits until one of a cluster's credentials is so.
    pub(crate) async fn until(&self, cluster: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut listed = Vec::new();
        let listing = async {
            loop {
                listed = self.list(cluster).await;
                if let Some(found) = listed.iter().find(|found| is_so(found)) {
                    return found.clone();
                }
                sleep(Duration::from_millis(25)).await;
            }
        };
        let found = timeout(TIMEOUT, listing).await;
        found.unwrap_or_else(|_elapsed| panic!("{what} has not happened: {listed:#?}"))
    }

    async fn list(&self, cluster: &str) -> Vec<Value> {
        serde_json::from_str(&self.order(&["list", "--cluster", cluster, "--output", "json"]).await).unwrap()
    }

    /// Waits until this credential is in this state.
    pub(crate) async fn until_state(&self, cluster: &str, id: &str, state: &str) {
        self.until(cluster, state, |found| found["id"] == *id && found["state"] == *state).await;
    }

    /// Waits until the account of a cluster that replaces another one is published, and the adapter has applied it.
    pub(crate) async fn applied(&self, cluster: &str, replaces: Option<&str>) -> Published {
        let is_published = |found: &Value| found["state"] == "Published" && found["replaces"].as_str() == replaces;
        let found = self.until(cluster, "the account is published", is_published).await;
        let generation: Generation = serde_json::from_value(found["record"]["generation"].clone()).unwrap();
        let player = &self.up.player;
        player.make_ready(&self.up.cluster().await, cluster, generation).await;
        player.until(cluster, |resource| fleet::is_available(resource, generation)).await;
        Published {
            id: found["id"].as_str().unwrap().to_owned(),
            login: found["record"]["login"].as_str().unwrap().to_owned(),
            pull_secret: self.up.applied_secret(cluster).await.unwrap(),
        }
    }

    async fn metric(&self, line: &str) {
        until(line, async || {
            let scraped = exchange(self.metrics, "GET", "/metrics", "", "").await.unwrap();
            scraped.body.as_str().unwrap().lines().any(|found| found == line).then_some(())
        })
        .await;
    }

    /// The answer of the HTTP API about a cluster, by TLS.
    async fn pull_secrets(&self, cluster: &str, token: &str) -> Reply {
        let authority = std::fs::read_to_string(self.folder.path().join("tls.crt")).unwrap();
        let address = self.http.unwrap();
        let stream = secured(TcpStream::connect(address).await.unwrap(), &authority).await.unwrap();
        let headers = format!("host: {address}\r\n{}", bearer(token));
        exchange_over(stream, "GET", &format!("/v1/clusters/{cluster}/pull-secrets"), "", &headers).await.unwrap()
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

impl Drop for Service {
    #[expect(clippy::print_stderr, reason = "it is read with the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the log of the service:\n{}", self.log());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_fails_leaves_the_service_ready_and_is_shown() {
    let quay = quay().await;
    let address = quay.quay.address();
    let service = Service::start(quay, address, None).await;
    service.quay.quay.inject("*:unavailable*0".parse().unwrap());
    service.up.player.create("cls-1", &fleet::document("a")).await;
    service.metric(r#"hyperfleet_credentials_registry_failing{registry="quay"} 1"#).await;
    assert!(service.is_ready().await);
    service.quay.quay.clear_faults();
    service.applied("cls-1", None).await;
    service.metric(r#"hyperfleet_credentials_registry_failing{registry="quay"} 0"#).await;
    assert!(service.log().contains("the registry is unavailable"), "{}", service.log());
}

/// By TLS, with callers whom a real Kubernetes reviews, also while the registry fails.
#[tokio::test(flavor = "multi_thread")]
async fn the_http_api_of_the_service_answers_those_whom_kubernetes_permits() {
    let Some(server) = ApiServer::start(Kind::Real).await else { return };
    let namespace = format!("installer-{}", std::process::id());
    server.create_namespace(&namespace).await;
    for account in ["installer", "stranger"] {
        drop(server.create::<ServiceAccount>(&namespace, json!({"metadata": {"name": account}})).await);
    }
    let bindings = Api::<ClusterRoleBinding>::all(server.client.clone());
    let binding = json!({
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": namespace}],
    });
    drop(bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap());
    let quay = quay().await;
    let address = quay.quay.address();
    let kubeconfig = variable("REAL_KUBECONFIG").unwrap();
    let service = Service::start(quay, address, Some(Path::new(&kubeconfig))).await;
    service.up.player.create("cls-1", &fleet::document("a")).await;
    service.applied("cls-1", None).await;
    service.quay.quay.inject("*:unavailable*0".parse().unwrap());
    let (installer, stranger) =
        (token(&server, &namespace, "installer").await, token(&server, &namespace, "stranger").await);
    // A real server's authorizer learns of the role a little later.
    let answer = until("the role holds", async || {
        Some(service.pull_secrets("cls-1", &installer).await).filter(|answer| answer.status != 403)
    });
    let answer = answer.await.expect(200);
    assert_eq!(answer["state"], "ready", "{answer:#}");
    assert!(answer["pull_secret"]["auths"][address.to_string()]["auth"].is_string(), "it has no password");
    service.pull_secrets("cls-1", &stranger).await.expect(403);
    service.pull_secrets("cls-1", "a-word").await.expect(401);
    let log = service.log();
    assert!(!log.contains(&installer) && !log.contains(&stranger), "{log}");
    drop(bindings.delete(&namespace, &DeleteParams::default()).await.unwrap());
    server.delete_namespace(&namespace).await;
}

async fn token(server: &ApiServer, namespace: &str, account: &str) -> String {
    server.token_for(namespace, account, "hyperfleet-credentials").await
}
