//! `pull-secret doctor`: everything is ok, and each planted fault is named with the command that fixes it.

use std::path::Path;
use std::time::Duration;

use adapter::rights::{Right, in_namespace, to_grant_access};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use message_broker::rabbitmq::{RabbitMq, Settings};
use message_broker::{Consume, Subscription};
use rstest::rstest;
use serde_json::{Value, json};
use testkit::api::server_with;
use testkit::broker::{Broker, rabbitmq};
use testkit::cluster::{Kind, Place};
use testkit::hyperfleet::HyperFleetApi;
use testkit::leaks::PASSWORD;
use testkit::program;
use testkit::rig::{PROJECT, Rig};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// The exit code, and the lines.
struct Examined {
    code: Option<i32>,
    lines: Vec<Value>,
}

impl Examined {
    /// Runs `doctor`, in both formats, which must agree.
    async fn of(api: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let run = async |format: &str| {
            let mut command = program::pull_secret(&["doctor", "--api", api, "--output", format]);
            let output = command.args(arguments).envs(variables.iter().copied()).output().await.unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            testkit::leaks::check("doctor", &format!("{text}{}", String::from_utf8_lossy(&output.stderr)));
            (output.status.code(), text)
        };
        let (code, text) = run("json").await;
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (same, table) = run("table").await;
        assert!(code == same && !lines.is_empty(), "{table}");
        for line in &lines {
            assert!(line["state"] != "failed" || line["fix"].is_string(), "{line}");
            assert!(table.contains(line["check"].as_str().unwrap()), "{table}");
        }
        Self { code, lines }
    }

    /// The checks in that state, each as `group: check`.
    fn all(&self, state: &str) -> Vec<String> {
        let of_state = self.lines.iter().filter(|line| line["state"] == state);
        of_state
            .map(|line| format!("{}: {}", line["group"].as_str().unwrap(), line["check"].as_str().unwrap()))
            .collect()
    }

    /// Asserts that these checks have failed and no others; returns message and command of the first one.
    fn failed(&self, checks: &[&str]) -> (&str, &str) {
        assert_eq!(
            (self.all("failed"), self.code),
            (checks.iter().map(ToString::to_string).collect(), Some(1)),
            "{self}"
        );
        let line = self.lines.iter().find(|line| line["state"] == "failed").unwrap();
        (line["message"].as_str().unwrap(), line["fix"].as_str().unwrap())
    }
}

impl std::fmt::Display for Examined {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(formatter, "{line}"))
    }
}

