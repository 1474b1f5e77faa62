//! The charts without a cluster: helm's own checks, the values that are refused, and the settings that the programs know.

mod credentials;
mod refusals;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use rstest::rstest;
use serde_json::Value;
use testkit::program;

use crate::helm::{Helm, ROOT, files, text, values};

/// Charts, their namespaces, and values: those by default, and all others.
const RENDERINGS: [(&str, &str, &[&str]); 6] = [
    ("pull-secret", "hyperfleet-system", &[]),
    ("pull-secret", "hyperfleet-system", &["full"]),
    ("pull-secret", "hyperfleet-system", &["pubsub"]),
    ("global-pull-secret", "clusters-example", &[]),
    ("global-pull-secret", "clusters-example", &["global-full"]),
    (
        "global-pull-secret",
        "kube-system",
        &["global-full", "part=hosted-cluster", "monitoring.podMonitor.enabled=true"],
    ),
];

fn options(given: &[&str]) -> Vec<String> {
    let option = |given: &&str| {
        if given.contains('=') {
            ["--set".to_owned(), (*given).to_owned()]
        } else {
            ["--values".to_owned(), values(given)]
        }
    };
    given.iter().flat_map(option).collect()
}

fn rendered(helm: &Helm, (chart, namespace, given): (&str, &str, &[&str])) -> Vec<Value> {
    let options = options(given);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    helm.template(chart, namespace, &options).unwrap()
}

