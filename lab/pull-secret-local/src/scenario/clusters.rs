//! The clusters of the scenario `on-call-50`, and the fault of each.

use crate::peer_state::{BEFORE, PeerState, namespace};
use crate::scripted::Faults;

/// The namespace of the Secrets that clusters refer to.
pub(crate) const REFERENCED: &str = "customer-secrets";
/// Number of clusters.
const COUNT: usize = TEAMS.len() * REGIONS.len();

/// The owners of clusters, for their names.
const TEAMS: [&str; 13] = [
    "checkout", "payments", "search", "ledger", "media", "identity", "reports", "catalog", "pricing", "orders",
    "mailing", "returns", "loyalty",
];
/// The regions of clusters, for their names.
const REGIONS: [&str; 4] = ["us-east1", "us-west1", "europe-west1", "asia-east1"];

/// A cluster of the scenario.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) region: &'static str,
    pub(crate) project: String,
    pub(crate) plant: Plant,
}

/// The fault of a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plant {
    /// It has none.
    Healthy,
    /// Secret Manager answers a method in the cluster's project with an effect, for ever.
    Store { method: &'static str, effect: &'static str },
    /// Kubernetes refuses the creation of Secrets in the cluster's namespace, with this message.
    Refused { message: &'static str },
    /// Secret Manager has an unmanaged secret of its name.
    UnmanagedStored,
    /// Kubernetes has an unmanaged Secret of its name.
    UnmanagedSecret,
    /// Its spec names a project that cannot exist.
    BadProject,
    /// An adapter before the pull secret's has not reported.
    Waiting { adapter: &'static str },
    /// An adapter before the pull secret's reports that it cannot work.
    Blocked { adapter: &'static str, state: PeerState },
    /// The Secret that it refers to holds a placeholder.
    InvalidPullSecret,
    /// It refers to a Secret that does not exist.
    NoReferencedSecret,
    /// It refers to a key that the Secret does not have.
    NoReferencedKey,
    /// It refers to a Secret that does not allow it.
    NoConsent,
    /// Its namespace is deleted after the pull secret was available.
    NamespaceDeleted,
    /// Another process deletes its Secret whenever it exists.
    SecretPruned,
    /// Its deletion is requested, and Secret Manager denies the deletion of the secret.
    DeletionDenied,
}

/// The clusters that have a fault, by their numbers.
const PLANTED: [(usize, Plant); 22] = [
    (3, Plant::Store { method: "createSecret", effect: "iam-denied" }),
    (5, Plant::Blocked { adapter: "validation", state: NOT_VALID }),
    (7, Plant::Store { method: "addVersion", effect: "quota-exceeded" }),
    (9, Plant::Waiting { adapter: "placement" }),
    (11, Plant::UnmanagedStored),
    (14, Plant::BadProject),
    (16, Plant::NamespaceDeleted),
    (19, Plant::Waiting { adapter: "placement" }),
    (21, Plant::Store { method: "createSecret", effect: "iam-denied" }),
    (23, Plant::InvalidPullSecret),
    (26, Plant::UnmanagedSecret),
    (28, Plant::SecretPruned),
    (30, Plant::Store { method: "addVersion", effect: "quota-exceeded" }),
    (33, Plant::Blocked { adapter: "validation", state: NOT_VALID }),
    (34, Plant::Refused { message: OVER_QUOTA }),
    (36, Plant::NoReferencedSecret),
    (41, Plant::Store { method: "getSecret", effect: "hang" }),
    (43, Plant::NoConsent),
    (45, Plant::Store { method: "createSecret", effect: "api-disabled" }),
    (48, Plant::Refused { message: NOT_ADMITTED }),
    (50, Plant::NoReferencedKey),
    (52, Plant::DeletionDenied),
];

const NOT_VALID: PeerState =
    PeerState::Blocked { reason: "ServiceAccountMissing", message: "the node pool's service account does not exist" };
const OVER_QUOTA: &str =
    "exceeded quota: objects, requested: count/secrets=1, used: count/secrets=40, limited: count/secrets=40";
const NOT_ADMITTED: &str =
    "admission webhook \"owners.example.com\" denied the request: Secrets need the label cost-center";

/// All clusters, in the order of their numbers.
pub(crate) fn all() -> impl Iterator<Item = Planned> {
    (1..=COUNT).map(|number| {
        let planted = PLANTED.iter().find(|(planted, _)| *planted == number);
        let (team, region) = ((number - 1) % TEAMS.len(), REGIONS.get((number - 1) / TEAMS.len()));
        let (team, region) = (TEAMS.get(team).copied().unwrap_or_default(), region.copied().unwrap_or_default());
        let plant = planted.map_or(Plant::Healthy, |(_, plant)| *plant);
        let project = if matches!(plant, Plant::BadProject) { "Customer_" } else { "customer-" };
        Planned {
            id: format!("cls-{number:02}"),
            name: format!("{team}-{region}"),
            region,
            project: format!("{project}{number:02}"),
            plant,
        }
    })
}

/// The faults of both emulators.
pub(crate) fn faults() -> anyhow::Result<Faults> {
    let mut faults = Faults::default();
    for Planned { id, project, plant, .. } in all() {
        let text = match plant {
            Plant::Store { method, effect } => format!("{method} in {project}:{effect}*0"),
            Plant::DeletionDenied => format!("deleteSecret in {project}:iam-denied*0"),
            Plant::Refused { message } => {
                let place = namespace(&id);
                format!("create/secrets in {place}:403(message=secrets \"{id}-pull-secret\" is forbidden: {message})*0")
            }
            _ => continue,
        };
        faults.extend([text.parse().map_err(anyhow::Error::msg)?]);
    }
    Ok(faults)
}

impl Planned {
    /// The reports of the adapters that come before the pull secret's.
    pub(crate) fn before(&self) -> impl Iterator<Item = (&'static str, PeerState)> {
        BEFORE.into_iter().filter_map(|adapter| match self.plant {
            Plant::Waiting { adapter: waits } if waits == adapter => None,
            Plant::Blocked { adapter: blocked, state } if blocked == adapter => Some((adapter, state)),
            _ => Some((adapter, PeerState::Done)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_52_clusters_are_healthy_and_every_fault_is_one_that_the_emulators_know() {
        let clusters: Vec<Planned> = all().collect();
        let healthy = clusters.iter().filter(|cluster| matches!(cluster.plant, Plant::Healthy)).count();
        assert_eq!((clusters.len(), healthy), (52, 52 - PLANTED.len()));
        let faults = faults().unwrap();
        assert_eq!((faults.secret_manager.len(), faults.kubernetes.len()), (7, 2));
    }
}