async fn shell(folder: &Path, script: &str) -> String {
    let output = Command::new("bash").args(["-ec", script]).current_dir(folder).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A namespace with Jobs' Pod Security on an API server with RBAC.
async fn place() -> Place {
    let place = Place::new(Kind::Guarded).await.unwrap();
    let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    namespaces.patch(&place.namespace, &PatchParams::default(), &Patch::Merge(&labels)).await.unwrap();
    place
}

/// Rules of a Role, as the adapter's rights are written.
fn rules(yaml: &str, kind: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    documents.into_iter().find(|document| document["kind"] == kind).unwrap()["rules"].as_array().unwrap().clone()
}

/// The rights that are checked are those that an installation grants.
#[rstest]
#[case::jobs(include_str!("../../../../deploy/adapter.yaml"), "Role", in_namespace("pullsecret", "pullsecret-adapter"))]
#[case::access(include_str!("../../../../deploy/access.yaml"), "ClusterRole", to_grant_access())]
fn the_rights_are_those_of_deploy(#[case] yaml: &str, #[case] kind: &str, #[case] rights: Vec<Right>) {
    let rule = |right: &Right| {
        let mut rule = json!({"apiGroups": [right.group], "resources": [right.resource], "verbs": right.verbs});
        if let Some(name) = &right.name {
            rule["resourceNames"] = json!([name]);
        }
        rule
    };
    assert_eq!(rights.iter().map(rule).collect::<Vec<_>>(), rules(yaml, kind));
}

/// API, Kubernetes, Secret Manager with a stored secret, and RabbitMQ with a consumer, where there is one.
#[tokio::test(flavor = "multi_thread")]
async fn everything_is_ok() {
    let (api, place) = (HyperFleetApi::start().await, place().await);
    place.rig.stored("a").await;
    let topic = format!("doctor-{}", std::process::id());
    let broker = rabbitmq().unwrap_or_default();
    let stop = CancellationToken::new();
    let mut consumer = None;
    if let Some((_, url)) = broker.iter().find(|(name, _)| *name == "BROKER_RABBITMQ_URL") {
        let client = message_broker::Broker::RabbitMq(RabbitMq::new(Settings::new(url.clone().into())).unwrap());
        let subscription = Subscription::new(&topic, "pullsecret-adapter-sub").unwrap();
        consumer = Some(client.subscribe(&subscription, Consume::default(), &stop).await.unwrap());
    }
    let (token, store) = (api.token().path, place.rig.emulator.address().to_string());
    let mut variables: Vec<(&str, &str)> = broker.iter().map(|(name, value)| (*name, value.as_str())).collect();
    variables.extend([("SECRET_MANAGER_EMULATOR_HOST", store.as_str())]);
    if !broker.is_empty() {
        variables.push(("HYPERFLEET_BROKER_TOPIC", &topic));
    }
    let arguments = [
        "--token-file",
        token.to_str().unwrap(),
        "--kubeconfig",
        place.kubeconfig().to_str().unwrap(),
        "--namespace",
        &place.namespace,
        "--project",
        PROJECT,
    ];
    let examined = Examined::of(&format!("http://{}", api.address), &arguments, &variables).await;
    assert_eq!(examined.code, Some(0), "{examined}");
    let mut skipped = vec!["api: certificate", "kubernetes: image"];
    skipped.extend(consumer.is_none().then_some("broker: reachable"));
    skipped.push("credentials: settings");
    assert_eq!(examined.all("skipped"), skipped, "{examined}");
    assert_eq!(examined.all("warning"), Vec::<String>::new(), "{examined}");
    for group in ["api", "kubernetes", "secret_store", "files"] {
        assert!(examined.lines.iter().any(|line| line["group"] == group && line["state"] == "ok"), "{examined}");
    }
    if let Some(consumer) = consumer {
        let ok = ["reachable", "topic", "subscription", "dead letters", "publish", "subscribe"];
        let found: Vec<_> = examined.all("ok").into_iter().filter(|check| check.starts_with("broker: ")).collect();
        assert_eq!(found, ok.map(|check| format!("broker: {check}")));
        consumer.drain(Duration::from_secs(10)).await.unwrap();
    }
}

/// Before an installation: nothing is there, and every part has a line of its own.
#[tokio::test]
async fn without_anything_each_part_has_its_line() {
    let examined = Examined::of("http://127.0.0.1:1", &[], &[]).await;
    let (message, fix) = examined.failed(&["api: reachable"]);
    assert!(
        message.contains("no process listens there") && fix.contains("port-forward service/hyperfleet-api"),
        "{examined}"
    );
    for check in ["kubernetes: reachable", "broker: reachable", "secret_store: reachable", "credentials: settings"] {
        assert!(examined.all("skipped").iter().any(|skipped| skipped == check), "{examined}");
    }
    let help = program::pull_secret(&["doctor", "--help"]).output().await.unwrap().stdout;
    assert!(!String::from_utf8(help).unwrap().contains("[required]"));
    let unusable = Examined::of("ftp://127.0.0.1", &[], &[]).await;
    assert!(unusable.failed(&["api: settings"]).0.contains("the API's address must be"), "{unusable}");
}

/// A namespace that does not exist, and an identity without rights in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_namespace_and_missing_verbs_are_named() {
    let (api, place) = (HyperFleetApi::start().await, place().await);
    let (token, url) = (api.token().path, format!("http://{}", api.address));
    let examine = async |kubeconfig: &Path, namespace: &str| {
        let files = [token.to_str().unwrap(), kubeconfig.to_str().unwrap()];
        let arguments = ["--token-file", files[0], "--kubeconfig", files[1], "--namespace", namespace];
        Examined::of(&url, &arguments, &[]).await
    };
    let examined = examine(place.kubeconfig(), "nowhere").await;
    let (message, fix) = examined.failed(&["kubernetes: namespace"]);
    assert!(message.starts_with("nowhere, in which Jobs are to run, does not exist"), "{examined}");
    assert!(fix.starts_with("kubectl create namespace nowhere"), "{examined}");

    let kubeconfig = limited(&place).await;
    let examined = examine(&kubeconfig, &place.namespace).await;
    let expected = ["kubernetes: jobs", "kubernetes: secrets"];
    let (message, fix) = examined.failed(&expected);
    assert_eq!(message, format!("watch, delete not allowed in {}", place.namespace));
    let account = format!("--serviceaccount={}:adapter", place.namespace);
    assert!(fix.contains("--verb=watch,delete --resource=jobs.batch") && fix.ends_with(&account), "{examined}");
    // What it may not read is no fault, and what only some installations need is a warning.
    assert_eq!(examined.all("warning"), ["kubernetes: roles", "kubernetes: rolebindings"], "{examined}");
    assert!(examined.all("skipped").contains(&"kubernetes: namespace".to_owned()), "{examined}");
}

