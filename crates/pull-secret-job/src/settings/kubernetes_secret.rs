//! Parses the settings of the Kubernetes Secret.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use fleet_model::{ClusterId, id, names};
use kubernetes::SecretKey;

use super::parse::Parser;
use super::{KubernetesSecretSettings, table};

const DEFAULT_API_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest value of a label in Kubernetes.
const LONGEST_LABEL: usize = 63;

impl Parser<'_> {
    /// `None` where the phase is skipped, or a problem says why it cannot be.
    pub(super) fn kubernetes_secret(&mut self, cluster: Option<&ClusterId>) -> Option<KubernetesSecretSettings> {
        let name = self.secret_name(cluster);
        let kubeconfig = self.text(&table::MANAGEMENT_KUBECONFIG).map(PathBuf::from);
        let context = self.text(&table::MANAGEMENT_CONTEXT);
        let call_timeout = self.duration(&table::K8S_API_TIMEOUT).unwrap_or(DEFAULT_API_TIMEOUT);
        let adopt = self.switch(&table::ADOPT);
        let is_deletion = self.switch(&table::DELETE);
        let has_name = self.text(&table::CLUSTER_NAME).is_some();
        let cluster_name = if is_deletion { None } else { self.text(&table::CLUSTER_NAME) };
        if adopt && is_deletion {
            self.problems.push("--adopt: has no effect with --delete".to_owned());
        }
        let Some(namespace) = self.text(&table::MANAGEMENT_NAMESPACE) else {
            self.refuse_without_namespace();
            return None;
        };
        let fits = if id::is_dns_label(&namespace) { Ok(namespace) } else { Err("must be a DNS-1123 label") };
        let namespace = self.check(&table::MANAGEMENT_NAMESPACE, fits);
        if !has_name && !is_deletion {
            self.problems.push("CLUSTER_NAME: missing, and needed with MANAGEMENT_NAMESPACE".to_owned());
        }
        Some(KubernetesSecretSettings {
            key: SecretKey { namespace: namespace?, name: name? },
            cluster: kubernetes::Settings {
                kubeconfig,
                context,
                call_timeout,
                context_setting: table::MANAGEMENT_CONTEXT.variable,
                ..kubernetes::Settings::default()
            },
            labels: labels(cluster?, cluster_name.as_deref()),
            adopt,
        })
    }

    /// See [`super::hosted_cluster_patch`].
    pub(super) fn hosted_cluster_patch(&mut self) -> Option<String> {
        let cluster: Option<ClusterId> = self.required(&table::CLUSTER_ID);
        let name = self.secret_name(cluster.as_ref())?;
        Some(serde_json::json!({"spec": {"pullSecret": {"name": name}}}).to_string())
    }

    fn secret_name(&mut self, cluster: Option<&ClusterId>) -> Option<String> {
        let Some(given) = self.text(&table::K8S_SECRET_NAME) else { return cluster.map(names::kubernetes_secret_name) };
        let fits = if id::is_dns_subdomain(&given) { Ok(given) } else { Err("must be a DNS-1123 subdomain") };
        self.check(&table::K8S_SECRET_NAME, fits)
    }

    /// A setting that could have no effect is a mistake.
    fn refuse_without_namespace(&mut self) {
        for setting in
            [&table::K8S_SECRET_NAME, &table::MANAGEMENT_KUBECONFIG, &table::MANAGEMENT_CONTEXT, &table::ADOPT]
        {
            if self.text(setting).is_some_and(|text| text != "false") {
                self.problems.push(format!("{}: has no effect without MANAGEMENT_NAMESPACE", setting.name()));
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

/// `text` as the value of a label in Kubernetes: each character that is not allowed replaced by `-`, cut to what fits,
/// beginning and ending with a letter or digit.
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
    fn label_values_are_made_to_fit() {
        assert_eq!(label_value("production-cluster"), "production-cluster");
        assert_eq!(label_value("Prod Cluster.1 "), "Prod-Cluster.1");
        assert_eq!(label_value("größe"), "gr--e");
        assert_eq!(label_value(&"a".repeat(70)).len(), 63);
        assert_eq!(label_value("日本"), "");
    }
}
