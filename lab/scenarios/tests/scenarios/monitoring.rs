//! Dashboards, alerts and runbooks name only metrics and labels that exist, their expressions are valid, each alert fires and
//! clears and has a runbook, and a fleet plane through which one cluster went exposes what the dashboards show.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use credentials::reason::Reason;
use fleet_model::metrics::{ADAPTER_TYPE, Kind, Metric, all};
use serde_json::{Value, json};
use testkit::environment::{missing, variable};
use testkit::fleet::{Up, document, folder, is_available, run};

mod expression;

use expression::Expression;

/// Labels that Prometheus gives every series of a target.
const TARGET_LABELS: [&str; 2] = ["cluster", "namespace"];

/// Metrics that one cluster's way through the local fleet plane does not make appear.
const ABSENT: [(&str, &str); 17] = [
    ("global_pull_secret_", "of hosted clusters; its crate compares what it exposes with the catalogue"),
    ("sync_global_pullsecret_", "of nodes; its crate compares what it exposes with the catalogue"),
    ("hyperfleet_credentials", "of the credentials service; its crate compares what it exposes with the catalogue"),
    ("hyperfleet_credentials_", "of the credentials service; its crate compares what it exposes with the catalogue"),
    ("pullsecret_job_failures_total", "no Job fails"),
    ("hyperfleet_adapter_errors_total", "nothing fails"),
    ("hyperfleet_adapter_nacks_total", "nothing fails"),
    ("hyperfleet_adapter_store_checks_total", "the first check comes an hour after the start"),
    ("hyperfleet_adapter_store_check_last_success_timestamp_seconds", "the first check comes an hour after the start"),
    ("hyperfleet_certificate_expiry_timestamp_seconds", "the local fleet plane has no certificates"),
    ("hyperfleet_api_reports_discarded_total", "every report is stored"),
    ("hyperfleet_api_resource_pending_reconciliation", "counted every 15 seconds"),
    ("hyperfleet_api_resource_pending_reconciliation_stuck", "counted every 15 seconds"),
    ("hyperfleet_api_pull_secrets", "counted every 15 seconds"),
    ("hyperfleet_api_pull_secrets_on_old_keys", "counted every 15 seconds"),
    ("hyperfleet_sentinel_api_errors_total", "nothing fails"),
    ("hyperfleet_sentinel_broker_errors_total", "nothing fails"),
];