/// The kubeconfig of a `ServiceAccount` with the adapter's Role, but for some verbs.
async fn limited(place: &Place) -> std::path::PathBuf {
    let rules = rules(include_str!("../../../../deploy/adapter.yaml"), "Role");
    let mut role = json!({"metadata": {"name": "adapter"}, "rules": rules});
    role["rules"][0]["verbs"] = json!(["create", "get", "list"]);
    role["rules"][2]["verbs"] = json!(["create", "get", "patch"]);
    let binding = json!({
        "metadata": {"name": "adapter"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "adapter"},
        "subjects": [{"kind": "ServiceAccount", "name": "adapter", "namespace": place.namespace}],
    });
    let parameters = PostParams::default();
    let account = serde_json::from_value(json!({"metadata": {"name": "adapter"}})).unwrap();
    let accounts = place.api::<ServiceAccount>();
    accounts.create(&parameters, &account).await.unwrap();
    place.api::<Role>().create(&parameters, &serde_json::from_value(role).unwrap()).await.unwrap();
    place.api::<RoleBinding>().create(&parameters, &serde_json::from_value(binding).unwrap()).await.unwrap();
    let request = TokenRequest::default();
    let token = accounts.create_token_request("adapter", &parameters, &request).await.unwrap().status.unwrap().token;
    let text = std::fs::read_to_string(place.kubeconfig()).unwrap();
    let mut kubeconfig: Value = serde_saphyr::from_str(&text).unwrap();
    kubeconfig["users"][0]["user"] = json!({"token": token});
    let path = place.rig.path("limited-kubeconfig");
    daemon::file::replace(&path, kubeconfig.to_string().as_bytes()).unwrap();
    path
}

/// A project without permission to list, a store without some permissions on a secret.
#[rstest]
#[case::list("listSecrets:permission-denied*0", "list secrets", "--role roles/secretmanager.viewer")]
#[case::unauthenticated("listSecrets:unauthenticated*0", "reachable", "gcloud auth application-default login")]
#[case::permissions(
    "testIamPermissions:permission-denied*0",
    "adapter's permissions",
    "--role roles/secretmanager.viewer"
)]
#[tokio::test(flavor = "multi_thread")]
async fn a_project_without_permission_is_named(#[case] fault: &str, #[case] check: &str, #[case] command: &str) {
    let (api, rig) = (HyperFleetApi::start().await, Rig::new().await);
    rig.stored("a").await;
    rig.emulator.inject(fault.parse().unwrap());
    let (token, store) = (api.token().path, rig.emulator.address().to_string());
    let arguments = ["--token-file", token.to_str().unwrap(), "--project", PROJECT];
    let variables = [("SECRET_MANAGER_EMULATOR_HOST", store.as_str())];
    let examined = Examined::of(&format!("http://{}", api.address), &arguments, &variables).await;
    let (_, fix) = examined.failed(&[&format!("secret_store: {check}")]);
    assert!(fix.contains(command), "{examined}");
}

