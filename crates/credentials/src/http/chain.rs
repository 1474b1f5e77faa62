//! The credentials of one cluster at one registry, each in place of the one before.

use std::collections::BTreeMap;

use registry_account::name::CredentialId;

use crate::credential::{Credential, RegistryName};
use crate::ledger::ClusterCredential;
use crate::state::State;

/// The credentials of a cluster at a registry, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain(Vec<Credential>);

/// Returns the chains of the newest incarnation among the credentials of a cluster's id, by registry.
pub(crate) fn chains(credentials: &[ClusterCredential]) -> BTreeMap<RegistryName, Chain> {
    let incarnation = |found: &ClusterCredential| found.credential.cluster.as_ref().map(|of| of.incarnation);
    let newest = credentials.iter().filter_map(incarnation).max();
    let mut following: BTreeMap<(&RegistryName, Option<CredentialId>), &Credential> = BTreeMap::new();
    for found in credentials.iter().filter(|found| found.has_place && incarnation(found) == newest) {
        following.insert((&found.credential.registry, found.credential.replaces), &found.credential);
    }
    let mut chains: BTreeMap<RegistryName, Chain> = BTreeMap::new();
    let firsts: Vec<&RegistryName> =
        following.keys().filter(|(_, replaces)| replaces.is_none()).map(|(registry, _)| *registry).collect();
    for registry in firsts {
        let chain = chains.entry(registry.clone()).or_default();
        let mut last = None;
        // Each is taken once, so that it ends.
        while let Some(next) = following.remove(&(registry, last)) {
            chain.0.push(next.clone());
            last = Some(next.id);
        }
    }
    chains
}

/// Returns true unless a credential is on its way out: retired or revoked by an order, given up, being deleted, or over.
pub(crate) fn is_live(credential: &Credential) -> bool {
    let Credential { state, record, .. } = credential;
    record.order.is_none() && record.given_up.is_none() && *state != State::Retiring && !state.is_over()
}

/// Returns true if nodes can pull with a credential.
fn is_usable(credential: &Credential) -> bool {
    let Credential { state, record, has_password, .. } = credential;
    let is_probed = matches!(state, State::Probed | State::Published | State::Adopted | State::Quiet);
    is_live(credential) && is_probed && *has_password && !record.held && record.login.is_some()
}

/// Returns true if a credential may have been handed out.
pub(crate) fn may_be_known(credential: &Credential) -> bool {
    is_usable(credential) || credential.may_be_named()
}

// === impl Chain ===

impl Chain {
    /// Returns the newest one.
    pub(crate) fn newest(&self) -> Option<&Credential> {
        self.0.last()
    }

    /// Returns those that are not on their way out, oldest first.
    pub(crate) fn live(&self) -> impl DoubleEndedIterator<Item = &Credential> {
        self.0.iter().filter(|credential| is_live(credential))
    }

    /// Returns the newest one that nodes can pull with.
    pub(crate) fn usable(&self) -> Option<&Credential> {
        self.0.iter().rev().find(|credential| is_usable(credential))
    }

    /// Returns true if the newest one is to replace another one, and its cluster has not adopted it yet.
    pub(crate) fn is_replacing(&self) -> bool {
        let begun = |newest: &Credential| newest.replaces.is_some() && newest.record.adopted.is_none();
        self.newest().is_some_and(|newest| is_live(newest) && begun(newest))
    }

    /// Returns true if it is replacing one that is not on its way out: either may be meant.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.is_replacing() && self.live().count() > 1
    }

    /// Returns true if one that is not revoked may have been handed out.
    pub(crate) fn may_be_known(&self) -> bool {
        self.live().any(may_be_known)
    }
}