/// Scrapes until the test gives up: many times what a busy machine needs.
const MAX_SCRAPES: usize = 1_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn rules() -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(&read("charts/pull-secret/monitoring/alerts.yaml")).unwrap();
    let groups = file["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

/// The dashboards' panels: title, unit and expressions of each, by the dashboard's title.
fn dashboards() -> BTreeMap<String, Vec<Value>> {
    let files = std::fs::read_dir(root().join("charts/pull-secret/monitoring/dashboards")).unwrap();
    let files = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let dashboards = files.map(|text| serde_json::from_str::<Value>(&text).unwrap());
    dashboards
        .map(|dashboard| {
            (dashboard["title"].as_str().unwrap().to_owned(), dashboard["panels"].as_array().unwrap().clone())
        })
        .collect()
}

fn targets(panel: &Value) -> Vec<String> {
    panel["targets"].as_array().unwrap().iter().map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// Every expression, with the place that it is in.
fn expressions() -> Vec<(String, String)> {
    let mut found: Vec<_> = rules()
        .iter()
        .map(|rule| (format!("alert {}", rule["alert"]), rule["expr"].as_str().unwrap().to_owned()))
        .collect();
    for (dashboard, panels) in dashboards() {
        for panel in panels {
            let place = format!("{dashboard}: {}", panel["title"]);
            found.extend(targets(&panel).into_iter().map(|expression| (place.clone(), expression)));
        }
    }
    let runbooks = read("docs/operations/runbooks.md");
    let quoted =
        runbooks.lines().flat_map(|line| line.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
    let is_expression = |text: &String| {
        ["hyperfleet_", "pullsecret_", "global_pull_secret_", "sync_global_pullsecret_"]
            .iter()
            .any(|prefix| text.contains(prefix))
    };
    found.extend(quoted.filter(is_expression).map(|expression| ("runbooks".to_owned(), expression)));
    found
}

/// The labels of every series, by its name on `/metrics`.
fn catalogue() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut series = BTreeMap::new();
    for metric in all::ALL.iter().flat_map(|catalogue| catalogue.metrics) {
        let Metric { kind, labels, .. } = metric;
        let name = metric.series().replace(ADAPTER_TYPE, "pullsecret");
        let labels: BTreeSet<_> = labels.iter().copied().collect();
        if *kind == Kind::Histogram {
            let with_bound = labels.iter().copied().chain(["le"]).collect();
            series.insert(format!("{name}_bucket"), with_bound);
            series.extend(["sum", "count"].map(|suffix| (format!("{name}_{suffix}"), labels.clone())));
        } else {
            series.insert(name, labels);
        }
    }
    series
}

fn promtool(arguments: &[&Path]) -> Option<Output> {
    let Some(program) = variable("REAL_PROMTOOL") else {
        return missing("promtool is missing: e=$(hack/real-parts/tools.sh get promtool) && eval \"$e\"");
    };
    Some(Command::new(program).args(arguments).output().unwrap())
}

fn succeeded(output: &Output) {
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn every_expression_names_metrics_and_labels_of_the_catalogue() {
    let catalogue = catalogue();
    let expressions = expressions();
    assert!(expressions.len() > 90, "{}", expressions.len());
    for (place, text) in expressions {
        let Expression { metrics, grouped } = Expression::of(&text);
        assert!(!metrics.is_empty(), "{place}: {text}");
        let mut known: BTreeSet<_> = TARGET_LABELS.into();
        for (metric, labels) in &metrics {
            let Some(declared) = catalogue.get(metric) else { panic!("{place}: there is no metric {metric}: {text}") };
            known.extend(declared);
            for label in labels {
                assert!(declared.contains(label.as_str()), "{place}: {metric} has no label {label}: {text}");
            }
        }
        for label in grouped {
            assert!(known.contains(label.as_str()), "{place}: no metric there has the label {label}: {text}");
        }
    }
}

#[test]
fn every_expression_is_valid() {
    let folder = folder();
    let file = folder.path().join("rules.yaml");
    // JSON is YAML. A rule is an expression with a name.
    let rules: Vec<_> = expressions()
        .iter()
        .enumerate()
        .map(|(number, (_, text))| json!({"record": format!("e{number}"), "expr": text}))
        .collect();
    let groups = json!({"groups": [{"name": "expressions", "rules": rules}]});
    daemon::file::replace(&file, groups.to_string().as_bytes()).unwrap();
    let Some(output) = promtool(&["check".as_ref(), "rules".as_ref(), &file]) else { return };
    succeeded(&output);
}

#[test]
fn every_alert_fires_and_clears() {
    let tests = read("lab/scenarios/tests/monitoring/alerts.yaml");
    let alerts: BTreeSet<_> = rules().iter().map(|rule| rule["alert"].as_str().unwrap().to_owned()).collect();
    let cases: Value = serde_saphyr::from_str(&tests).unwrap();
    let cases = cases["tests"].as_array().unwrap();
    let evaluated = |fires: bool| -> BTreeSet<String> {
        let of_case = |case: &Value| case["alert_rule_test"].as_array().unwrap().clone();
        let evaluations = cases.iter().flat_map(of_case);
        let matching = evaluations.filter(|one| one["exp_alerts"].as_array().unwrap().is_empty() != fires);
        matching.map(|one| one["alertname"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((evaluated(true), evaluated(false)), (alerts.clone(), alerts));
    let folder = folder();
    let file = folder.path().join("tests.yaml");
    let path = root().join("charts/pull-secret/monitoring/alerts.yaml");
    let tests = tests.replace("rule_files: [ALERTS]", &format!("rule_files: [{}]", path.display()));
    daemon::file::replace(&file, tests.as_bytes()).unwrap();
    let Some(output) = promtool(&["test".as_ref(), "rules".as_ref(), &file]) else { return };
    succeeded(&output);
}

#[test]
fn every_alert_has_severity_owner_texts_and_a_runbook() {
    let runbooks = read("docs/operations/runbooks.md");
    let mut headings: Vec<_> = runbooks.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    for rule in rules() {
        let name = rule["alert"].as_str().unwrap();
        assert!(matches!(rule["labels"]["severity"].as_str(), Some("critical" | "warning")), "{rule}");
        assert!(matches!(rule["labels"]["owner"].as_str(), Some("fleet-plane" | "hosted-cluster")), "{rule}");
        let annotation = |name: &str| rule["annotations"][name].as_str().unwrap_or_default().to_owned();
        assert!(!annotation("summary").is_empty() && annotation("description").ends_with('.'), "{rule}");
        let anchor = format!("/docs/operations/runbooks.md#{}", name.to_lowercase());
        assert!(annotation("runbook_url").ends_with(&anchor), "{rule}");
        headings.retain(|heading| *heading != name);
        let section = runbooks.split(&format!("\n## {name}\n")).nth(1).unwrap_or_default();
        let section = section.split("\n## ").next().unwrap_or_default();
        for part in ["\nConfirm", "\n    ", "pull-secret ", "\nDo: ", "\nClears "] {
            assert!(section.contains(part), "{name}: the runbook has no `{}`", part.trim());
        }
    }
    assert_eq!(headings, [""; 0], "runbooks without an alert");
}

/// A credential that stands for a person is seen: the alerts and the dashboard name every such reason, and no other.
#[test]
fn every_reason_that_needs_a_person_is_watched() {
    let needs = |reason: &Reason| reason.needs_a_person();
    let wanted: BTreeSet<&str> = Reason::ALL.into_iter().filter(needs).map(Reason::as_str).collect();
    let reasons = |expression: &str| -> BTreeSet<String> {
        let is_selected = |part: &&str| part.starts_with("reason");
        let selected = expression.split("hyperfleet_credentials_standing{").skip(1).filter(is_selected);
        selected.flat_map(|part| part.split('"').nth(1).unwrap().split('|')).map(str::to_owned).collect()
    };
    let alerted: Vec<String> = rules().iter().flat_map(|rule| reasons(rule["expr"].as_str().unwrap())).collect();
    let mut watched: BTreeSet<&str> = alerted.iter().map(String::as_str).collect();
    assert_eq!(watched.len(), alerted.len(), "two alerts have the same reason: {alerted:?}");
    // The order that the policy `manual` demands: no fault.
    watched.insert(Reason::AwaitingApproval.as_str());
    assert_eq!(watched, wanted);
    let panels = &dashboards()["Registry Credentials"];
    let shown: BTreeSet<String> = panels.iter().flat_map(targets).flat_map(|text| reasons(&text)).collect();
    assert_eq!(shown.iter().map(String::as_str).collect::<BTreeSet<_>>(), wanted);
}

/// By which Grafana's users know what they see, and choose whose it is.
#[test]
fn every_panel_has_a_title_a_description_a_unit_and_the_chosen_data_source() {
    let mut titles = BTreeSet::new();
    for (dashboard, panels) in dashboards() {
        for panel in panels {
            let title = panel["title"].as_str().unwrap().to_owned();
            let text = |pointer: &str| panel.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            assert!(!text("/description").is_empty(), "{dashboard}: {title}");
            assert!(!text("/fieldConfig/defaults/unit").is_empty(), "{dashboard}: {title}");
            let sources = panel["targets"].as_array().unwrap().iter().map(|target| &target["datasource"]["uid"]);
            assert!(
                sources.chain([&panel["datasource"]["uid"]]).all(|uid| uid == "${datasource}"),
                "{dashboard}: {title}"
            );
            assert!(titles.insert((dashboard.clone(), title.clone())), "{dashboard}: {title} is there twice");
        }
    }
}

/// The panels that the specification lists.
#[test]
fn the_dashboards_have_the_panels_of_the_specification() {
    let dashboards = dashboards();
    for (dashboard, wanted) in [
        (
            "Pull Secret Overview",
            &["Jobs executed", "Average job duration", "GCP API call rate", "Kubernetes secret creation rate"][..],
        ),
        ("Error Tracking", &["Top error types", "Failure rate by cluster", "Retry attempts histogram"]),
        ("Performance", &["Job execution time", "GCP API latency (p95)", "Kubernetes API latency (p95)"]),
        ("Registry Credentials", &["Waiting for a person", "Pool"]),
        ("Global Pull Secret", &[]),
    ] {
        let titles: Vec<_> = dashboards[dashboard].iter().map(|panel| panel["title"].as_str().unwrap()).collect();
        for title in wanted {
            assert!(titles.contains(title), "{dashboard}: {titles:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_on_its_way_feeds_the_dashboards() {
    let folder = folder();
    let up = Up::in_folder(folder.path()).await;
    up.player.create("cls-1", &document("a")).await;
    up.player.make_ready(&up.cluster().await, "cls-1", 1).await;
    up.player.until("cls-1", |cluster| is_available(cluster, 1)).await;
    let wanted: BTreeSet<String> = dashboards()
        .values()
        .flatten()
        .flat_map(targets)
        .flat_map(|text| Expression::of(&text).metrics.into_iter().map(|(metric, _)| metric))
        .filter(|metric| !is_absent(metric))
        .collect();
    assert!(wanted.len() > 20, "{wanted:?}");
    // The end of the Job and the event are counted just after the report that was waited for.
    let mut left = wanted;
    for _scrape in 0..MAX_SCRAPES {
        let exposed = exposed(&up).await;
        left.retain(|metric| !exposed.contains(metric));
        if left.is_empty() {
            break;
        }
    }
    assert_eq!(left, BTreeSet::new(), "not exposed");
    let (code, _) = up.interrupt().await;
    assert_eq!(code, Some(0));
}

fn is_absent(metric: &str) -> bool {
    let is = |absent: &str| if absent.ends_with('_') { metric.starts_with(absent) } else { metric == absent };
    ABSENT.iter().any(|(absent, _why)| is(absent))
}

/// The names of all series that the fleet plane exposes.
async fn exposed(up: &Up) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, address) in up.ready["listeners"].as_object().unwrap().iter().filter(|(name, _)| name.ends_with("_metrics"))
    {
        let url = format!("http://{}/metrics", address.as_str().unwrap());
        let mut curl = tokio::process::Command::new("curl");
        let (code, text, _) = run(curl.args(["-sS", "--fail", "--noproxy", "*", &url])).await;
        assert_eq!(code, Some(0));
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        names.extend(samples.map(|line| line.split(['{', ' ']).next().unwrap_or_default().to_owned()));
    }
    names
}
