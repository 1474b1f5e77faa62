//! The credentials service of the chart: off by default, and with a configuration, files, a grant and a network that fit each other.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use rstest::rstest;
use serde_json::{Value, json};
use testkit::program;

use super::{of_kind, pod, rendered};
use crate::helm::{Helm, text};

const NAME: &str = "pull-secret-credentials";
/// The address of the guide.
const DATABASE: &str = "postgresql://credentials:PASSWORD@db.example.com:5432/credentials?sslmode=verify-full";
const PLAIN: &str = "https://kubernetes.default.svc";
const FULL: &str = "https://container.googleapis.com/v1/projects/my-project-1/locations/europe-west1/clusters/fleet";

fn objects(helm: &Helm, values: &str) -> Vec<Value> {
    rendered(helm, ("pull-secret", "hyperfleet-system", &[values]))
}

/// The text of a configuration file.
fn config(objects: &[Value], map: &str, file: &str) -> String {
    of_kind(objects, "ConfigMap", map)["data"][file].as_str().unwrap().to_owned()
}

/// Runs a command about a configuration; returns if it succeeds, and its output.
fn run(helm: &Helm, arguments: &[&str], config: &str) -> (bool, String) {
    let path = helm.folder().join("config.yaml");
    daemon::file::replace(&path, config.as_bytes()).unwrap();
    let mut command = Command::new(program::path("pull-secret"));
    command.args(arguments).arg("--config").arg(path).env_clear().env("DATABASE_URL", DATABASE);
    let output = command.stdin(Stdio::null()).output().unwrap();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn the_service_is_off_by_default() {
    let Some(helm) = Helm::here() else { return };
    let objects = rendered(&helm, ("pull-secret", "hyperfleet-system", &[]));
    assert!(objects.iter().all(|object| object["metadata"]["name"] != NAME));
    assert!(!config(&objects, "hyperfleet-api", "config.yaml").contains(NAME), "the API has a grant");
}

#[rstest]
#[case::least("credentials", &["quay"])]
#[case::all_values("full", &["quay", "harbor", "gar", "ecr", "acr", "red-hat", "own"])]
fn the_program_accepts_its_configuration(#[case] values: &str, #[case] registries: &[&str]) {
    let Some(helm) = Helm::here() else { return };
    let config = config(&objects(&helm, values), NAME, "credentials.yaml");
    let (is_success, said) = run(&helm, &["credentials", "config-dump", "--output", "json"], &config);
    assert!(is_success, "{said}");
    let dump: Value = serde_json::from_str(&said).unwrap();
    let of =
        |key: &str| dump["settings"].as_array().unwrap().iter().find(|it| it["key"] == key).unwrap()["value"].clone();
    let names: Vec<Value> = of("registries").as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!((names, of("health.host")), (registries.iter().map(|name| json!(name)).collect(), json!("0.0.0.0")));
    let (is_success, said) = run(&helm, &["credentials", "config-dump"], &config.replace("token_file", "token_files"));
    assert!(!is_success && said.contains("token_files"), "{said}");
}

/// The example of the guide is one that the chart and the program accept.
#[test]
fn the_values_of_the_guide_are_accepted() {
    let Some(helm) = Helm::here() else { return };
    let guide = include_str!("../../../../../docs/guides/credentials.md");
    assert!(guide.contains(&format!("'{DATABASE}'")));
    let example = guide.split_once("## In a cluster").unwrap().1.split("```").nth(1).unwrap();
    let values = helm.folder().join("guide.yaml");
    daemon::file::replace(&values, example.strip_prefix("yaml\n").unwrap().as_bytes()).unwrap();
    let objects = helm.template("pull-secret", "hyperfleet-system", &["--values", values.to_str().unwrap()]).unwrap();
    let (is_success, said) = run(&helm, &["credentials", "config-dump"], &config(&objects, NAME, "credentials.yaml"));
    assert!(is_success && said.contains("pullers"), "{said}");
}

/// Every path in the configuration is a file of a volume that is mounted there.
#[rstest]
#[case::least("credentials", 2)]
#[case::all_values("full", 11)]
fn every_file_of_its_configuration_is_mounted(#[case] values: &str, #[case] beside_the_api: usize) {
    let Some(helm) = Helm::here() else { return };
    let objects = objects(&helm, values);
    let config: Value = serde_saphyr::from_str(&config(&objects, NAME, "credentials.yaml")).unwrap();
    let mut named = BTreeSet::new();
    paths(&config, &mut named);
    let mounted = mounted(pod(of_kind(&objects, "Deployment", NAME)).unwrap(), &config);
    assert_eq!(named.difference(&mounted).collect::<Vec<_>>(), [""; 0], "{mounted:#?}");
    assert_eq!(named.len(), beside_the_api + 2, "{named:?}");
}

/// The absolute paths among the texts of a document.
fn paths(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.starts_with('/') => drop(found.insert(text.clone())),
        Value::Array(items) => {
            for item in items {
                paths(item, found);
            }
        }
        Value::Object(members) => {
            for member in members.values() {
                paths(member, found);
            }
        }
        _ => {}
    }
}

