//! The import: every credential of AMS, and the numbers that prove it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use accounts_mgmt::{Accounts, ImportedCredential, Ksuid, RegistryId};

use super::error::ImportError;
use super::model::{AmsCluster, AmsEntry, RegistryCount};
use super::paced::{Paced, Waits};
use super::secrets::PullSecrets;
use super::shadow::{Shadow, shadow};

/// Complete reads of AMS until the numbers agree, while rows come and go.
const ROUNDS: u32 = 3;

/// The parts of an import.
#[derive(Clone, Copy, Debug)]
pub struct Import<'a, A, P, W> {
    /// AMS.
    pub accounts: Paced<'a, A, W>,
    /// The comparison with the pull secrets that follows.
    pub shadow: Shadow<'a, P>,
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The numbers of each registry.
    pub counts: Vec<RegistryCount>,
    /// Number of clusters whose pull secret was read.
    pub clusters: usize,
    /// The entries that neither AMS nor this service knows.
    pub not_found: Vec<NotFound>,
    /// The clusters whose pull secret cannot be read.
    pub not_readable: Vec<String>,
}

/// An entry that neither AMS nor this service knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    /// The cluster's id.
    pub cluster: String,
    /// The entry.
    pub entry: AmsEntry,
}

// === impl Imported ===

impl Imported {
    /// Returns true if the numbers agree and every entry is known: the proof to go on.
    pub fn is_proven(&self) -> bool {
        self.counts.iter().all(RegistryCount::agrees) && self.not_found.is_empty() && self.not_readable.is_empty()
    }
}

/// Reads every credential of AMS and every pull secret, and changes neither. It can be repeated at any time.
///
/// # Errors
///
/// A call of AMS that keeps failing, or a cluster that cannot be read for now.
pub async fn import<A: Accounts, P: PullSecrets, W: Waits>(
    parts: &Import<'_, A, P, W>,
) -> Result<Imported, ImportError> {
    let mut counts = read_all(&parts.accounts).await?;
    for _round in 1..ROUNDS {
        if counts.iter().all(RegistryCount::agrees) {
            break;
        }
        counts = read_all(&parts.accounts).await?;
    }
    let compared = shadow(&parts.shadow).await?;
    let clusters = parts.shadow.ledger.ams_clusters(None).await?;
    let unknown = |known: &AmsCluster| {
        let entries = known.entries.iter().filter(|entry| entry.is_unexplained()).cloned();
        entries.map(|entry| NotFound { cluster: known.cluster.id.clone(), entry }).collect::<Vec<_>>()
    };
    let not_readable = clusters.iter().filter(|known| known.differences.iter().any(|one| one.host.is_empty()));
    Ok(Imported {
        counts,
        clusters: compared.clusters,
        not_found: clusters.iter().flat_map(unknown).collect(),
        not_readable: not_readable.map(|known| known.cluster.id.clone()).collect(),
    })
}

/// Reads AMS once from the beginning to the end.
async fn read_all<A: Accounts, W: Waits>(accounts: &Paced<'_, A, W>) -> Result<Vec<RegistryCount>, ImportError> {
    let (ledger, sources) = (accounts.pacing.ledger, accounts.pacing.sources);
    let pass = ledger.begin_ams_import(sources.now()).await?;
    let mut after: Option<Ksuid> = None;
    let mut hosts: BTreeMap<RegistryId, String> = BTreeMap::new();
    loop {
        let page = accounts.call(async |ams: &A| ams.credentials(after.as_ref()).await).await?;
        let Some(last) = page.items.last().map(|last| last.id.clone()) else { break };
        ledger.import_ams(pass, &page.items).await?;
        for ImportedCredential { registry: id, .. } in page.items {
            if let Entry::Vacant(vacant) = hosts.entry(id) {
                let id = vacant.key();
                let found = accounts.call(async |ams: &A| ams.registry(id).await).await?;
                vacant.insert(found.map(|found| found.host).unwrap_or_default());
            }
        }
        after = Some(last);
    }
    let imported = ledger.ams_counts(pass).await?;
    let mut counts = Vec::new();
    for (id, host) in hosts {
        let total = accounts.call(async |ams: &A| ams.count(&id).await).await?;
        let imported = imported.get(&id).copied().unwrap_or_default();
        counts.push(RegistryCount { registry: id.to_string(), host, total, imported });
    }
    ledger.finish_ams_import(pass, &counts, sources.now()).await?;
    Ok(counts)
}
