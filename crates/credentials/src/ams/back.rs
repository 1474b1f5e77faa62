//! One phase back: AMS's entry is put back, or our credential is deleted.

use fleet_model::Generation;
use registry_account::contract::Login;

use super::status::{ClusterStatus, Target};
use crate::credential::{ClusterRef, Credential};
use crate::ledger::{Ledger, LedgerError, Statement};
use crate::publish::meaning::normal;
use crate::run::{ClusterError, ClusterErrorKind, Clusters, Entry, ObserveRequest, Observed};
use crate::state::State;

/// Attempts to write an entry while the cluster changes.
const ATTEMPTS: u32 = 5;

/// The parts of a way back.
#[derive(Clone, Copy, Debug)]
pub struct Back<'a, C> {
    /// The ledger.
    pub ledger: &'a Ledger,
    /// The clusters.
    pub clusters: &'a C,
    /// The registries that take over.
    pub targets: &'a [Target],
}

/// A failed way back.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BackError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The cluster.
    #[error("{0}: run the same command again, as the pull secret may still name our credential")]
    Cluster(#[from] ClusterError),
    /// The cluster has no credential of AMS to get back.
    #[error("cluster {cluster} has no credential of AMS for {host} that still lives: there is no way back")]
    NothingLeft {
        /// The cluster's id.
        cluster: String,
        /// The host.
        host: String,
    },
    /// The cluster has no credential of this service.
    #[error("cluster {0} has no credential of this service: there is nothing to take back")]
    NothingIssued(String),
    /// The cluster does not exist any more.
    #[error("cluster {0} does not exist any more: there is nothing to take back")]
    Gone(String),
}

/// Takes a cluster one phase back: where its pull secret may name the credential of this service, AMS's entry is put
/// back, and that credential is kept beside it; where it was never published, it is deleted. A person may order it again until it is done.
pub async fn back<C: Clusters>(
    parts: &Back<'_, C>,
    status: &ClusterStatus,
    statement: &Statement<'_>,
) -> Result<(), BackError> {
    let (ledger, cluster) = (parts.ledger, &status.compared.cluster);
    let own = living(parts, cluster).await?;
    if own.is_empty() {
        return Err(BackError::NothingIssued(cluster.id.clone()));
    }
    // Without AMS's entries there is no way back, and nothing is changed.
    let mut entries = Vec::new();
    for target in parts.targets.iter().filter(|target| own.iter().any(|own| may_displace(own, target))) {
        let nothing = || BackError::NothingLeft { cluster: cluster.id.clone(), host: target.host.clone() };
        let login = of_ams(ledger, status, &target.host).await?.ok_or_else(nothing)?;
        entries.push((target.host.as_str(), login));
    }
    let mut was_published = own.iter().any(is_published);
    // First of all the service must not publish any of its own again.
    let mut kept = Vec::new();
    for before in &own {
        let now = ledger.keep_back(before.id, statement).await?;
        was_published |= now.may_be_named() && !before.may_be_named();
        kept.push(now);
    }
    // AMS's entry may be missing from a former attempt, although the service's own is held already.
    let mut has_put_back = false;
    for (host, login) in &entries {
        has_put_back |= put_back(parts.clusters, cluster, &Entry { host, login }).await?;
    }
    if !was_published && !has_put_back {
        for own in kept.iter().filter(|own| own.record.held && own.state < State::Retiring) {
            ledger.withdraw_held(own.id, statement).await?;
        }
    }
    Ok(())
}

/// Reads all credentials of this service for a cluster that are neither over nor given up, newest first: one may replace another.
async fn living<C>(parts: &Back<'_, C>, cluster: &ClusterRef) -> Result<Vec<Credential>, LedgerError> {
    let mut own: Vec<Credential> =
        parts.ledger.of_cluster(&cluster.id).await?.into_iter().map(|found| found.credential).collect();
    let is_target = |own: &Credential| parts.targets.iter().any(|target| target.registry == own.registry);
    let is_gone = |own: &Credential| own.state >= State::Retiring || own.record.given_up.is_some();
    own.retain(|own| own.cluster.as_ref() == Some(cluster) && is_target(own) && !is_gone(own));
    own.reverse();
    Ok(own)
}

/// Returns true if the pull secret may name a credential in place of AMS's, or the one that it replaces.
fn may_displace(own: &Credential, target: &Target) -> bool {
    own.registry == target.registry && (own.may_be_named() || own.replaces.is_some())
}

/// Returns true if a credential may be named, and is not kept back since.
fn is_published(own: &Credential) -> bool {
    own.may_be_named() && (!own.record.held || own.state > State::Probed)
}

/// Writes AMS's entry in place of this service's. Returns false if it was there already.
async fn put_back<C: Clusters>(clusters: &C, cluster: &ClusterRef, entry: &Entry<'_>) -> Result<bool, BackError> {
    for attempt in 1..=ATTEMPTS {
        let Entry { host, login } = *entry;
        let request = ObserveRequest { cluster, host, login, generation: Generation::default() };
        let document = match clusters.observe(&request).await? {
            Observed::Gone => return Err(BackError::Gone(cluster.id.clone())),
            Observed::Found(document) => document,
        };
        if document.is_same {
            return Ok(attempt > 1);
        }
        match clusters.publish(cluster, entry, document.generation).await {
            Ok(_generation) => return Ok(true),
            Err(error) if attempt < ATTEMPTS && is_unclear(error.kind) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Returns true if reading the pull secret again shows the outcome of a publication.
fn is_unclear(kind: ClusterErrorKind) -> bool {
    matches!(kind, ClusterErrorKind::Changed | ClusterErrorKind::Ambiguous)
}

/// Returns the newest login of AMS that a cluster had at a host, and that still lives.
async fn of_ams(ledger: &Ledger, status: &ClusterStatus, host: &str) -> Result<Option<Login>, LedgerError> {
    let mut uses: Vec<_> = status.uses.iter().filter(|found| normal(&found.host) == normal(host)).collect();
    uses.sort_by(|one, other| other.credential.cmp(&one.credential));
    for found in uses.into_iter().filter(|found| !found.is_deleted) {
        let Some(credential) = ledger.ams_credential(&found.credential).await? else { continue };
        if credential.delete_started.is_some() {
            continue;
        }
        if let Some(password) = ledger.ams_token(&credential).await? {
            return Ok(Some(Login { username: credential.username, password }));
        }
    }
    Ok(None)
}
