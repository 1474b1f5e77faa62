//! Credentials of our own beside those of AMS: made and probed, and not published.

use super::status::{ClusterStatus, Target};
use crate::credential::Credential;
use crate::decide::ams::Phase;
use crate::ledger::{Ledger, LedgerError, Slot, Statement};
use crate::run::Sources;
use registry_account::name::NamePrefix;

/// The credentials that were issued, and the clusters that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issued {
    /// The credentials.
    pub credentials: Vec<Credential>,
    /// The ids of clusters whose pull secrets were not as expected for long enough, and of those whose credential was
    /// published and is on its way out, or over: that one is replaced, and no other is issued.
    pub left_out: Vec<String>,
}

/// Gives each compared cluster a credential of its own at a registry, kept from publication. The same again gives the same ones.
pub async fn issue(
    ledger: &Ledger,
    target: &Target,
    prefix: &NamePrefix,
    sources: &Sources,
    clusters: &[ClusterStatus],
    statement: &Statement<'_>,
) -> Result<Issued, LedgerError> {
    let mut issued = Issued::default();
    for ClusterStatus { compared, phase, own, .. } in clusters {
        let has_one = own.iter().any(|own| own.registry == target.registry);
        if *phase < Phase::Compared && !has_one {
            issued.left_out.push(compared.cluster.id.clone());
            continue;
        }
        let Some(fresh) = sources.fresh(prefix) else { break };
        let slot = Slot { registry: target.registry.clone(), cluster: compared.cluster.clone(), replaces: None };
        match ledger.issue_held(&slot, &fresh, statement).await? {
            Some(credential) => issued.credentials.push(credential),
            None => issued.left_out.push(compared.cluster.id.clone()),
        }
    }
    Ok(issued)
}
