//! Jobs: their policies, the fields that change and those that do not, and the end that a status may claim.

use serde_json::{Value, json};

use super::super::meta;
use super::super::status::Cause;
use super::super::value::{list, number, take, text};
use super::names;
use super::workloads::{immutable, pod_spec};

pub(crate) fn job(object: &Value) -> Vec<Cause> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let mut causes = Vec::new();
    for member in ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"] {
        if let Some(value) = number(spec, &format!("/{member}")).filter(|value| *value < 0) {
            let message = "must be greater than or equal to 0";
            causes.push(Cause::invalid(&format!("spec.{member}"), &json!(value), message));
        }
    }
    causes.extend(indexes(spec));
    causes.extend(pod_spec(spec.pointer("/template/spec").unwrap_or(&Value::Null), "spec.template.spec"));
    let policy = text(spec, "/template/spec/restartPolicy");
    if policy == "Always" {
        causes.push(Cause::required("spec.template.spec.restartPolicy", "valid values: \"OnFailure\", \"Never\""));
    }
    if spec.get("podFailurePolicy").is_some() && policy == "OnFailure" {
        let message = "only \"Never\" is supported when podFailurePolicy is specified";
        causes.push(Cause::invalid("spec.template.spec.restartPolicy", &json!(policy), message));
    }
    causes.extend(replacement(spec));
    for (index, rule) in list(spec, "/podFailurePolicy/rules").iter().enumerate() {
        causes.extend(failure_rule(spec, rule, &format!("spec.podFailurePolicy.rules[{index}]")));
    }
    causes
}

/// The faults that only a new Job can have: what it brings must not get in the way of the selector that it is given.
pub(crate) fn created(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = meta::name(object);
    // The Job's name becomes a label of its Pods.
    causes.extend(names::label_value(name).map(|wrong| Cause::invalid("spec.template.labels", &json!(name), &wrong)));
    if object.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return causes;
    }
    let labels = object.pointer("/spec/template/metadata/labels").unwrap_or(&Value::Null);
    let reserved = [("controller-uid", meta::uid(object)), ("job-name", name)];
    for (label, wanted) in reserved {
        for label in [format!("batch.kubernetes.io/{label}"), label.to_owned()] {
            if labels.get(&label).is_some_and(|found| *found != wanted) {
                let field = format!("spec.template.metadata.labels[{label}]");
                causes.push(Cause::invalid(&field, labels, &format!("must be '{wanted}'")));
            }
        }
    }
    let uid = json!({"batch.kubernetes.io/controller-uid": meta::uid(object)});
    if object.pointer("/spec/selector/matchLabels").is_some_and(|selector| *selector != uid) {
        let selector = object.pointer("/spec/selector").unwrap_or(&Value::Null);
        causes.push(Cause::invalid("spec.selector", selector, "`selector` not auto-generated"));
        let message = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", labels, message));
    }
    causes
}

/// The faults of members that go with indexes only.
fn indexes(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let completions = number(spec, "/completions");
    if text(spec, "/completionMode") == "Indexed" {
        if completions.is_none() {
            causes.push(Cause::required("spec.completions", "when completion mode is Indexed"));
        }
        for (index, rule) in list(spec, "/successPolicy/rules").iter().enumerate() {
            let count = number(rule, "/succeededCount");
            if let (Some(count), Some(completions)) = (count, completions)
                && count > completions
            {
                let message =
                    format!("must be less than or equal to {completions} (the number of specified completions)");
                let field = format!("spec.successPolicy.rules[{index}].succeededCount");
                causes.push(Cause::invalid(&field, &json!(count), &message));
            }
        }
        return causes;
    }
    for member in ["backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"] {
        if let Some(given) = spec.get(member) {
            causes.push(Cause::invalid(&format!("spec.{member}"), given, "requires indexed completion mode"));
        }
    }
    causes
}

/// With a podFailurePolicy, Pods are replaced once they have failed.
fn replacement(spec: &Value) -> Option<Cause> {
    let given = text(spec, "/podReplacementPolicy");
    let supported: &[&str] =
        if spec.get("podFailurePolicy").is_some() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    (!supported.contains(&given)).then(|| Cause::unsupported("spec.podReplacementPolicy", given, supported))
}

