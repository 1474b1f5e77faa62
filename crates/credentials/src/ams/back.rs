//! One phase back: AMS's entry is put back, or our credential is deleted.

use registry_account::contract::Login;

use super::status::{ClusterStatus, Target};
use crate::credential::Credential;
use crate::ledger::{Ledger, LedgerError, Statement};
use crate::publish::meaning::normal;
use crate::run::{ClusterError, ClusterErrorKind, Clusters, Entry, Look, Looking};
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
    /// The cluster has no credential of ours.
    #[error("cluster {0} has no credential of ours: there is nothing to take back")]
    NothingIssued(String),
    /// The cluster does not exist any more.
    #[error("cluster {0} does not exist any more: there is nothing to take back")]
    Gone(String),
}

/// Takes a cluster one phase back: where its pull secret may name our credential, AMS's entry is put back, and ours is kept
/// beside it; where it was never published, ours is deleted. A person may order it again until it is done.
pub async fn back<C: Clusters>(
    parts: &Back<'_, C>,
    status: &ClusterStatus,
    statement: &Statement<'_>,
) -> Result<(), BackError> {
    let id = &status.compared.cluster.id;
    if status.own.is_empty() {
        return Err(BackError::NothingIssued(id.clone()));
    }
    let was_published = |own: &Credential| own.may_be_named() && (!own.record.held || own.state != State::Probed);
    let published: Vec<&Credential> = status.own.iter().filter(|own| was_published(own)).collect();
    // AMS's entry may be missing from a former attempt, although ours is held already.
    let mut has_put_back = false;
    for own in &status.own {
        if own.may_be_named() {
            has_put_back |= put_back(parts, status, own, statement).await?;
        }
    }
    if published.is_empty() && !has_put_back {
        for own in &status.own {
            parts.ledger.withdraw_held(own.id, statement).await?;
        }
    }
    Ok(())
}

/// Writes AMS's entry in place of ours. Returns false if it was there already.
async fn put_back<C: Clusters>(
    parts: &Back<'_, C>,
    status: &ClusterStatus,
    own: &Credential,
    statement: &Statement<'_>,
) -> Result<bool, BackError> {
    let Back { ledger, clusters, targets } = *parts;
    let cluster = &status.compared.cluster;
    let Some(target) = targets.iter().find(|target| target.registry == own.registry) else { return Ok(false) };
    let host = target.host.as_str();
    let nothing = || BackError::NothingLeft { cluster: cluster.id.clone(), host: host.to_owned() };
    let login = of_ams(ledger, status, host).await?.ok_or_else(nothing)?;
    // First of all the service must not publish ours again.
    if !own.record.held || own.state != State::Probed {
        ledger.hold_again(own.id, statement).await?;
    }
    for attempt in 1..=ATTEMPTS {
        let looking = Looking { cluster, host, login: &login, generation: own.record.generation };
        let document = match clusters.look(&looking).await? {
            Look::Gone => return Err(BackError::Gone(cluster.id.clone())),
            Look::Here(document) => document,
        };
        if document.is_same {
            return Ok(attempt > 1);
        }
        match clusters.publish(cluster, &Entry { host, login: &login }, document.generation).await {
            Ok(_generation) => return Ok(true),
            Err(error) if attempt < ATTEMPTS && is_unclear(error.kind) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Returns true if a look tells what became of a publication.
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
