//! The cells of the built-in kinds, in the order of their columns.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::meta;
use super::super::value::{list, members, number, text};
use super::words::{NONE, UNKNOWN, age, pairs, since, span};

/// The cells of an object's row.
pub(crate) fn of(storage: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = json!(meta::name(object));
    let age = json!(age(object, now));
    let size = |pointer: &str| members(object, pointer).map_or(0, serde_json::Map::len);
    match storage {
        "namespaces" => vec![name, json!(text(object, "/status/phase")), age],
        "secrets" => vec![name, json!(text(object, "/type")), json!(size("/data")), age],
        "configmaps" => vec![name, json!(size("/data") + size("/binaryData")), age],
        "pods" => pod(object, name, age, now),
        "nodes" => node(object, name, age),
        "events" => event(object, now),
        "jobs.batch" => job(object, name, age, now),
        "daemonsets.apps" => daemon_set(object, name, age),
        "leases.coordination.k8s.io" => vec![name, json!(text(object, "/spec/holderIdentity")), age],
        "customresourcedefinitions.apiextensions.k8s.io" => definition(object, name),
        "roles.rbac.authorization.k8s.io" | "clusterroles.rbac.authorization.k8s.io" => {
            vec![name, json!(text(object, "/metadata/creationTimestamp"))]
        }
        "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io" => {
            binding(object, name, age)
        }
        _ => vec![name, age],
    }
}

fn or<'a>(found: &'a str, otherwise: &'a str) -> &'a str {
    if found.is_empty() { otherwise } else { found }
}

fn joined(object: &Value, pointer: &str, member: &str) -> String {
    let values: Vec<&str> = list(object, pointer).iter().map(|item| text(item, member)).collect();
    values.join(",")
}

fn pod(object: &Value, name: Value, age: Value, now: Timestamp) -> Vec<Value> {
    let statuses = list(object, "/status/containerStatuses");
    let ready = statuses.iter().filter(|status| status.get("ready") == Some(&json!(true))).count();
    let restarts: i64 = statuses.iter().filter_map(|status| number(status, "/restartCount")).sum();
    let last = statuses.iter().map(|status| text(status, "/lastState/terminated/finishedAt")).max().unwrap_or_default();
    let restarts = match last {
        "" => restarts.to_string(),
        last => format!("{restarts} ({} ago)", since(last, now)),
    };
    vec![
        name,
        json!(format!("{ready}/{}", list(object, "/spec/containers").len())),
        json!(pod_state(object)),
        json!(restarts),
        age,
        json!(or(text(object, "/status/podIP"), NONE)),
        json!(or(text(object, "/spec/nodeName"), NONE)),
        json!(or(text(object, "/status/nominatedNodeName"), NONE)),
        json!(NONE),
    ]
}

/// The state of a Pod in one word.
fn pod_state(object: &Value) -> String {
    let mut state = or(text(object, "/status/reason"), or(text(object, "/status/phase"), "Unknown")).to_owned();
    for status in list(object, "/status/containerStatuses").iter().rev() {
        let waiting = text(status, "/state/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut state);
        } else if let Some(ended) = status.pointer("/state/terminated") {
            state = match (text(ended, "/reason"), number(ended, "/signal").unwrap_or_default()) {
                ("", 0) => format!("ExitCode:{}", number(ended, "/exitCode").unwrap_or_default()),
                ("", signal) => format!("Signal:{signal}"),
                (reason, _) => reason.to_owned(),
            };
        }
    }
    if meta::is_deleting(object) { "Terminating".to_owned() } else { state }
}

