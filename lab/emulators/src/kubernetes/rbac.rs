//! Authorization by Roles, `ClusterRoles` and their bindings.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::meta;
use super::route::Place;
use super::status::{About, Status};
use super::store::{Object, State, Writing};
use super::tokens::{MASTERS, User};
use super::value::{list, text};

/// A request to authorize.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    /// Empty for cluster-wide objects and for all namespaces.
    pub(crate) namespace: String,
    /// Empty if no one object is meant.
    pub(crate) name: String,
    /// In place of all the others but the verb, for what is no resource.
    pub(crate) path: String,
}

/// Paths that every authenticated user may read.
const OPEN_PATHS: [&str; 7] = ["/api", "/apis", "/healthz", "/livez", "/readyz", "/openapi", "/version"];

impl Attributes {
    /// A verb on a place, whether or not a kind is served there.
    pub(crate) fn of(place: &Place, verb: &str) -> Self {
        let Place { group, plural, namespace, name, subresource, .. } = place.clone();
        Self { verb: verb.to_owned(), group, resource: plural, subresource, namespace, name, path: String::new() }
    }

    /// `pods/log`
    fn resource_with_subresource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// The refusal in a real server's words.
    pub(crate) fn refusal(&self, user: &User) -> Status {
        let who = &user.name;
        if !self.path.is_empty() {
            let message = format!("forbidden: User {who:?} cannot {} path {:?}", self.verb, self.path);
            return Status::new(403, message);
        }
        let place = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", self.namespace)
        };
        let Self { verb, group, .. } = self;
        let resource = self.resource_with_subresource();
        let why = format!("User {who:?} cannot {verb} resource {resource:?} in API group {group:?} {place}");
        Status::forbidden(About { group, kind: &self.resource, name: &self.name }, &why)
    }
}

/// The rule by which a user may do something; none if not allowed.
pub(crate) fn allows(state: &State, user: &User, attributes: &Attributes) -> Option<String> {
    if user.groups.iter().any(|group| group == MASTERS) {
        return Some(String::new());
    }
    let authenticated = user.groups.iter().any(|group| group == "system:authenticated");
    let reviews = attributes.group == "authorization.k8s.io" || attributes.group == "authentication.k8s.io";
    let open =
        OPEN_PATHS.iter().any(|path| attributes.path == *path || attributes.path.starts_with(&format!("{path}/")));
    if authenticated && (open && attributes.verb == "get" || reviews && attributes.verb == "create") {
        return Some(String::new());
    }
    granting(state, user, &attributes.namespace).into_iter().find_map(|(reason, rules)| {
        let granted = rules.iter().any(|rule| covers(rule, attributes));
        granted.then_some(reason)
    })
}

/// The rules that hold for a user in a namespace, each list with the binding that grants it.
pub(crate) fn granting(state: &State, user: &User, namespace: &str) -> Vec<(String, Vec<Value>)> {
    let mut found = Vec::new();
    let bindings = |kind: &str, namespace: Option<&str>| -> Vec<Object> {
        let resource = state.resource(&format!("{kind}.rbac.authorization.k8s.io"));
        resource.map_or_else(|_| Vec::new(), |resource| state.list(&resource, namespace).cloned().collect())
    };
    let mut all = bindings("clusterrolebindings", None);
    if !namespace.is_empty() {
        all.extend(bindings("rolebindings", Some(namespace)));
    }
    for binding in all {
        let Some(subject) = list(&binding, "/subjects").iter().find(|subject| is_meant(subject, user, &binding)) else {
            continue;
        };
        let place = meta::namespace(&binding);
        let (kind, role) = (text(&binding, "/roleRef/kind"), text(&binding, "/roleRef/name"));
        let plural = if kind == "Role" { "roles" } else { "clusterroles" };
        let Ok(resource) = state.resource(&format!("{plural}.rbac.authorization.k8s.io")) else { continue };
        let Some(role_object) = state.find(&resource, if kind == "Role" { place } else { "" }, role) else { continue };
        let name = if place.is_empty() {
            meta::name(&binding).to_owned()
        } else {
            format!("{}/{place}", meta::name(&binding))
        };
        let binding_kind = text(&binding, "/kind");
        let (subject_kind, subject_name) = (text(subject, "/kind"), text(subject, "/name"));
        let subject_name = match text(subject, "/namespace") {
            "" => subject_name.to_owned(),
            place => format!("{subject_name}/{place}"),
        };
        let reason =
            format!("RBAC: allowed by {binding_kind} {name:?} of {kind} {role:?} to {subject_kind} {subject_name:?}");
        found.push((reason, list(role_object, "/rules").to_vec()));
    }
    found
}

fn is_meant(subject: &Value, user: &User, binding: &Value) -> bool {
    let name = text(subject, "/name");
    match text(subject, "/kind") {
        "User" => user.name == name,
        "Group" => user.groups.iter().any(|group| group == name),
        "ServiceAccount" => {
            let place = match text(subject, "/namespace") {
                "" => meta::namespace(binding),
                place => place,
            };
            user.name == format!("system:serviceaccount:{place}:{name}")
        }
        _ => false,
    }
}