/// The files that a Pod mounts. A volume of a whole Secret has the keys of the configuration.
fn mounted(pod: &Value, config: &Value) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for mount in pod["containers"][0]["volumeMounts"].as_array().unwrap() {
        let volume = pod["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == mount["name"]).unwrap();
        let folder = mount["mountPath"].as_str().unwrap();
        let own = [&volume["secret"], &volume["configMap"]].map(|source| source["items"].clone());
        let projected = volume.pointer("/projected/sources").and_then(Value::as_array).into_iter().flatten();
        let sources = projected.flat_map(|source| source.as_object().unwrap().values());
        let items = sources.clone().flat_map(|source| source["items"].as_array().cloned().unwrap_or_default());
        let token = sources.filter(|source| source["path"].is_string()).cloned();
        let all = own.iter().flat_map(|items| items.as_array().cloned().unwrap_or_default()).chain(items).chain(token);
        files.extend(all.map(|item| format!("{folder}/{}", item["path"].as_str().unwrap())));
        if mount["name"] == "keys" {
            let ids = config["keys"].as_array().unwrap().iter().map(|key| key["id"].as_str().unwrap());
            files.extend(ids.map(|id| format!("{folder}/{id}")));
        }
    }
    files
}

/// The API knows it, gives it what the guide says and no more, and lets it in.
#[rstest]
#[case::least("credentials", PLAIN)]
#[case::all_values("full", FULL)]
fn the_api_knows_the_service(#[case] values: &str, #[case] issuer: &str) {
    let Some(helm) = Helm::here() else { return };
    let objects = objects(&helm, values);
    let config = config(&objects, "hyperfleet-api", "config.yaml");
    let subject = format!("system:serviceaccount:hyperfleet-system:{NAME}");
    let arguments = ["api", "grants", "--as", &subject, "--issuer", issuer];
    let (is_success, said) = run(&helm, &arguments, &config);
    assert!(is_success, "{said}");
    for part in ["get", "list", "watch", "update", "reads pull secrets"] {
        assert!(said.contains(part), "no {part}: {said}");
    }
    for part in ["create", "delete", "chooses", "reports"] {
        assert!(!said.contains(part), "{part}: {said}");
    }
    let ingress = of_kind(&objects, "NetworkPolicy", "hyperfleet-api")["spec"]["ingress"].to_string();
    assert!(ingress.contains(NAME), "{ingress}");
}

#[rstest]
#[case::least("credentials", json!([{"port": 443}]))]
#[case::all_values("full", json!([{"port": 443}, {"port": 8443}, {"port": 5000}]))]
fn it_reaches_the_ports_of_its_registries(#[case] values: &str, #[case] expected: Value) {
    let Some(helm) = Helm::here() else { return };
    let objects = objects(&helm, values);
    let policy = of_kind(&objects, "NetworkPolicy", NAME);
    let rules = policy["spec"]["egress"].as_array().unwrap();
    assert!(rules.iter().any(|rule| rule["ports"] == expected), "{rules:?}");
    assert!(rules.iter().all(|rule| rule["ports"].is_array()), "{rules:?}");
}