fn failure_rule(spec: &Value, rule: &Value, field: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let action = text(rule, "/action");
    if !matches!(action, "FailJob" | "FailIndex" | "Ignore" | "Count") {
        let supported = ["Count", "FailIndex", "FailJob", "Ignore"];
        causes.push(Cause::unsupported(&format!("{field}.action"), action, &supported));
    }
    if action == "FailIndex" && spec.get("backoffLimitPerIndex").is_none() {
        let message = "requires the backoffLimitPerIndex to be set";
        causes.push(Cause::invalid(&format!("{field}.action"), &json!(action), message));
    }
    let conditions = !list(rule, "/onPodConditions").is_empty();
    match (rule.get("onExitCodes"), conditions) {
        (Some(_), true) => {
            causes.push(wrong(field, "specifying both OnExitCodes and OnPodConditions is not supported"));
        }
        (None, false) => causes.push(wrong(field, "specifying one of OnExitCodes and OnPodConditions is required")),
        (Some(codes), false) => causes.extend(exit_codes(spec, codes, &format!("{field}.onExitCodes"))),
        (None, true) => {}
    }
    causes
}

/// A fault that names no value.
fn wrong(field: &str, message: &str) -> Cause {
    let message = format!("Invalid value: {message}");
    Cause { reason: "FieldValueInvalid".to_owned(), message, field: field.to_owned() }
}

fn exit_codes(spec: &Value, codes: &Value, field: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let operator = text(codes, "/operator");
    if !matches!(operator, "In" | "NotIn") {
        causes.push(Cause::unsupported(&format!("{field}.operator"), operator, &["In", "NotIn"]));
    }
    if let Some(name) = codes.get("containerName").and_then(Value::as_str) {
        let containers = list(spec, "/template/spec/containers").iter();
        let mut all = containers.chain(list(spec, "/template/spec/initContainers"));
        if !all.any(|container| text(container, "/name") == name) {
            let message = "must be one of the container or initContainer names in the pod template";
            causes.push(Cause::invalid(&format!("{field}.containerName"), &json!(name), message));
        }
    }
    let values = list(codes, "/values");
    for (index, value) in values.iter().enumerate() {
        let at = format!("{field}.values[{index}]");
        if operator == "In" && *value == json!(0) {
            causes.push(Cause::invalid(&at, value, "must not be 0 for the In operator"));
        }
        if values.iter().take(index).any(|earlier| earlier == value) {
            let message = format!("Duplicate value: {value}");
            causes.push(Cause { reason: "FieldValueDuplicate".to_owned(), message, field: at });
        }
    }
    let numbers: Vec<i64> = values.iter().filter_map(Value::as_i64).collect();
    if !numbers.is_sorted() {
        causes.push(Cause::invalid(&format!("{field}.values"), &json!(numbers), "must be ordered"));
    }
    causes
}

pub(crate) fn job_updated(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let changed = |member: &str| immutable(old, new, &format!("/spec/{member}"), &format!("spec.{member}"));
    let template = |object: &Value| {
        let mut template = object.pointer("/spec/template").cloned().unwrap_or_default();
        if new.pointer("/spec/suspend") == Some(&json!(true)) {
            // While no Pod runs, the scheduling of those to come may still be directed.
            for path in [&["metadata"][..], &["spec", "nodeSelector"], &["spec", "tolerations"], &["spec", "affinity"]]
            {
                take(&mut template, path);
            }
        }
        template
    };
    causes.extend(changed("completions"));
    if let Some(cause) = changed("selector") {
        let labels = new.pointer("/spec/template/metadata/labels").unwrap_or(&Value::Null);
        let message = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", labels, message));
        causes.push(cause);
    }
    if template(old) != template(new) {
        let part =
            if old.pointer("/spec/template/spec") == new.pointer("/spec/template/spec") { "metadata" } else { "spec" };
        let shown = new.pointer(&format!("/spec/template/{part}")).unwrap_or(&Value::Null);
        causes.push(Cause::invalid(&format!("spec.template.{part}"), shown, "field is immutable"));
    }
    causes.extend(["podFailurePolicy", "completionMode", "successPolicy"].into_iter().filter_map(changed));
    causes.extend(end(new));
    causes
}

/// The end that a status claims needs its interim condition and its times, as the Job controller writes them.
fn end(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let conditions = list(object, "/status/conditions");
    let holds = |kind: &str| {
        conditions.iter().any(|condition| text(condition, "/type") == kind && text(condition, "/status") == "True")
    };
    let (complete, failed) = (holds("Complete"), holds("Failed"));
    if complete && text(object, "/status/completionTime").is_empty() {
        let message = "completionTime is required for Complete jobs";
        causes.push(Cause::required("status.completionTime", message));
    }
    if complete && !holds("SuccessCriteriaMet") {
        let message = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        causes.push(wrong("status.conditions", message));
    }
    if failed && !holds("FailureTarget") {
        let message = "cannot set Failed=True condition without the FailureTarget=true condition";
        causes.push(wrong("status.conditions", message));
    }
    if (complete || failed) && text(object, "/status/startTime").is_empty() {
        causes.push(Cause::required("status.startTime", "startTime is required for finished job"));
    }
    causes
}
