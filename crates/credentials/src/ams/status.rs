//! The phase of each cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::model::AmsCluster;
use crate::credential::{ClusterRef, Credential, RegistryName};
use crate::decide::ams::{OwnFacts, Phase, PhaseFacts, phase};
use crate::ledger::{AmsUse, Ledger, LedgerError, OwnCredentials};
use crate::publish::meaning::normal;
use crate::reason::Reason;
use crate::state::State;

/// A configured registry that takes over a host from AMS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub registry: RegistryName,
    /// Its host.
    pub host: String,
}

/// A cluster on its way from AMS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterStatus {
    /// The last comparison.
    pub compared: AmsCluster,
    /// Its phase.
    pub phase: Phase,
    /// Our credentials, in the order of the registries.
    pub own: Vec<Credential>,
    /// The credentials of AMS that it has, or had, at the hosts that are taken over.
    pub uses: Vec<AmsUse>,
}

// === impl ClusterStatus ===

impl ClusterStatus {
    /// Returns the reason that a person has to see to, if there is one: a cluster that never reports keeps AMS's credential.
    pub fn needs_a_person(&self) -> Option<Reason> {
        self.own.iter().map(|own| own.reason).find(|reason| reason.needs_a_person())
    }
}

/// Returns the clusters with their phases; one of them if an id is given. `demanded` is the time without a difference.
pub async fn status(
    ledger: &Ledger,
    targets: &[Target],
    demanded: Duration,
    id: Option<&str>,
    now: Timestamp,
) -> Result<Vec<ClusterStatus>, LedgerError> {
    let taken: BTreeSet<String> = targets.iter().map(|target| normal(&target.host)).collect();
    let mut own: Vec<OwnCredentials> = Vec::new();
    for target in targets {
        own.push(ledger.own_credentials(&target.registry).await?);
    }
    let mut uses: BTreeMap<String, Vec<AmsUse>> = BTreeMap::new();
    for found in ledger.ams_uses(id).await? {
        if taken.contains(&normal(&found.host)) {
            uses.entry(found.cluster.clone()).or_default().push(found);
        }
    }
    let of_cluster = |compared: AmsCluster| {
        let newest: Vec<Option<Credential>> = own.iter().map(|own| newest(own, &compared.cluster)).collect();
        let facts: Vec<OwnFacts> = newest.iter().map(|own| own_facts(own.as_ref())).collect();
        let uses = uses.remove(&compared.cluster.id).unwrap_or_default();
        let facts = PhaseFacts {
            own: &facts,
            clean_since: compared.clean_since,
            compared_at: compared.compared_at,
            demanded,
            is_retired: !uses.is_empty() && uses.iter().all(|found| found.is_deleted),
            now,
        };
        ClusterStatus { phase: phase(&facts), own: newest.into_iter().flatten().collect(), uses, compared }
    };
    Ok(ledger.ams_clusters(id).await?.into_iter().map(of_cluster).collect())
}

/// Returns the credential of a cluster that it uses, or is to use.
fn newest(own: &OwnCredentials, cluster: &ClusterRef) -> Option<Credential> {
    let all = own.get(cluster)?;
    all.iter().find(|one| one.state == State::Adopted).or(all.last()).cloned()
}

fn own_facts(own: Option<&Credential>) -> OwnFacts {
    OwnFacts { state: own.map(|own| own.state), is_held: own.is_some_and(|own| own.record.held) }
}