fn covers(rule: &Value, attributes: &Attributes) -> bool {
    let has = |member: &str, wanted: &str| list(rule, member).iter().any(|allowed| allowed == "*" || allowed == wanted);
    if !has("/verbs", &attributes.verb) {
        return false;
    }
    if !attributes.path.is_empty() {
        return list(rule, "/nonResourceURLs").iter().filter_map(Value::as_str).any(|allowed| {
            allowed == attributes.path
                || allowed.strip_suffix('*').is_some_and(|prefix| attributes.path.starts_with(prefix))
        });
    }
    let resource = attributes.resource_with_subresource();
    let any_resource = has("/resources", &resource)
        || !attributes.subresource.is_empty()
            && list(rule, "/resources").iter().any(|allowed| *allowed == format!("*/{}", attributes.subresource));
    let names = list(rule, "/resourceNames");
    has("/apiGroups", &attributes.group)
        && any_resource
        && (names.is_empty() || names.iter().any(|name| *name == attributes.name))
}

/// Refuses to grant what the granter does not have, as the real server does.
pub(crate) fn check_escalation(state: &State, user: &User, object: &Value) -> Result<(), Status> {
    if user.groups.iter().any(|group| group == MASTERS) || may_grant_anything(state, user, object) {
        return Ok(());
    }
    let namespace = meta::namespace(object);
    let rules = match text(object, "/kind") {
        "Role" | "ClusterRole" => list(object, "/rules").to_vec(),
        "RoleBinding" | "ClusterRoleBinding" => referred(state, object)?,
        _ => return Ok(()),
    };
    let missing: Vec<String> = rules
        .iter()
        .flat_map(wishes)
        .map(|attributes| Attributes { namespace: namespace.to_owned(), ..attributes })
        .filter(|attributes| allows(state, user, attributes).is_none())
        .map(|attributes| {
            format!(
                "{{APIGroups:[{:?}], Resources:[{:?}], Verbs:[{:?}]}}",
                attributes.group, attributes.resource, attributes.verb
            )
        })
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let kind = text(object, "/kind").to_lowercase() + "s";
    let about = About { group: "rbac.authorization.k8s.io", kind: &kind, name: meta::name(object) };
    let groups: Vec<String> = user.groups.iter().map(|group| format!("{group:?}")).collect();
    let why = format!(
        "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        groups.join(" "),
        missing.join("\n")
    );
    Err(Status::forbidden(about, &why))
}

/// Returns true for the verb `escalate` on roles, and for `bind` on the role that a binding names.
fn may_grant_anything(state: &State, user: &User, object: &Value) -> bool {
    let (verb, kind, name) = match text(object, "/kind") {
        "RoleBinding" | "ClusterRoleBinding" => ("bind", text(object, "/roleRef/kind"), text(object, "/roleRef/name")),
        kind => ("escalate", kind, ""),
    };
    let attributes = Attributes {
        verb: verb.to_owned(),
        group: "rbac.authorization.k8s.io".to_owned(),
        resource: kind.to_lowercase() + "s",
        namespace: meta::namespace(object).to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    };
    allows(state, user, &attributes).is_some()
}

/// The rules of the role that a binding binds.
fn referred(state: &State, binding: &Value) -> Result<Vec<Value>, Status> {
    let is_role = text(binding, "/roleRef/kind") == "Role";
    let plural = if is_role { "roles" } else { "clusterroles" };
    let namespace = if is_role { meta::namespace(binding) } else { "" };
    let resource = state.resource(&format!("{plural}.rbac.authorization.k8s.io"))?;
    let role = state.find(&resource, namespace, text(binding, "/roleRef/name"));
    let bindings = text(binding, "/kind").to_lowercase() + "s";
    let about = About { group: "rbac.authorization.k8s.io", kind: &bindings, name: meta::name(binding) };
    role.map(|role| list(role, "/rules").to_vec()).ok_or_else(|| Status::not_found(about))
}

/// Every single thing that a rule allows.
fn wishes(rule: &Value) -> Vec<Attributes> {
    let texts = |pointer: &str| -> Vec<String> {
        list(rule, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let names = match texts("/resourceNames") {
        names if names.is_empty() => vec![String::new()],
        names => names,
    };
    let mut wishes = Vec::new();
    for verb in texts("/verbs") {
        for group in texts("/apiGroups") {
            for resource in texts("/resources") {
                let (resource, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
                wishes.extend(names.iter().map(|name| Attributes {
                    verb: verb.clone(),
                    group: group.clone(),
                    resource: resource.to_owned(),
                    subresource: subresource.to_owned(),
                    name: name.clone(),
                    ..Attributes::default()
                }));
            }
        }
    }
    wishes
}

/// Makes the `ClusterRole` of those who may do everything, and the one of those who may look.
pub(crate) fn bootstrap(state: &mut State, now: Timestamp) -> Result<(), Status> {
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let paths = json!({"nonResourceURLs": ["*"], "verbs": ["*"]});
    let look = json!({"apiGroups": ["", "batch", "apps", "events.k8s.io", "coordination.k8s.io"],
        "resources": ["configmaps", "events", "jobs", "daemonsets", "leases", "namespaces", "pods", "pods/log", "serviceaccounts"],
        "verbs": ["get", "list", "watch"]});
    let group = |name: &str| json!([{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": name}]);
    let role = |name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
    let objects = [
        ("clusterroles", "cluster-admin", json!({"rules": [all, paths]})),
        ("clusterroles", "view", json!({"rules": [look]})),
        ("clusterrolebindings", "cluster-admin", json!({"roleRef": role("cluster-admin"), "subjects": group(MASTERS)})),
    ];
    for (plural, name, mut object) in objects {
        let resource = state.resource(&format!("{plural}.rbac.authorization.k8s.io"))?;
        if state.find(&resource, "", name).is_none() {
            super::value::set(&mut object, &["metadata", "name"], name);
            state.create(&Writing::internal(&resource, "", name, now), object)?;
        }
    }
    Ok(())
}