#[test]
fn helm_finds_no_fault_in_the_charts() {
    let Some(helm) = Helm::here() else { return };
    for (chart, namespace, given) in RENDERINGS {
        let (path, options) = (helm.chart(chart), options(given));
        let arguments = ["lint", "--strict", "--namespace", namespace, path.to_str().unwrap()];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let output = helm.run(&[&arguments, &options[..]].concat());
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn deploy_is_what_the_charts_render() {
    let Some(helm) = Helm::here() else { return };
    let target = helm.folder().join("deploy");
    let script = Path::new(ROOT).join("hack/render-deploy.sh");
    let mut command = Command::new(script);
    let output = command.arg(&target).env("REAL_HELM", &helm.program).env("HOME", helm.folder()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let present = files(&Path::new(ROOT).join("deploy"));
    let written: BTreeSet<_> = ["README.md", "kustomization.yaml", "namespace.yaml", "values.yaml"].into();
    let made = files(&target);
    for (name, text) in &made {
        assert_eq!(present.get(name), Some(text), "deploy/{} is not up to date; run: make deploy", name.display());
    }
    for name in present.keys().filter(|name| !written.contains(name.to_str().unwrap())) {
        assert!(made.contains_key(name), "no chart renders deploy/{}; remove it", name.display());
    }
}

#[test]
fn the_charts_have_the_version_of_the_programs() {
    for chart in ["pull-secret", "global-pull-secret"] {
        let path = Path::new(ROOT).join("charts").join(chart).join("Chart.yaml");
        let chart: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(
            (chart["version"].as_str(), chart["appVersion"].as_str()),
            (Some(env!("CARGO_PKG_VERSION")), Some(env!("CARGO_PKG_VERSION")))
        );
    }
}

/// Traces are off unless there is an endpoint; then each program and the Jobs have it, and may reach it.
#[test]
fn an_endpoint_switches_traces_on_everywhere() {
    let Some(helm) = Helm::here() else { return };
    for (chart, endpoint, port, programs, policies) in [
        ("pull-secret", "http://collector:4318", "4318", 4, 4),
        ("global-pull-secret", "https://collector", "443", 1, 1),
    ] {
        let render = |options: &[&str]| {
            let objects = helm.template(chart, "some-namespace", options).unwrap();
            objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
        };
        assert!(!render(&[]).contains("OTEL_"), "{chart}");
        let on = render(&["--set", &format!("tracing.endpoint={endpoint}")]);
        assert_eq!(on.matches("OTEL_EXPORTER_OTLP_ENDPOINT").count(), programs, "{on}");
        let egress = format!("{{\"ports\":[{{\"port\":{port}}}]}}");
        assert_eq!(on.matches(&egress).count(), policies, "{on}");
    }
}

/// The Pods' spec of a Deployment or a `CronJob`.
fn pod(object: &Value) -> Option<&Value> {
    object.pointer("/spec/jobTemplate/spec/template/spec").or_else(|| object.pointer("/spec/template/spec"))
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str()).collect()
}

/// Variables, volumes and mounts that are given reach every program, and the Jobs.
#[test]
fn what_is_given_to_a_component_is_in_its_pods() {
    let Some(helm) = Helm::here() else { return };
    for (rendering, workloads) in [(RENDERINGS[1], 5), (RENDERINGS[4], 1)] {
        let objects = rendered(&helm, rendering);
        let pods: Vec<&Value> = objects.iter().filter_map(pod).collect();
        assert_eq!(pods.len(), workloads);
        for pod in pods {
            let container = &pod["containers"][0];
            assert!(names(&container["env"]).contains(&"TZ"), "{pod}");
            assert!(names(&container["volumeMounts"]).contains(&"further"), "{pod}");
            assert!(names(&pod["volumes"]).contains(&"further"), "{pod}");
        }
        let adapter = objects.iter().find_map(|object| object.pointer("/data/adapter.yaml")?.as_str());
        let config: Option<Value> = adapter.map(|text| serde_saphyr::from_str(text).unwrap());
        if let Some(template) = config.as_ref().and_then(|config| config.pointer("/spec/jobTemplate")) {
            let variables = names(&template["env"]);
            assert!(variables.ends_with(&["TZ", "RUN_TIMEOUT"]), "{variables:?}");
            assert_eq!(
                (names(&template["volumes"]), names(&template["volumeMounts"])),
                (vec!["further"], vec!["further"])
            );
        }
    }
}

#[rstest]
#[case::by_default(&[], "configMap", "hyperfleet-api-ca", "ca.crt")]
#[case::another_key(&["tls.caKey=service-ca.crt"], "configMap", "hyperfleet-api-ca", "service-ca.crt")]
#[case::cert_manager(&["tls.certManager.enabled=true"], "secret", "hyperfleet-api-tls", "ca.crt")]
#[case::a_secret(&["full"], "secret", "api-authority", "ca-bundle.crt")]
fn the_clients_trust_the_authority_that_is_named(
    #[case] given: &[&str],
    #[case] kind: &str,
    #[case] name: &str,
    #[case] key: &str,
) {
    let Some(helm) = Helm::here() else { return };
    let objects = rendered(&helm, ("pull-secret", "hyperfleet-system", given));
    let volumes = objects.iter().filter_map(pod).flat_map(|pod| pod["volumes"].as_array().unwrap());
    let tokens = volumes.filter(|volume| volume["name"] == "token");
    let sources: Vec<&Value> = tokens.filter_map(|volume| volume.pointer("/projected/sources/1")).collect();
    let items = serde_json::json!([{"key": key, "path": "ca.crt"}]);
    assert!(
        sources.len() >= 2
            && sources.iter().all(|it| **it == serde_json::json!({kind: {"name": name, "items": items}})),
        "{sources:?}"
    );
}

#[rstest]
#[case("alerts.yaml", "monitoring.prometheusRule.enabled", "this chart has no monitoring/alerts.yaml")]
#[case("dashboards", "monitoring.dashboards.enabled", "this chart has no monitoring/dashboards/*.json")]
fn what_is_missing_in_the_chart_is_named(#[case] missing: &str, #[case] switch: &str, #[case] expected: &str) {
    let Some(helm) = Helm::here() else { return };
    let path = helm.monitoring().join(missing);
    assert!(helm.template("pull-secret", "n", &["--set", &format!("{switch}=true")]).is_ok());
    if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.unwrap();
    let refusal = helm.template("pull-secret", "n", &["--set", &format!("{switch}=true")]).expect_err(switch);
    assert!(refusal.contains(expected), "{refusal}");
}

fn of_kind<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name).unwrap()
}

/// The API gets tokens, so its Ingress has HTTPS in any case.
#[rstest]
#[case::of_the_controller(&[], Value::Null)]
#[case::named(&["api.ingress.tlsSecretName=outside"], "outside".into())]
fn the_ingress_has_https_in_any_case(#[case] given: &[&str], #[case] secret: Value) {
    let Some(helm) = Helm::here() else { return };
    let given = [&["api.ingress.enabled=true", "api.ingress.hosts={api.example.com}"], given].concat();
    let objects = rendered(&helm, ("pull-secret", "hyperfleet-system", &given));
    let tls = &of_kind(&objects, "Ingress", "hyperfleet-api")["spec"]["tls"];
    assert_eq!((&tls[0]["hosts"], &tls[0]["secretName"]), (&serde_json::json!(["api.example.com"]), &secret));
}

