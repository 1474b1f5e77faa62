//! Checks the settings of the Kubernetes Secret.

use std::collections::BTreeMap;

use fleet_model::{ClusterId, id, names};
use kubernetes::SecretKey;

use super::KubernetesSecretSettings;
use super::parse::Parser;

/// Maximum length of a label's value in Kubernetes.
const LONGEST_LABEL: usize = 63;

impl Parser<'_> {
    /// Returns `None` if no Kubernetes Secret is applied, or a problem says why none can be.
    pub(super) fn kubernetes_secret(&mut self, cluster: Option<&ClusterId>) -> Option<KubernetesSecretSettings> {
        let given = self.given;
        let name = self.secret_name(cluster);
        let cluster_name = if given.delete { None } else { given.cluster_name.as_deref() };
        if given.adopt && given.delete {
            self.problems.push("--adopt: has no effect with --delete".to_owned());
        }
        let Some(namespace) = given.management_namespace.clone() else {
            self.refuse_without_namespace();
            return None;
        };
        let fits = if id::is_dns_label(&namespace) { Ok(namespace) } else { Err("must be a DNS-1123 label") };
        let namespace = self.check("MANAGEMENT_NAMESPACE", fits);
        if given.cluster_name.is_none() && !given.delete {
            self.problems.push("CLUSTER_NAME: missing, and needed with MANAGEMENT_NAMESPACE".to_owned());
        }
        Some(KubernetesSecretSettings {
            key: SecretKey { namespace: namespace?, name: name? },
            cluster: kubernetes::Settings {
                kubeconfig: given.management_kubeconfig.clone(),
                context: given.management_context.clone(),
                call_timeout: given.k8s_api_timeout,
                context_setting: Some("MANAGEMENT_CONTEXT"),
                // The author of a Pod's environment must not be able to run programs as the Job.
                allows_exec: false,
                ..kubernetes::Settings::default()
            },
            labels: labels(cluster?, cluster_name),
            adopt: given.adopt,
        })
    }

    /// The patch that makes a `HostedCluster` use the Kubernetes Secret.
    pub(super) fn hosted_cluster_patch(&mut self) -> Option<String> {
        let cluster: Option<ClusterId> = self.required("CLUSTER_ID", "cluster-id", self.given.cluster_id.as_deref());
        let name = self.secret_name(cluster.as_ref())?;
        Some(serde_json::json!({"spec": {"pullSecret": {"name": name}}}).to_string())
    }

    fn secret_name(&mut self, cluster: Option<&ClusterId>) -> Option<String> {
        let Some(given) = self.given.k8s_secret_name.clone() else { return cluster.map(names::kubernetes_secret_name) };
        let fits = if id::is_dns_subdomain(&given) { Ok(given) } else { Err("must be a DNS-1123 subdomain") };
        self.check("K8S_SECRET_NAME", fits)
    }

    /// A setting without effect is a mistake, except for a deletion: a cluster that is deleted before it has a namespace has no
    /// Kubernetes Secret, and its other settings must not prevent the deletion.
    fn refuse_without_namespace(&mut self) {
        let given = self.given;
        if given.kubernetes_secret_only {
            self.problems.push("MANAGEMENT_NAMESPACE: missing, and needed with --kubernetes-secret-only".to_owned());
        }
        if given.delete {
            return;
        }
        for (name, is_given) in [
            ("K8S_SECRET_NAME", given.k8s_secret_name.is_some()),
            ("MANAGEMENT_KUBECONFIG", given.management_kubeconfig.is_some()),
            ("MANAGEMENT_CONTEXT", given.management_context.is_some()),
            ("--adopt", given.adopt),
        ] {
            if is_given {
                self.problems.push(format!("{name}: has no effect without MANAGEMENT_NAMESPACE"));
            }
        }
    }
}

/// The labels of the specification.
fn labels(cluster: &ClusterId, cluster_name: Option<&str>) -> BTreeMap<String, String> {
    let labels = [
        (names::LABEL_MANAGED_BY, Some(names::MANAGED_BY.to_owned())),
        (names::LABEL_ADAPTER, Some(names::ADAPTER.to_owned())),
        (names::LABEL_CLUSTER_ID, Some(cluster.to_string())),
        (names::LABEL_CLUSTER_NAME, cluster_name.map(label_value)),
        (names::LABEL_SCHEMA, Some(names::SCHEMA.to_owned())),
    ];
    labels.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// Makes a label value of a text as Kubernetes allows it: each character that is not allowed is replaced by `-`, the rest
/// is cut to the maximum length, and begins and ends with a letter or digit.
fn label_value(text: &str) -> String {
    let allowed = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    let replaced: String =
        text.chars().map(|char| if allowed(char) { char } else { '-' }).take(LONGEST_LABEL).collect();
    replaced.trim_matches(|char: char| !char.is_ascii_alphanumeric()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_sanitized() {
        assert_eq!(label_value("production-cluster"), "production-cluster");
        assert_eq!(label_value("Prod Cluster.1 "), "Prod-Cluster.1");
        assert_eq!(label_value("größe"), "gr--e");
        assert_eq!(label_value(&"a".repeat(70)).len(), 63);
        assert_eq!(label_value("日本"), "");
    }
}
