//! The end: credentials of AMS are deleted in AMS, each after its proof. There is no way back.

use std::collections::{BTreeMap, BTreeSet};

use accounts_mgmt::{Accounts, Ksuid};
use jiff::Timestamp;
use registry_account::contract::Registry;
use registry_account::name::AccountName;
use secrecy::ExposeSecret as _;

use super::error::ImportError;
use super::model::AmsCredential;
use super::paced::{Paced, Waits};
use super::secrets::{Content, PullSecrets};
use super::shadow::names;
use super::status::{ClusterStatus, Target};
use crate::credential::RegistryName;
use crate::decide::ams::{Obstacle, Phase, RetireFacts, SilenceFacts, obstacle};
use crate::decide::budget::Grant;
use crate::ledger::{Call, Outcome, Statement};
use crate::publish::meaning::normal;
use crate::run::Served;
use crate::state::Lane;

/// The parts of a retirement.
#[derive(Clone, Copy, Debug)]
pub struct Retirement<'a, A, P, R, W> {
    /// AMS.
    pub accounts: Paced<'a, A, W>,
    /// The pull secrets.
    pub secrets: &'a P,
    /// The registries.
    pub registries: &'a BTreeMap<RegistryName, Served<R>>,
    /// The registries that take over.
    pub targets: &'a [Target],
    /// All clusters, by id.
    pub clusters: &'a BTreeMap<String, ClusterStatus>,
    /// True if a person attests that nothing uses the credentials.
    pub is_attested: bool,
    /// True to delete; false only lists what would be deleted.
    pub deletes: bool,
}

/// A failed retirement.
pub type RetireError = ImportError;

/// A credential of AMS that is to be retired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retired {
    /// The credential.
    pub credential: AmsCredential,
    /// The reason for which it stays.
    pub obstacle: Option<Obstacle>,
    /// True if it is deleted.
    pub is_deleted: bool,
}

/// Deletes the credentials of AMS that a cluster had at the hosts that are taken over, oldest last, each of which nothing uses.
///
/// # Errors
///
/// A call that keeps failing; what was deleted before is recorded.
pub async fn retire<A: Accounts, P: PullSecrets, R: Registry, W: Waits>(
    parts: &Retirement<'_, A, P, R, W>,
    cluster: &ClusterStatus,
    statement: &Statement<'_>,
) -> Result<Vec<Retired>, RetireError> {
    let ledger = parts.accounts.pacing.ledger;
    let ids: BTreeSet<&Ksuid> = cluster.uses.iter().map(|found| &found.credential).collect();
    let mut retired = Vec::new();
    for id in ids.into_iter().rev() {
        let Some(credential) = ledger.ams_credential(id).await? else { continue };
        if credential.deleted.is_some() {
            retired.push(Retired { credential, obstacle: None, is_deleted: true });
            continue;
        }
        let found = facts(parts, cluster, &credential, statement.now).await?;
        let obstacle = obstacle(&found);
        let is_deleted = obstacle.is_none() && parts.deletes;
        if is_deleted {
            delete(parts, &credential, statement).await?;
        }
        retired.push(Retired { credential, obstacle, is_deleted });
    }
    Ok(retired)
}

/// Deletes a credential in AMS: recorded before and after.
async fn delete<A: Accounts, P, R, W: Waits>(
    parts: &Retirement<'_, A, P, R, W>,
    credential: &AmsCredential,
    statement: &Statement<'_>,
) -> Result<(), RetireError> {
    let (accounts, id) = (&parts.accounts, &credential.id);
    let ledger = accounts.pacing.ledger;
    ledger.record_ams_deletion(credential, Outcome::Started, statement).await?;
    // It is gone as well if an answer to an earlier attempt was lost.
    let deleted = accounts.call(async |ams: &A| ams.delete(id).await).await;
    let outcome = if deleted.is_ok() { Outcome::Succeeded } else { Outcome::Unknown };
    ledger.record_ams_deletion(credential, outcome, statement).await?;
    deleted.map(|_existed| ())
}

