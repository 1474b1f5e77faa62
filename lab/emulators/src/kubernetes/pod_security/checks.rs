//! The checks of each level, in the order in which a real server reports them.

use serde_json::{Value, json};

use super::super::value::{list, members, number, text};

/// Capabilities that `baseline` lets a container add.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Kinds of volumes that `restricted` allows.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

pub(super) fn baseline(spec: &Value) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(capabilities(spec, &CAPABILITIES).map(|why| format!("non-default capabilities ({why})")));
    found.extend(host_namespaces(spec));
    let volumes: Vec<&str> = list(spec, "/volumes")
        .iter()
        .filter(|volume| volume.get("hostPath").is_some())
        .map(|volume| text(volume, "/name"))
        .collect();
    if !volumes.is_empty() {
        found.push(format!("hostPath volumes ({})", named("volume", &volumes)));
    }
    found.extend(host_ports(spec));
    found.extend(privileged(spec));
    found.extend(seccomp(spec, false));
    found
}

pub(super) fn restricted(spec: &Value) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(host_namespaces(spec));
    found.extend(host_ports(spec));
    found.extend(privileged(spec));
    found.extend(escalation(spec));
    let undropped = matching(spec, |container| {
        !list(container, "/securityContext/capabilities/drop").iter().any(|capability| capability == "ALL")
    });
    let mut why = Vec::new();
    if !undropped.is_empty() {
        let who = named("container", &undropped);
        why.push(format!("{who} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    why.extend(capabilities(spec, &["NET_BIND_SERVICE"]));
    if !why.is_empty() {
        found.push(format!("unrestricted capabilities ({})", why.join("; ")));
    }
    found.extend(volumes(spec));
    found.extend(non_root(spec));
    found.extend(root_user(spec));
    found.extend(seccomp(spec, true));
    found
}

/// The names of the containers of which something is true.
fn matching(spec: &Value, is_meant: impl Fn(&Value) -> bool) -> Vec<&str> {
    containers(spec).into_iter().filter(|(_, container)| is_meant(container)).map(|(name, _)| name).collect()
}

fn capabilities(spec: &Value, allowed: &[&str]) -> Option<String> {
    let added = |container: &Value| -> Vec<String> {
        let added = list(container, "/securityContext/capabilities/add").iter().filter_map(Value::as_str);
        added.filter(|capability| !allowed.contains(capability)).map(str::to_owned).collect()
    };
    let who = matching(spec, |container| !added(container).is_empty());
    let mut which: Vec<String> = containers(spec).iter().flat_map(|(_, container)| added(container)).collect();
    which.sort();
    which.dedup();
    let which: Vec<&str> = which.iter().map(String::as_str).collect();
    (!who.is_empty()).then(|| {
        format!("{} must not include {} in securityContext.capabilities.add", named("container", &who), quoted(&which))
    })
}

fn host_namespaces(spec: &Value) -> Option<String> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|name| spec.get(name) == Some(&json!(true)));
    let shared: Vec<String> = shared.map(|name| format!("{name}=true")).collect();
    (!shared.is_empty()).then(|| format!("host namespaces ({})", shared.join(", ")))
}

fn host_ports(spec: &Value) -> Option<String> {
    let ports = |container: &Value| -> Vec<i64> {
        let ports = list(container, "/ports").iter().filter_map(|port| number(port, "/hostPort"));
        ports.filter(|port| *port != 0).collect()
    };
    let who = matching(spec, |container| !ports(container).is_empty());
    let which: Vec<String> =
        containers(spec).iter().flat_map(|(_, container)| ports(container)).map(|port| port.to_string()).collect();
    let (verb, plural) = (if who.len() == 1 { "uses" } else { "use" }, if which.len() == 1 { "" } else { "s" });
    (!who.is_empty())
        .then(|| format!("hostPort ({} {verb} hostPort{plural} {})", named("container", &who), which.join(", ")))
}

fn privileged(spec: &Value) -> Option<String> {
    let who = matching(spec, |container| container.pointer("/securityContext/privileged") == Some(&json!(true)));
    (!who.is_empty())
        .then(|| format!("privileged ({} must not set securityContext.privileged=true)", named("container", &who)))
}

