//! The pull secret of each cluster, composed as it would be published, beside the one that is there.

use std::collections::BTreeMap;

use registry_account::contract::Login;
use secrecy::ExposeSecret as _;

use super::error::ImportError;
use super::model::{AmsCluster, AmsCredential, AmsEntry, Comparison, Finding, HostDifference};
use super::secrets::{Content, PullSecrets};
use super::status::Target;
use crate::credential::ClusterRef;
use crate::decide::ams::{Difference, EntryFacts, clean_since, difference};
use crate::ledger::{Ledger, LedgerError};
use crate::publish::PullSecret;
use crate::publish::meaning::{Named, normal};
use crate::run::Sources;

/// The parts of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Shadow<'a, P> {
    /// The ledger.
    pub ledger: &'a Ledger,
    /// The pull secrets.
    pub secrets: &'a P,
    /// The registries that take over.
    pub targets: &'a [Target],
    /// The time.
    pub sources: &'a Sources,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shadowed {
    /// Number of clusters that were compared.
    pub clusters: usize,
    /// The clusters with differences.
    pub different: Vec<AmsCluster>,
}

/// Compares the pull secret of every cluster with what would be published, and records what was found. Clusters that do
/// not exist any more are forgotten.
///
/// # Errors
///
/// `NoImport` before the first import. A cluster that cannot be read for now ends it; what was recorded before stays.
pub async fn shadow<P: PullSecrets>(parts: &Shadow<'_, P>) -> Result<Shadowed, ImportError> {
    let Shadow { ledger, secrets, sources, .. } = *parts;
    let Some(import) = ledger.ams_import().await? else { return Err(ImportError::NoImport) };
    let before = ledger.ams_clusters(None).await?.into_iter().map(|known| (known.cluster.id.clone(), known));
    let mut before: BTreeMap<String, AmsCluster> = before.collect();
    let mut result = Shadowed::default();
    for cluster in secrets.clusters().await? {
        let known = before.remove(&cluster.id).filter(|known| known.cluster == cluster);
        let Some(comparison) = compare_one(parts, &cluster, import.pass).await? else { continue };
        let compared_at = sources.now();
        let (last, since) = known.map_or((None, None), |known| (Some(known.compared_at), known.clean_since));
        let since = clean_since(since, last, comparison.differences.is_empty(), compared_at);
        let Comparison { entries, differences } = comparison;
        let pass = import.pass;
        let compared = AmsCluster { cluster, pass, compared_at, clean_since: since, differences, entries };
        ledger.record_ams_cluster(&compared).await?;
        result.clusters += 1;
        if !compared.differences.is_empty() {
            result.different.push(compared);
        }
    }
    // One that exists stays as it was compared last: the search may find it again.
    for unlisted in before.into_keys() {
        if !secrets.exists(&unlisted).await? {
            ledger.forget_ams_cluster(&unlisted).await?;
        }
    }
    Ok(result)
}

/// Compares the pull secret of one cluster; `None` if the cluster does not exist any more.
async fn compare_one<P: PullSecrets>(
    parts: &Shadow<'_, P>,
    cluster: &ClusterRef,
    pass: i64,
) -> Result<Option<Comparison>, ImportError> {
    match parts.secrets.read(cluster).await? {
        Content::Gone => Ok(None),
        Content::NotReadable => {
            let difference = HostDifference { host: String::new(), difference: Difference::NotReadable };
            Ok(Some(Comparison { entries: Vec::new(), differences: vec![difference] }))
        }
        Content::Here { secret, .. } => Ok(Some(compare(parts.ledger, parts.targets, &secret, pass).await?)),
    }
}

/// Compares a pull secret with AMS and with what would be published.
async fn compare(
    ledger: &Ledger,
    targets: &[Target],
    secret: &PullSecret,
    pass: i64,
) -> Result<Comparison, LedgerError> {
    let named = secret.named();
    let users: Vec<String> = named.iter().filter_map(|named| Some(named.login.as_ref()?.username.clone())).collect();
    let of_ams = if users.is_empty() { Vec::new() } else { ledger.ams_of_users(pass, &users).await? };
    let mut entries = Vec::new();
    for Named { key, login } in named {
        let entry = match &login {
            None => AmsEntry { host: key, username: None, finding: Finding::NoLogin, credential: None },
            Some(login) => found(ledger, targets, &of_ams, key, login).await?,
        };
        entries.push(entry);
    }
    let differences = differences(secret, targets, &entries);
    Ok(Comparison { entries, differences })
}

/// Returns the origin of an entry.
async fn found(
    ledger: &Ledger,
    targets: &[Target],
    of_ams: &[AmsCredential],
    key: String,
    login: &Login,
) -> Result<AmsEntry, LedgerError> {
    let username = Some(login.username.clone());
    let mut finding = Finding::Unknown;
    for credential in of_ams.iter().filter(|credential| credential.username == login.username) {
        let token = ledger.ams_token(credential).await?;
        if token.is_some_and(|token| token.expose_secret() == login.password.expose_secret()) {
            let credential = Some(credential.id.clone());
            return Ok(AmsEntry { host: key, username, finding: Finding::Ams, credential });
        }
        finding = Finding::OtherToken;
    }
    for target in targets.iter().filter(|target| normal(&target.host) == normal(&key)) {
        let own = ledger.of_login(&target.registry, &login.username).await?;
        if own.is_some() {
            finding = Finding::Own;
        }
    }
    Ok(AmsEntry { host: key, username, finding, credential: None })
}

/// Returns the differences that nothing explains.
fn differences(secret: &PullSecret, targets: &[Target], entries: &[AmsEntry]) -> Vec<HostDifference> {
    let hosts: Vec<&str> = targets.iter().map(|target| target.host.as_str()).collect();
    // A login that no cluster has, so that every entry that would be written is another one.
    let placeholder = Login { username: "placeholder".to_owned(), password: "placeholder".to_owned().into() };
    let Ok(composed) = secret.composed(&hosts, &placeholder) else {
        return vec![HostDifference { host: String::new(), difference: Difference::NotReadable }];
    };
    let changed = secret.changed(&composed);
    let taken: Vec<String> = hosts.iter().map(|host| normal(host)).collect();
    let spellings = |normal_host: &str| entries.iter().filter(|entry| normal(&entry.host) == normal_host).count();
    let of_entry = |entry: &AmsEntry| {
        let normal_host = normal(&entry.host);
        let facts = EntryFacts {
            is_taken: taken.contains(&normal_host),
            spellings: spellings(&normal_host),
            is_known: !entry.is_unexplained(),
            has_other_token: entry.finding == Finding::OtherToken,
            changes: changed.contains(&normal_host),
        };
        Some(HostDifference { host: entry.host.clone(), difference: difference(&facts)? })
    };
    let missing = hosts.iter().zip(&taken).filter(|(_, normal_host)| spellings(normal_host) == 0);
    let missing = missing.map(|(host, _)| HostDifference { host: (*host).to_owned(), difference: Difference::Missing });
    entries.iter().filter_map(of_entry).chain(missing).collect()
}

/// Returns true if a pull secret has a user, at any host.
pub(super) fn names(secret: &PullSecret, username: &str) -> bool {
    secret.named().iter().any(|named| named.login.as_ref().is_some_and(|login| login.username == username))
}