fn node(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let ready = list(object, "/status/conditions").iter().find(|condition| text(condition, "/type") == "Ready");
    let mut state = match ready.map(|ready| text(ready, "/status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if object.pointer("/spec/unschedulable") == Some(&json!(true)) {
        state.push_str(",SchedulingDisabled");
    }
    let prefix = "node-role.kubernetes.io/";
    let labels = members(object, "/metadata/labels").into_iter().flatten();
    let roles: Vec<&str> = labels.filter_map(|(key, _)| key.strip_prefix(prefix)).collect();
    let address = |kind: &str| {
        let found = list(object, "/status/addresses").iter().find(|address| text(address, "/type") == kind);
        json!(found.map_or(NONE, |address| text(address, "/address")))
    };
    let node_info = |member: &str| json!(or(text(object, &format!("/status/nodeInfo/{member}")), UNKNOWN));
    vec![
        name,
        json!(state),
        json!(or(&roles.join(","), NONE)),
        age,
        json!(text(object, "/status/nodeInfo/kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        node_info("osImage"),
        node_info("kernelVersion"),
        node_info("containerRuntimeVersion"),
    ]
}

fn event(object: &Value, now: Timestamp) -> Vec<Value> {
    let first = or(text(object, "/firstTimestamp"), text(object, "/eventTime"));
    let series = text(object, "/series/lastObservedTime");
    let last = or(series, or(text(object, "/lastTimestamp"), first));
    let about = text(object, "/involvedObject/kind").to_lowercase();
    let component = or(text(object, "/source/component"), text(object, "/reportingComponent"));
    let host = or(text(object, "/source/host"), text(object, "/reportingInstance"));
    let source = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    let count = number(object, "/series/count").or_else(|| number(object, "/count")).unwrap_or(1).max(1);
    vec![
        json!(since(last, now)),
        json!(text(object, "/type")),
        json!(text(object, "/reason")),
        json!(format!("{about}/{}", text(object, "/involvedObject/name"))),
        json!(text(object, "/involvedObject/fieldPath")),
        json!(source),
        json!(text(object, "/message").trim()),
        json!(since(first, now)),
        json!(count),
        json!(meta::name(object)),
    ]
}

fn job(object: &Value, name: Value, age: Value, now: Timestamp) -> Vec<Value> {
    let is_true = |kind: &str| {
        let mut conditions = list(object, "/status/conditions").iter();
        conditions.any(|condition| text(condition, "/type") == kind && text(condition, "/status") == "True")
    };
    let states = [
        (is_true("Complete"), "Complete"),
        (is_true("Failed"), "Failed"),
        (meta::is_deleting(object), "Terminating"),
        (is_true("Suspended"), "Suspended"),
        (is_true("FailureTarget"), "FailureTarget"),
        (is_true("SuccessCriteriaMet"), "SuccessCriteriaMet"),
    ];
    let state = states.iter().find(|state| state.0).map_or("Running", |state| state.1);
    let succeeded = number(object, "/status/succeeded").unwrap_or_default();
    let completions = match number(object, "/spec/completions") {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None => match number(object, "/spec/parallelism").unwrap_or(1) {
            parallelism if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
            _ => format!("{succeeded}/1"),
        },
    };
    let started = meta::time(object, "/status/startTime");
    let ended = meta::time(object, "/status/completionTime").unwrap_or(now);
    let duration = started.map_or_else(String::new, |started| span(ended.duration_since(started).as_secs()));
    let containers = "/spec/template/spec/containers";
    vec![
        name,
        json!(state),
        json!(completions),
        json!(duration),
        age,
        json!(joined(object, containers, "/name")),
        json!(joined(object, containers, "/image")),
        json!(pairs(object, "/spec/selector/matchLabels")),
    ]
}

fn daemon_set(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let count = |member: &str| json!(number(object, &format!("/status/{member}")).unwrap_or_default());
    let containers = "/spec/template/spec/containers";
    vec![
        name,
        count("desiredNumberScheduled"),
        count("currentNumberScheduled"),
        count("numberReady"),
        count("updatedNumberScheduled"),
        count("numberAvailable"),
        json!(pairs(object, "/spec/template/spec/nodeSelector")),
        age,
        json!(joined(object, containers, "/name")),
        json!(joined(object, containers, "/image")),
        json!(pairs(object, "/spec/selector/matchLabels")),
    ]
}

fn definition(object: &Value, name: Value) -> Vec<Value> {
    let served = list(object, "/spec/versions").iter().filter(|version| version.get("served") == Some(&json!(true)));
    let versions: Vec<&str> = served.map(|version| text(version, "/name")).collect();
    let short: Vec<&str> = list(object, "/spec/names/shortNames").iter().filter_map(Value::as_str).collect();
    let mut conditions = list(object, "/status/conditions").iter();
    let established =
        conditions.any(|condition| text(condition, "/type") == "Established" && text(condition, "/status") == "True");
    vec![
        name,
        json!(text(object, "/spec/scope")),
        json!(versions.join(",")),
        json!(text(object, "/metadata/creationTimestamp")),
        json!(text(object, "/spec/group")),
        json!(text(object, "/spec/names/kind")),
        json!(short.join(",")),
        json!(established),
    ]
}

fn binding(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let subjects = |kind: &str| {
        let names = list(object, "/subjects").iter().filter(|subject| text(subject, "/kind") == kind);
        let names: Vec<String> = names
            .map(|subject| match text(subject, "/namespace") {
                "" => text(subject, "/name").to_owned(),
                place => format!("{place}/{}", text(subject, "/name")),
            })
            .collect();
        json!(names.join(", "))
    };
    let role = format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
    vec![name, json!(role), age, subjects("User"), subjects("Group"), subjects("ServiceAccount")]
}