fn escalation(spec: &Value) -> Option<String> {
    let pointer = "/securityContext/allowPrivilegeEscalation";
    let who = matching(spec, |container| container.pointer(pointer) != Some(&json!(false)));
    (!who.is_empty()).then(|| {
        let who = named("container", &who);
        format!("allowPrivilegeEscalation != false ({who} must set securityContext.allowPrivilegeEscalation=false)")
    })
}

fn volumes(spec: &Value) -> Option<String> {
    let kind = |volume: &Value| -> Option<String> {
        let kinds = members(volume, "").into_iter().flatten().map(|(kind, _)| kind.as_str());
        kinds.filter(|kind| *kind != "name").find(|kind| !VOLUMES.contains(kind)).map(str::to_owned)
    };
    let found: Vec<(&str, String)> =
        list(spec, "/volumes").iter().filter_map(|volume| Some((text(volume, "/name"), kind(volume)?))).collect();
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    let mut kinds: Vec<&str> = found.iter().map(|(_, kind)| kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let (verb, plural) = (if names.len() == 1 { "uses" } else { "use" }, if kinds.len() == 1 { "" } else { "s" });
    (!names.is_empty()).then(|| {
        let who = named("volume", &names);
        format!("restricted volume types ({who} {verb} restricted volume type{plural} {})", quoted(&kinds))
    })
}

fn non_root(spec: &Value) -> Option<String> {
    let pointer = "/securityContext/runAsNonRoot";
    let set = |value: &Value| value.pointer(pointer).and_then(Value::as_bool);
    let wrong = matching(spec, |container| set(container) == Some(false));
    let unset = matching(spec, |container| set(container).is_none());
    let mut who = Vec::new();
    if set(spec) == Some(false) {
        who.push("pod".to_owned());
    }
    if !wrong.is_empty() {
        who.push(named("container", &wrong));
    }
    if !who.is_empty() {
        let who = who.join(" and ");
        return Some(format!("runAsNonRoot != true ({who} must not set securityContext.runAsNonRoot=false)"));
    }
    (set(spec).is_none() && !unset.is_empty()).then(|| {
        let who = named("container", &unset);
        format!("runAsNonRoot != true (pod or {who} must set securityContext.runAsNonRoot=true)")
    })
}

fn root_user(spec: &Value) -> Option<String> {
    let is_root = |value: &Value| number(value, "/securityContext/runAsUser") == Some(0);
    let wrong = matching(spec, is_root);
    let mut who = Vec::new();
    if is_root(spec) {
        who.push("pod".to_owned());
    }
    if !wrong.is_empty() {
        who.push(named("container", &wrong));
    }
    (!who.is_empty()).then(|| format!("runAsUser=0 ({} must not set runAsUser=0)", who.join(" and ")))
}

/// `baseline` forbids to switch the profile off, `restricted` requires one.
fn seccomp(spec: &Value, is_required: bool) -> Option<String> {
    let kind = |value: &Value| text(value, "/securityContext/seccompProfile/type").to_owned();
    let is_wrong = |value: &Value| !matches!(kind(value).as_str(), "" | "RuntimeDefault" | "Localhost");
    let wrong = matching(spec, is_wrong);
    let mut who = Vec::new();
    if is_wrong(spec) {
        who.push("pod".to_owned());
    }
    if !wrong.is_empty() {
        who.push(named("container", &wrong));
    }
    if !who.is_empty() {
        let who = who.join(" and ");
        return Some(format!(
            "seccompProfile ({who} must not set securityContext.seccompProfile.type to \"Unconfined\")"
        ));
    }
    let unset = matching(spec, |container| kind(container).is_empty());
    (is_required && kind(spec).is_empty() && !unset.is_empty()).then(|| {
        let who = named("container", &unset);
        let wanted = "\"RuntimeDefault\" or \"Localhost\"";
        format!("seccompProfile (pod or {who} must set securityContext.seccompProfile.type to {wanted})")
    })
}

/// The names of containers or volumes, each in quotes.
fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

/// `container "a"`, `containers "a", "b"`
fn named(kind: &str, names: &[&str]) -> String {
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{kind}{plural} {}", quoted(names))
}

/// All containers of a Pod in the order of their start.
fn containers(spec: &Value) -> Vec<(&str, &Value)> {
    let all = ["initContainers", "containers"].into_iter().flat_map(|member| list(spec, &format!("/{member}")));
    all.map(|container| (text(container, "/name"), container)).collect()
}
