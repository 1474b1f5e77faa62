//! The desired objects, and the drift of the live ones from them.

mod daemon_set;
mod drift;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use docker_config::Document;
use fleet_model::names;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::secret::{DOCKER_CONFIG_JSON, DOCKER_CONFIG_JSON_KEY};
use secrecy::ExposeSecret as _;

pub use daemon_set::{Syncer, daemon_set};
pub use drift::{digest, is_drifted};

/// The fields of the merged Secret and of the status that only the controller sets.
pub const DATA: &[&str] = &["data"];
/// The fields of the DaemonSet that only the controller sets: what runs privileged on every node.
pub const POD: &[&str] = &["spec.template.spec"];

/// The metadata of an object to be applied; over an observed one, with the uid, resourceVersion and managedFields that it has.
pub fn metadata(name: &str, annotations: BTreeMap<String, String>, observed: Option<&ObjectMeta>) -> ObjectMeta {
    let label = (names::LABEL_KUBERNETES_MANAGED_BY.to_owned(), names::GLOBAL_MANAGER.to_owned());
    let observed = observed.cloned().unwrap_or_default();
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(names::GLOBAL_NAMESPACE.to_owned()),
        labels: Some(BTreeMap::from([label])),
        annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
        uid: observed.uid,
        resource_version: observed.resource_version,
        managed_fields: observed.managed_fields,
        ..ObjectMeta::default()
    }
}

/// The key of the merged Secret under which the syncer reads its revision.
pub const REVISION_KEY: &str = "revision";

/// The key of the merged Secret that tells the syncer that its content is the original's, to which the node is reverted.
pub const REVERTING_KEY: &str = "reverting";

/// The merged Secret; `is_revert` if its content is the original's, to which nodes are reverted.
pub fn global_secret(metadata: ObjectMeta, document: &Document, revision: &str, is_revert: bool) -> Secret {
    let bytes = ByteString(document.to_bytes().expose_secret().to_vec());
    let mut data = BTreeMap::from([
        (DOCKER_CONFIG_JSON_KEY.to_owned(), bytes),
        (REVISION_KEY.to_owned(), ByteString(revision.as_bytes().to_vec())),
    ]);
    if is_revert {
        data.insert(REVERTING_KEY.to_owned(), ByteString(b"true".to_vec()));
    }
    Secret { metadata, type_: Some(DOCKER_CONFIG_JSON.to_owned()), data: Some(data), ..Secret::default() }
}

/// The syncer's identity. Only Pods that request its token get it.
pub fn service_account(metadata: ObjectMeta) -> ServiceAccount {
    ServiceAccount { metadata, automount_service_account_token: Some(false), ..ServiceAccount::default() }
}

/// The syncer's permissions: to watch the one Secret, and to confirm revisions. A list or a watch of one name is allowed by
/// that name.
pub fn role(metadata: ObjectMeta) -> Role {
    let owned = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    let rule = |resource: &str, name: &str, verbs: &[&str]| PolicyRule {
        api_groups: Some(owned(&[""])),
        resources: Some(owned(&[resource])),
        resource_names: Some(owned(&[name])),
        verbs: owned(verbs),
        ..PolicyRule::default()
    };
    let rules = vec![
        rule("secrets", names::GLOBAL_PULL_SECRET, &["list", "watch"]),
        rule("configmaps", names::GLOBAL_NODES, &["patch"]),
    ];
    Role { metadata, rules: Some(rules) }
}

/// The binding of the syncer's Role.
pub fn role_binding(metadata: ObjectMeta) -> RoleBinding {
    let subject = Subject {
        kind: "ServiceAccount".to_owned(),
        name: names::GLOBAL_SYNCER.to_owned(),
        namespace: Some(names::GLOBAL_NAMESPACE.to_owned()),
        ..Subject::default()
    };
    RoleBinding {
        metadata,
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "Role".to_owned(),
            name: names::GLOBAL_SYNCER.to_owned(),
        },
        subjects: Some(vec![subject]),
    }
}

/// The ConfigMap in which the syncer confirms revisions, with these confirmations.
pub fn confirmations(metadata: ObjectMeta, confirmed: BTreeMap<String, String>) -> ConfigMap {
    ConfigMap { metadata, data: Some(confirmed).filter(|confirmed| !confirmed.is_empty()), ..ConfigMap::default() }
}

/// The status ConfigMap.
pub fn status(metadata: ObjectMeta, data: BTreeMap<String, String>) -> ConfigMap {
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}
