//! The copies of a cluster's pull secret: every place where a run has stored it or may have.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One copy of a cluster's pull secret. The adapter reports it before a run writes it, and until it is deleted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum StoredCopy {
    /// A secret in Google Secret Manager.
    Secret {
        /// The project.
        project: String,
        /// The location of a regional secret; absent for a global one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<String>,
        /// The secret's name.
        name: String,
    },
    /// The Kubernetes Secret that HyperShift reads.
    KubernetesSecret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// The member of a report's data that lists the copies.
pub const MEMBER: &str = "copies";

// === impl StoredCopy ===

impl fmt::Display for StoredCopy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret { project, location: None, name } => write!(formatter, "secret {name} of project {project}"),
            Self::Secret { project, location: Some(location), name } => {
                write!(formatter, "secret {name} of project {project} in {location}")
            }
            Self::KubernetesSecret { namespace, name } => write!(formatter, "Kubernetes Secret {namespace}/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn copies_survive_a_report() {
        let written = json!([
            {"kind": "secret", "project": "p-1", "name": "hyperfleet-cls-1-pull-secret"},
            {"kind": "secret", "project": "p-1", "location": "europe-west3", "name": "s"},
            {"kind": "kubernetesSecret", "namespace": "clusters-cls-1", "name": "cls-1-pull-secret"},
        ]);
        let copies: Vec<StoredCopy> = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&copies).unwrap(), written);
        let shown: Vec<_> = copies.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "secret hyperfleet-cls-1-pull-secret of project p-1",
                "secret s of project p-1 in europe-west3",
                "Kubernetes Secret clusters-cls-1/cls-1-pull-secret",
            ]
        );
    }
}