/// It is as guarded and as available as the Sentinel, and has no token of Kubernetes.
#[test]
fn its_pods_are_like_those_of_the_other_components() {
    let Some(helm) = Helm::here() else { return };
    let objects = objects(&helm, "full");
    let [its, sentinels] = [NAME, "sentinel"].map(|name| pod(of_kind(&objects, "Deployment", name)).unwrap());
    assert_eq!(its["automountServiceAccountToken"], false);
    for member in ["securityContext", "nodeSelector", "tolerations", "priorityClassName", "imagePullSecrets"] {
        assert_eq!(its[member], sentinels[member], "{member}");
    }
    for member in ["securityContext", "livenessProbe", "readinessProbe", "ports", "image"] {
        assert_eq!(its["containers"][0][member], sentinels["containers"][0][member], "{member}");
    }
    let spread = its["topologySpreadConstraints"].to_string().replace(NAME, "sentinel");
    assert_eq!(spread, sentinels["topologySpreadConstraints"].to_string());
    let budget = of_kind(&objects, "PodDisruptionBudget", NAME);
    assert_eq!(budget["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"], NAME);
    assert!(
        objects
            .iter()
            .all(|object| !object["kind"].as_str().unwrap().contains("Role") || object["metadata"]["name"] != NAME)
    );
}

/// With the HTTP API it has a certificate, a port, a Service, Kubernetes' reviews, and nothing but its clients is let in.
#[test]
fn the_http_api_is_served_to_its_clients_only() {
    let Some(helm) = Helm::here() else { return };
    let on = ["credentials", "credentials.httpApi.enabled=true", "tls.certManager.enabled=true"];
    let objects = rendered(&helm, ("pull-secret", "hyperfleet-system", &on));
    let text = config(&objects, NAME, "credentials.yaml");
    let (is_success, said) = run(&helm, &["credentials", "config-dump"], &text);
    assert!(is_success, "{said}");
    let server: Value = serde_saphyr::from_str::<Value>(&text).unwrap()["server"].clone();
    assert_eq!((&server["enabled"], &server["host"]), (&json!(true), &json!("0.0.0.0")));
    let its = pod(of_kind(&objects, "Deployment", NAME)).unwrap();
    let tls = its["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == "tls").unwrap();
    let certificate = of_kind(&objects, "Certificate", "pull-secret-credentials-api");
    assert_eq!(tls["secret"]["secretName"], certificate["spec"]["secretName"]);
    let service = of_kind(&objects, "Service", "pull-secret-credentials-api");
    let host = format!("{}.hyperfleet-system.svc", service["metadata"]["name"].as_str().unwrap());
    assert_eq!(certificate["spec"]["dnsNames"][0], host);
    assert_eq!((&service["spec"]["ports"][0]["port"], &server["port"]), (&json!(8001), &json!(8001)));
    assert_eq!(its["containers"][0]["ports"][0], json!({"name": "api", "containerPort": 8001}));
    assert_eq!(its["automountServiceAccountToken"], true);
    let binding = of_kind(&objects, "ClusterRoleBinding", "pull-secret-credentials-reviews-callers");
    assert_eq!(
        (&binding["roleRef"]["name"], &binding["subjects"][0]["name"]),
        (&json!("system:auth-delegator"), &json!(NAME))
    );
    let policy = &of_kind(&objects, "NetworkPolicy", NAME)["spec"];
    assert!(!policy["ingress"].to_string().contains("\"api\""), "without clients: {}", policy["ingress"]);
    assert!(policy["egress"].to_string().contains("6443"), "{}", policy["egress"]);
    let clients = "credentials.httpApi.clients[0].ipBlock.cidr=192.0.2.0/24";
    let objects = rendered(&helm, ("pull-secret", "hyperfleet-system", &[&on[..], &[clients]].concat()));
    let ingress = &of_kind(&objects, "NetworkPolicy", NAME)["spec"]["ingress"];
    let expected = json!({"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [{"port": "api"}]});
    assert!(ingress.as_array().unwrap().contains(&expected), "{ingress}");
}
