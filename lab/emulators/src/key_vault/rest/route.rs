//! Routing: the operation and the target of a path.

use crate::key_vault::operation::Operation;

/// A path that this API has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Routed {
    pub(super) operation: Operation,
    pub(super) name: String,
    pub(super) version: Option<String>,
}

impl Routed {
    /// The name, with the version if there is one.
    pub(super) fn resource(&self) -> String {
        match &self.version {
            Some(version) => format!("{}/{version}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Finds the operation; none if there is no such path, as one without a name. A slash at the end stands for an absent version.
pub(super) fn route(method: &http::Method, path: &str) -> Option<Routed> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<&str> = path.split('/').collect();
    if segments.contains(&"") {
        return None;
    }
    let (operation, name, version) = match (method.as_str(), segments.as_slice()) {
        ("GET", ["secrets"]) => (Operation::GetSecrets, "", None),
        ("PUT", ["secrets", name]) => (Operation::SetSecret, *name, None),
        ("GET", ["secrets", name]) => (Operation::GetSecret, *name, None),
        ("PATCH", ["secrets", name]) => (Operation::UpdateSecret, *name, None),
        ("DELETE", ["secrets", name]) => (Operation::DeleteSecret, *name, None),
        ("GET", ["secrets", name, "versions"]) => (Operation::GetSecretVersions, *name, None),
        ("GET", ["secrets", name, version]) => (Operation::GetSecret, *name, Some(*version)),
        ("PATCH", ["secrets", name, version]) => (Operation::UpdateSecret, *name, Some(*version)),
        ("GET", ["deletedsecrets"]) => (Operation::GetDeletedSecrets, "", None),
        ("GET", ["deletedsecrets", name]) => (Operation::GetDeletedSecret, *name, None),
        ("DELETE", ["deletedsecrets", name]) => (Operation::PurgeDeletedSecret, *name, None),
        ("POST", ["deletedsecrets", name, "recover"]) => (Operation::RecoverDeletedSecret, *name, None),
        _ => return None,
    };
    Some(Routed { operation, name: name.to_owned(), version: version.map(str::to_owned) })
}
