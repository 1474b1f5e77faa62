//! The owner of a secret, which its labels name; the last writer does not count.

use std::collections::BTreeMap;
use std::fmt;

use crate::{ClusterId, names};

/// The owner that a secret's labels name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The label `managed-by`.
    pub managed_by: Option<String>,
    /// The label `cluster-id`.
    pub cluster: Option<String>,
}

impl Owner {
    /// Returns the owner that these labels name.
    pub fn of(labels: &BTreeMap<String, String>) -> Self {
        let label = |name: &str| labels.get(name).cloned();
        Self { managed_by: label(names::LABEL_MANAGED_BY), cluster: label(names::LABEL_CLUSTER_ID) }
    }

    /// Returns true if the owner is this project, for this cluster.
    pub fn is(&self, cluster: &ClusterId) -> bool {
        self.managed_by.as_deref() == Some(names::MANAGED_BY) && self.cluster.as_deref() == Some(cluster.as_str())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |name: &str, label: &Option<String>| match label {
            Some(value) => format!("the label `{name}={value}`"),
            None => format!("no label `{name}`"),
        };
        let managed_by = shown(names::LABEL_MANAGED_BY, &self.managed_by);
        write!(formatter, "{managed_by} and {}", shown(names::LABEL_CLUSTER_ID, &self.cluster))
    }
}