/// A name that YAML would read as a number stays a name.
#[test]
fn an_account_that_rotates_is_a_text() {
    let Some(helm) = Helm::here() else { return };
    let subject = "rotation.subjects[0].kind=ServiceAccount,rotation.subjects[0].namespace=pipelines";
    let given = ["rotation.enabled=true", subject];
    let options =
        [&options(&given)[..], &["--set-string".to_owned(), "rotation.subjects[0].name=007".to_owned()]].concat();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let objects = helm.template("pull-secret", "hyperfleet-system", &options).unwrap();
    let binding = of_kind(&objects, "RoleBinding", "pull-secret-rotation");
    assert_eq!(binding["subjects"][0]["name"], "007");
}

/// `null` takes a default away.
#[rstest]
#[case("pull-secret", &["jobs", "api", "sentinel", "adapter", "credentials", "sweep"])]
#[case("global-pull-secret", &[""])]
fn lists_of_further_things_may_be_null(#[case] chart: &str, #[case] components: &[&str]) {
    let Some(helm) = Helm::here() else { return };
    for component in components {
        for list in ["extraEnv", "extraVolumes", "extraVolumeMounts"] {
            let value = format!("{component}.{list}=null");
            let given = ["sweep.enabled=true,sweep.project=my-project-1", value.trim_start_matches('.')];
            let given = if chart == "pull-secret" { &given[..] } else { &given[1..] };
            assert!(!rendered(&helm, (chart, "hyperfleet-system", given)).is_empty(), "{value}");
        }
    }
}

/// The configuration files in the charts, and the reference pages of the programs that read them.
const CONFIGURATIONS: [(&str, &str, &str); 5] = [
    ("hyperfleet-api", "config.yaml", "api-settings.md"),
    ("sentinel", "config.yaml", "sentinel-settings.md"),
    ("pullsecret-adapter", "adapter.yaml", "adapter-settings.md"),
    ("pull-secret-credentials", "credentials.yaml", "credentials-settings.md"),
    ("global-pull-secret", "config.yaml", "global-pull-secret-settings.md"),
];

fn reference(page: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join("docs/reference").join(page)).unwrap()
}

/// The first word of each row of a page's tables that is marked as code.
fn documented(page: &str) -> BTreeSet<String> {
    let keys = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    keys.map(|(key, _)| key.to_owned()).collect()
}

/// The paths of a document's members that the page does not have, neither themselves nor what they are a part of.
fn unknown_keys(value: &Value, path: &str, known: &BTreeSet<String>, unknown: &mut Vec<String>) {
    if known.contains(path) {
        return;
    }
    let is_section = path.is_empty() || known.iter().any(|key| key.starts_with(&format!("{path}.")));
    match value.as_object() {
        Some(members) if is_section => {
            for (name, below) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                unknown_keys(below, &path, known, unknown);
            }
        }
        _ => unknown.push(path.to_owned()),
    }
}

#[test]
fn every_setting_and_variable_is_one_that_its_program_knows() {
    let Some(helm) = Helm::here() else { return };
    let pages = CONFIGURATIONS.map(|(.., page)| reference(page));
    let command_line = reference("cli.md") + &reference("global-pull-secret-cli.md");
    let mut configurations = 0;
    for rendering in RENDERINGS {
        for object in rendered(&helm, rendering) {
            let name = object["metadata"]["name"].as_str().unwrap();
            for (map, file, page) in
                CONFIGURATIONS.into_iter().filter(|(map, ..)| object["kind"] == "ConfigMap" && *map == name)
            {
                let config: Value = serde_saphyr::from_str(object["data"][file].as_str().unwrap()).unwrap();
                let mut unknown = Vec::new();
                unknown_keys(&config, "", &documented(&reference(page)), &mut unknown);
                assert!(
                    unknown.is_empty(),
                    "{rendering:?}: configmap {map} has keys that docs/reference/{page} lacks: {unknown:?}"
                );
                configurations += 1;
            }
            let template =
                object.pointer("/spec/jobTemplate/spec/template").or_else(|| object.pointer("/spec/template"));
            let containers = template.and_then(|template| template.pointer("/spec/containers")?.as_array());
            for variable in
                containers.into_iter().flatten().flat_map(|container| container["env"].as_array().into_iter().flatten())
            {
                let variable = variable["name"].as_str().unwrap();
                let is_known = matches!(variable, "DATABASE_URL" | "TZ")
                    || pages.iter().any(|page| page.contains(&format!("`{variable}`")))
                    || command_line.contains(&format!("[env: {variable}]"));
                assert!(is_known, "{rendering:?}: no program knows the variable {variable} of {name}");
            }
        }
    }
    assert_eq!(configurations, 3 + 4 + 2 + 2);
}