/// A broker that is down, and a virtual host that does not exist.
#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_away_and_a_wrong_vhost_are_named() {
    let api = HyperFleetApi::start().await;
    let (token, url) = (api.token().path, format!("http://{}", api.address));
    let examine = async |broker: &Broker| {
        let arguments = ["--token-file", token.to_str().unwrap(), "--broker-topic", "clusters"];
        let variables: Vec<_> = broker.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Examined::of(&url, &arguments, &variables).await
    };
    let address = format!("amqp://guest:{PASSWORD}@127.0.0.1:1/");
    let away = vec![("BROKER_TYPE", "rabbitmq".to_owned()), ("BROKER_RABBITMQ_URL", address)];
    let examined = examine(&away).await;
    let (message, fix) = examined.failed(&["broker: reachable"]);
    assert!(message.contains("127.0.0.1:1") && fix.starts_with("nc -vz 127.0.0.1 1"), "{examined}");

    let Some(mut broker) = rabbitmq() else { return };
    let (_, url_of_broker) = broker.iter_mut().find(|(name, _)| *name == "BROKER_RABBITMQ_URL").unwrap();
    *url_of_broker = url_of_broker.rsplit_once('/').unwrap().0.to_owned() + "/no-such-vhost";
    let examined = examine(&broker).await;
    let (message, fix) = examined.failed(&["broker: reachable"]);
    assert!(message.starts_with("the vhost no-such-vhost does not exist, or guest may not use it"), "{examined}");
    assert!(fix.starts_with("rabbitmqctl add_vhost 'no-such-vhost' && rabbitmqctl set_permissions"), "{examined}");
}

/// An authority, and a certificate for this machine.
const CERTIFICATE: &str = r#"
key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
openssl req -x509 $key -days 3650 -subj /CN=ca -keyout ca.key -out ca.crt 2> /dev/null
openssl req $key -subj /CN=api -addext subjectAltName=IP:127.0.0.1 -keyout tls.key -out tls.csr 2> /dev/null
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -days 2 -copy_extensions copy -out tls.crt 2> /dev/null
"#;

/// Schemes, certificates and authorities are distinguished.
#[tokio::test(flavor = "multi_thread")]
async fn faults_of_tls_are_distinguished() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    shell(folder.path(), CERTIFICATE).await;
    shell(other.path(), CERTIFICATE).await;
    let tls = [
        ("HYPERFLEET_SERVER_TLS_ENABLED", "true"),
        ("HYPERFLEET_SERVER_TLS_CERT_FILE", "tls.crt"),
        ("HYPERFLEET_SERVER_TLS_KEY_FILE", "tls.key"),
    ];
    let (_child, address) = server_with(folder.path(), &tls).await;
    let plain = HyperFleetApi::start().await;
    let authority = |folder: &Path| folder.join("ca.crt").to_str().unwrap().to_owned();
    let (right, wrong) = (authority(folder.path()), authority(other.path()));
    for (url, authority, words, command) in [
        (format!("http://{address}"), &right, "the server speaks TLS", format!("=https://{address}")),
        (
            format!("https://{}", plain.address),
            &right,
            "the server speaks plain HTTP",
            format!("=http://{}", plain.address),
        ),
        (
            format!("https://{address}"),
            &wrong,
            "its certificate is not",
            "export HYPERFLEET_API_CA_FILE=ca.crt".to_owned(),
        ),
    ] {
        let examined = Examined::of(&url, &["--ca-file", authority], &[]).await;
        let (message, fix) = examined.failed(&["api: reachable"]);
        assert!(message.contains(words) && fix.ends_with(&command), "{examined}");
    }
    let examined = Examined::of(&format!("https://{address}"), &["--ca-file", &right], &[]).await;
    // Two days are left of the server's certificate, and ten years of the authority's.
    assert_eq!(examined.all("warning"), ["api: certificate"], "{examined}");
    // There is no token of a caller that may read pull secrets.
    assert!(examined.failed(&["api: read pull secrets"]).1.contains("reader_token_file"), "{examined}");
}

