//! Access to the Secret that runs apply: a Role and a `RoleBinding` in its namespace for the account of the Jobs, and others for
//! this adapter. Each Role is about that Secret alone, so that neither account has more rights in the namespaces of hosted control planes.

use std::collections::BTreeMap;

use fleet_model::names;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::{Cluster, ErrorKind, KubernetesError, Object, SecretKey};

use crate::config::{Account, Checked};

/// The rights of an account on the Secret.
struct Grant<'a> {
    account: &'a Account,
    secret: &'a SecretKey,
    rules: Vec<PolicyRule>,
}

/// Grants access to the Secret, unless it was granted before.
pub async fn grant(
    config: &Checked,
    cluster: &Cluster,
    id: &str,
    secret: &SecretKey,
    jobs: &Account,
) -> Result<(), KubernetesError> {
    let Some(adapter) = &config.account else { return Ok(()) };
    // A name is not known to authorization before the object exists.
    let creates = rule(&["create"], None);
    let changes = rule(&["delete", "get", "patch"], Some(secret));
    let reads = rule(&["get"], Some(secret));
    for grant in [
        Grant { account: jobs, secret, rules: vec![creates, changes] },
        Grant { account: adapter, secret, rules: vec![reads] },
    ] {
        let metadata = grant.metadata(config, id);
        // The Role first, as a binding to one that does not exist grants whatever it will be.
        let role = Role { metadata: metadata.clone(), rules: Some(grant.rules) };
        create_once(cluster, &role).await?;
        let binding = RoleBinding {
            role_ref: RoleRef {
                api_group: "rbac.authorization.k8s.io".to_owned(),
                kind: "Role".to_owned(),
                name: metadata.name.clone().unwrap_or_default(),
            },
            subjects: Some(vec![Subject {
                kind: "ServiceAccount".to_owned(),
                name: grant.account.name.clone(),
                namespace: Some(grant.account.namespace.clone()),
                ..Subject::default()
            }]),
            metadata,
        };
        create_once(cluster, &binding).await?;
    }
    Ok(())
}

/// Withdraws the access that [`grant`] has granted.
pub async fn revoke(
    config: &Checked,
    cluster: &Cluster,
    secret: &SecretKey,
    jobs: &Account,
) -> Result<(), KubernetesError> {
    let Some(adapter) = &config.account else { return Ok(()) };
    for account in [jobs, adapter] {
        let metadata = Grant { account, secret, rules: Vec::new() }.metadata(config, "");
        cluster.delete(&RoleBinding { metadata: metadata.clone(), ..RoleBinding::default() }).await?;
        cluster.delete(&Role { metadata, ..Role::default() }).await?;
    }
    Ok(())
}

impl Grant<'_> {
    fn metadata(&self, config: &Checked, id: &str) -> ObjectMeta {
        let labels = [
            (names::LABEL_MANAGED_BY, names::MANAGED_BY),
            (names::LABEL_RUN_ADAPTER, config.adapter.as_str()),
            (names::LABEL_RUN_RESOURCE, id),
        ];
        let labels: BTreeMap<_, _> =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ObjectMeta {
            name: Some(names::access_name(&self.account.name, &self.secret.name)),
            namespace: Some(self.secret.namespace.clone()),
            labels: Some(labels),
            ..ObjectMeta::default()
        }
    }
}

fn rule(verbs: &[&str], secret: Option<&SecretKey>) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["secrets".to_owned()]),
        resource_names: secret.map(|secret| vec![secret.name.clone()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        non_resource_urls: None,
    }
}

/// Creates the object. What has its name grants the same, as the name says all of it.
async fn create_once<K: Object>(cluster: &Cluster, object: &K) -> Result<(), KubernetesError> {
    match cluster.create(object).await {
        Err(error) if error.kind == ErrorKind::AlreadyExists => Ok(()),
        other => other.map(drop),
    }
}
