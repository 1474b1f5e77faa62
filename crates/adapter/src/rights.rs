//! The rights in Kubernetes that the adapter needs, as `deploy/` grants them.

use fleet_model::names;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Verbs on a kind of object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The group of the API; empty for the core.
    pub group: &'static str,
    /// The plural of the kind.
    pub resource: &'static str,
    /// The only object that they are needed on; `None` for any.
    pub name: Option<String>,
    /// The verbs.
    pub verbs: &'static [&'static str],
}

/// Returns the rights in the namespace of Jobs, for an adapter whose replicas share this Lease.
pub fn in_namespace(adapter: &str, lease: &str) -> Vec<Right> {
    let right = |group, resource, verbs| Right { group, resource, name: None, verbs };
    vec![
        right("batch", "jobs", &["create", "get", "list", "watch", "delete"]),
        right("", "pods", &["list"]),
        right("", "secrets", &["create", "get", "patch", "delete"]),
        right("", "events", &["create"]),
        right("", "configmaps", &["create"]),
        Right { name: Some(names::store_check_name(adapter)), ..right("", "configmaps", &["get", "patch"]) },
        right("coordination.k8s.io", "leases", &["create"]),
        Right { name: Some(lease.to_owned()), ..right("coordination.k8s.io", "leases", &["get", "update"]) },
    ]
}

/// Returns the rights in all namespaces of an adapter that grants access to each cluster's Secret
/// (`spec.kubernetes.serviceAccount`).
pub fn to_grant_access() -> Vec<Right> {
    let right = |resource, verbs| Right { group: RBAC, resource, name: None, verbs };
    vec![right("roles", &["create", "delete", "escalate", "bind"]), right("rolebindings", &["create", "delete"])]
}
