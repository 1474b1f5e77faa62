//! Pods and templates of Pods.

use serde_json::{Value, json};

use super::super::quantity::Quantity;
use super::super::value::{child, list, object_at, set, set_default, take, text};

/// A Pod of its own.
pub(crate) fn pod(object: &mut Value) {
    object_at(object, &["spec"]);
    let spec = child(object, "spec");
    fill(spec);
    request_limits(spec);
    set_default(spec, &["enableServiceLinks"], true);
}

/// A container that only has limits requests as much.
fn request_limits(spec: &mut Value) {
    for member in ["containers", "initContainers"] {
        for container in spec.get_mut(member).and_then(Value::as_array_mut).into_iter().flatten() {
            let limits = container.pointer("/resources/limits").and_then(Value::as_object).cloned().unwrap_or_default();
            for (name, limit) in limits {
                set_default(container, &["resources", "requests", &name], limit);
            }
        }
    }
}

/// Members that admission adds to a Pod.
pub(crate) fn admit(object: &mut Value) {
    let spec = child(object, "spec");
    set_default(spec, &["serviceAccountName"], "default");
    let account = text(spec, "/serviceAccountName").to_owned();
    set_default(spec, &["serviceAccount"], account);
    set_default(spec, &["preemptionPolicy"], "PreemptLowerPriority");
    set_default(spec, &["priority"], 0);
    let toleration = |key: &str| {
        let key = format!("node.kubernetes.io/{key}");
        json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    };
    set_default(spec, &["tolerations"], json!([toleration("not-ready"), toleration("unreachable")]));
    let quality = quality(spec);
    set_default(object, &["status", "phase"], "Pending");
    set_default(object, &["status", "qosClass"], quality);
}

/// The template in a workload's specification.
pub(crate) fn template(spec: &mut Value) {
    if let Some(template) = spec.get_mut("template").filter(|template| template.is_object()) {
        if template.pointer("/metadata/creationTimestamp") == Some(&Value::Null) {
            take(template, &["metadata", "creationTimestamp"]);
        }
        if let Some(spec) = template.get_mut("spec").filter(|spec| spec.is_object()) {
            fill(spec);
        }
    }
}

fn fill(spec: &mut Value) {
    set_default(spec, &["restartPolicy"], "Always");
    set_default(spec, &["dnsPolicy"], "ClusterFirst");
    set_default(spec, &["schedulerName"], "default-scheduler");
    set_default(spec, &["terminationGracePeriodSeconds"], 30);
    set_default(spec, &["securityContext"], json!({}));
    let account = text(spec, "/serviceAccountName").to_owned();
    if !account.is_empty() {
        set_default(spec, &["serviceAccount"], account);
    }
    for member in ["containers", "initContainers"] {
        if let Some(Value::Array(containers)) = spec.get_mut(member) {
            containers.iter_mut().filter(|container| container.is_object()).for_each(container);
        }
    }
    if let Some(Value::Array(volumes)) = spec.get_mut("volumes") {
        for volume in volumes {
            if volume.as_object().is_some_and(|members| members.len() == 1) {
                set(volume, &["emptyDir"], json!({}));
            }
            for source in ["secret", "configMap", "projected", "downwardAPI"] {
                if volume.get(source).is_some() {
                    set_default(volume, &[source, "defaultMode"], 0o644);
                }
            }
        }
    }
}

fn container(container: &mut Value) {
    let image = text(container, "/image").to_owned();
    let last = image.rsplit('/').next().unwrap_or_default();
    let latest = !image.contains('@') && last.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    set_default(container, &["imagePullPolicy"], if latest { "Always" } else { "IfNotPresent" });
    set_default(container, &["terminationMessagePath"], "/dev/termination-log");
    set_default(container, &["terminationMessagePolicy"], "File");
    set_default(container, &["resources"], json!({}));
    for kind in ["limits", "requests"] {
        let quantities = container.pointer_mut(&format!("/resources/{kind}")).and_then(Value::as_object_mut);
        for quantity in quantities.into_iter().flat_map(serde_json::Map::values_mut) {
            let text = quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned);
            if let Some(read) = Quantity::read(&text) {
                *quantity = read.to_string().into();
            }
        }
    }
    if let Some(Value::Array(ports)) = container.get_mut("ports") {
        for port in ports {
            set_default(port, &["protocol"], "TCP");
        }
    }
    if let Some(Value::Array(variables)) = container.get_mut("env") {
        for variable in &mut *variables {
            if variable.get("value") == Some(&json!("")) {
                take(variable, &["value"]);
            }
        }
        for variable in variables.iter_mut().filter(|variable| variable.pointer("/valueFrom/fieldRef").is_some()) {
            set_default(variable, &["valueFrom", "fieldRef", "apiVersion"], "v1");
        }
    }
    for (probe, timeout, period, failures) in
        [("livenessProbe", 1, 10, 3), ("readinessProbe", 1, 10, 3), ("startupProbe", 1, 10, 3)]
    {
        if container.get(probe).is_some() {
            if container.pointer(&format!("/{probe}/httpGet")).is_some() {
                set_default(container, &[probe, "httpGet", "scheme"], "HTTP");
            }
            set_default(container, &[probe, "timeoutSeconds"], timeout);
            set_default(container, &[probe, "periodSeconds"], period);
            set_default(container, &[probe, "successThreshold"], 1);
            set_default(container, &[probe, "failureThreshold"], failures);
        }
    }
}

/// The class by which a node would choose whom to evict.
fn quality(spec: &Value) -> &'static str {
    let mut all_equal = true;
    let mut any = false;
    for container in list(spec, "/containers") {
        let (limits, requests) = (container.pointer("/resources/limits"), container.pointer("/resources/requests"));
        any |= limits.is_some() || requests.is_some();
        let complete = limits.is_some_and(|limits| limits.get("cpu").is_some() && limits.get("memory").is_some());
        all_equal &= complete && (requests.is_none() || requests == limits);
    }
    match (any, all_equal) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