/// A token of an issuer, signed as `openssl` does.
const TOKEN: &str = r#"
encode() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
[ -e key.pem ] || openssl genrsa -out key.pem 2048 2> /dev/null
modulus=$(openssl rsa -in key.pem -noout -modulus | cut -d= -f2 | xxd -r -p | encode)
echo "{\"keys\": [{\"kty\": \"RSA\", \"alg\": \"RS256\", \"kid\": \"a\", \"use\": \"sig\", \"n\": \"$modulus\", \"e\": \"AQAB\"}]}" > keys.json
head=$(printf '{"alg": "RS256", "kid": "a"}' | encode)
body=$(printf '{"iss": "https://issuer", "aud": "fleet", "sub": "adapter"%s, "exp": %s}' "$MORE" "$EXPIRES" | encode)
signature=$(printf '%s.%s' "$head" "$body" | openssl dgst -sha256 -sign key.pem -binary | encode)
printf '%s.%s.%s' "$head" "$body" "$signature" > token
"#;

/// The identity of a token, what it lacks, and the end of its validity. With the printed grant the API lacks nothing.
#[rstest]
#[case::of_kubernetes("sub", "", "adapter")]
#[case::of_a_person("email", r#", "email": "a@example.com", "email_verified": true"#, "a@example.com")]
#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_grants_is_named_with_the_grant(#[case] claim: &str, #[case] more: &str, #[case] name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let token = async |expires: u64| {
        shell(folder.path(), &format!("MORE='{more}'\nEXPIRES={expires}{TOKEN}")).await;
    };
    token(4_000_000_000).await;
    let mut config = json!({
        "server": {"jwt": {"enabled": true, "configs": [
            {"issuer_url": "https://issuer", "audience": "fleet", "identity_claim": claim, "jwk_cert_file": folder.path().join("keys.json")},
        ]}},
        "authorization": {"grants": [
            {"name": "lister", "issuer": "https://issuer", "subject": name, "kinds": ["Cluster"], "verbs": ["get", "list"]},
        ]},
    });
    let path = folder.path().join("config.yaml");
    daemon::file::replace(&path, config.to_string().as_bytes()).unwrap();
    let (_child, address) = server_with(folder.path(), &[("HYPERFLEET_CONFIG", path.to_str().unwrap())]).await;
    let file = folder.path().join("token").to_str().unwrap().to_owned();
    let url = format!("http://{address}");
    let examined = Examined::of(&url, &["--token-file", &file], &[]).await;
    let (message, fix) = examined.failed(&["api: read pull secrets", "api: report as pullsecret"]);
    assert!(message.contains("no grant of the caller allows reads_pull_secrets on Cluster"), "{examined}");
    let (_, printed) = fix.split_once("api.grants of the values: ").unwrap();
    config["authorization"]["grants"] = json!([serde_saphyr::from_str::<Value>(printed).unwrap()]);
    let identity = examined.lines.iter().find(|line| line["check"] == "identity").unwrap();
    assert_eq!(identity["message"], "adapter of https://issuer");

    let examined = Examined::of(&url, &[], &[]).await;
    assert!(examined.failed(&["api: identity"]).0.contains("the API asks for a token"), "{examined}");
    let granted = folder.path().join("granted.yaml");
    daemon::file::replace(&granted, config.to_string().as_bytes()).unwrap();
    let (_granting, address) = server_with(folder.path(), &[("HYPERFLEET_CONFIG", granted.to_str().unwrap())]).await;
    let examined = Examined::of(&format!("http://{address}"), &["--token-file", &file], &[]).await;
    assert_eq!(examined.all("failed"), Vec::<String>::new(), "{examined}");
    token(1_700_000_000).await;
    let examined = Examined::of(&url, &["--token-file", &file], &[]).await;
    assert!(
        examined.failed(&["api: identity"]).0.starts_with("the token of adapter of https://issuer expired"),
        "{examined}"
    );
    let examined = Examined::of(&url, &["--token-file", "nowhere"], &[]).await;
    assert!(examined.failed(&["api: identity", "files: --token-file"]).0.contains("cannot be read"), "{examined}");
}