async fn facts<A: Accounts, P: PullSecrets, R: Registry, W: Waits>(
    parts: &Retirement<'_, A, P, R, W>,
    cluster: &ClusterStatus,
    credential: &AmsCredential,
    now: Timestamp,
) -> Result<RetireFacts, RetireError> {
    let ledger = parts.accounts.pacing.ledger;
    let uses = ledger.ams_uses_of(&credential.id).await?;
    let ids: BTreeSet<&str> = uses.iter().map(|found| found.cluster.as_str()).collect();
    let (mut are_others_moved, mut is_named, mut moved) = (true, false, None);
    for id in ids {
        let Some(status) = parts.clusters.get(id) else {
            // It was never compared, or is being deleted: it may have the credential.
            are_others_moved &= !parts.secrets.exists(id).await?;
            continue;
        };
        moved = moved.max(status.own.iter().filter_map(|own| own.record.published).max());
        let is_moved = id == cluster.compared.cluster.id || status.phase >= Phase::Moved;
        are_others_moved &= match parts.secrets.read(&status.compared.cluster).await? {
            // Another incarnation may have the credential.
            Content::Gone => !parts.secrets.exists(id).await?,
            // It may have the credential.
            Content::NotReadable => {
                is_named = true;
                is_moved
            }
            Content::Here { secret, .. } => {
                is_named |= names(&secret, &credential.username);
                is_moved
            }
        };
    }
    let target =
        parts.targets.iter().find(|target| uses.iter().any(|found| normal(&found.host) == normal(&target.host)));
    let served = target.and_then(|target| parts.registries.get(&target.registry));
    let usage = match (target, served) {
        (Some(target), Some(served)) if !parts.is_attested => usage(parts, target, served, credential, moved).await?,
        _ => None,
    };
    Ok(RetireFacts {
        is_moved: cluster.phase >= Phase::Moved,
        are_others_moved,
        is_named,
        is_as_imported: is_as_imported(parts, credential).await?,
        is_attested: parts.is_attested,
        usage,
        moved,
        quiet: served.map(|served| served.policy.quiet).unwrap_or_default(),
        now,
    })
}

/// Reads from the registry who has used a credential since the last cluster was moved; `None` if it does not show it.
async fn usage<A, P, R: Registry, W: Waits>(
    parts: &Retirement<'_, A, P, R, W>,
    target: &Target,
    served: &Served<R>,
    credential: &AmsCredential,
    moved: Option<Timestamp>,
) -> Result<Option<SilenceFacts>, RetireError> {
    let pacing = &parts.accounts.pacing;
    let name = credential.username.rsplit(['+', '|', '$']).next().unwrap_or_default();
    let Ok(name) = name.parse::<AccountName>() else { return Ok(None) };
    // The usage log of another organization's account cannot be read.
    let is_own = served.registry.login(&name) == credential.username;
    let Some(since) = moved.filter(|_| is_own && served.registry.capabilities().usage_log) else { return Ok(None) };
    let call = Call { lane: Lane::Audit, per_minute: served.rate() };
    while let Grant::Wait(until) = pacing.ledger.take_call(&target.registry, call, pacing.sources.now()).await? {
        pacing.waits.wait(until).await;
    }
    match served.registry.usage(&name, since).await {
        Ok(usage) => Ok(Some(SilenceFacts { last_pull: usage.last_pull, is_complete: usage.complete })),
        Err(error) => {
            tracing::warn!(registry = %target.registry, "the use of a credential of AMS is not known: {error}");
            Ok(None)
        }
    }
}

/// Returns true if AMS has a credential as it was imported, or has none any more.
async fn is_as_imported<A: Accounts, P, R, W: Waits>(
    parts: &Retirement<'_, A, P, R, W>,
    credential: &AmsCredential,
) -> Result<bool, RetireError> {
    let (accounts, id) = (&parts.accounts, &credential.id);
    let Some(found) = accounts.call(async |ams: &A| ams.credential(id).await).await? else { return Ok(true) };
    let token = accounts.pacing.ledger.ams_token(credential).await?;
    let is_same = token.is_some_and(|token| token.expose_secret() == found.token.expose_secret());
    Ok(is_same && found.username == credential.username)
}