#[rstest]
#[case::by_default(&[], "https://kubernetes.default.svc")]
#[case::all_values(&["full"], "https://container.googleapis.com/v1/projects/my-project-1/locations/europe-west1/clusters/fleet")]
fn the_api_reads_its_configuration_and_knows_the_components(#[case] given: &[&str], #[case] issuer: &str) {
    let Some(helm) = Helm::here() else { return };
    let objects = rendered(&helm, ("pull-secret", "hyperfleet-system", given));
    let is_map = |it: &&Value| it["kind"] == "ConfigMap" && it["metadata"]["name"] == "hyperfleet-api";
    let config = objects.iter().find(is_map).unwrap()["data"]["config.yaml"].as_str().unwrap().to_owned();
    let path = helm.folder().join("config.yaml");
    let grants = |config: &str, account: &str| {
        daemon::file::replace(&path, config.as_bytes()).unwrap();
        let subject = format!("system:serviceaccount:hyperfleet-system:{account}");
        let mut command = Command::new(program::path("pull-secret"));
        command.args(["api", "grants", "--as", &subject, "--issuer", issuer, "--config"]).arg(&path);
        let output = command.env_clear().stdin(Stdio::null()).output().unwrap();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    };
    for account in ["sentinel", "pullsecret-adapter"] {
        let (is_success, said) = grants(&config, account);
        assert!(is_success && said.contains("Cluster"), "{said}");
    }
    let (is_success, said) = grants(&config.replace("identity_claim", "identity_claims"), "sentinel");
    assert!(!is_success && said.contains("identity_claims"), "{said}");
}

/// The example of the guide for a fleet with several stores is one that the chart and the adapter accept.
#[test]
fn the_values_of_a_fleet_with_several_stores_are_accepted() {
    let Some(helm) = Helm::here() else { return };
    let guide = include_str!("../../../../docs/guides/providers/README.md");
    let example = guide.split_once("## Several stores").unwrap().1.split("```").nth(1).unwrap();
    let values = helm.folder().join("several-stores.yaml");
    daemon::file::replace(&values, example.strip_prefix("yaml\n").unwrap().as_bytes()).unwrap();
    let objects = helm.template("pull-secret", "hyperfleet-system", &["--values", values.to_str().unwrap()]).unwrap();
    let config = of_kind(&objects, "ConfigMap", "pullsecret-adapter")["data"]["adapter.yaml"].as_str().unwrap();
    let path = helm.folder().join("adapter.yaml");
    daemon::file::replace(&path, config.as_bytes()).unwrap();
    let mut command = Command::new(program::path("pull-secret"));
    command.args(["adapter", "config-dump", "--output", "json", "--config"]).arg(&path).env_clear();
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success() && said.contains("byProvider") && said.contains("baremetal"), "{said}");
}

/// The namespace of Jobs is the same one in the chart and for the commands that look at its Jobs.
#[tokio::test]
async fn commands_look_for_jobs_where_the_chart_puts_them() {
    let values = include_str!("../../../../charts/pull-secret/values.yaml");
    let values: Value = serde_saphyr::from_str(values).unwrap();
    let namespace = format!("[default: {}]", values["jobs"]["namespace"].as_str().unwrap());
    for arguments in [vec!["explain", "cluster", "--help"], vec!["retry", "--help"]] {
        let (_, help, _) = testkit::fleet::run(&mut program::pull_secret(&arguments)).await;
        assert!(help.contains(&namespace), "{help}");
    }
}
