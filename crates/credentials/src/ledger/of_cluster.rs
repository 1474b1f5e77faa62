//! All that the ledger knows about one cluster, for those who ask about clusters.

use database::Parameters;

use super::handle::{Ledger, LedgerError};
use super::model::Entry;
use super::rows::{self, COLUMNS};
use crate::credential::Credential;

/// A credential of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterCredential {
    /// The credential.
    pub credential: Credential,
    /// True if it has its place in the life of the cluster; one that was given up has lost it.
    pub has_place: bool,
}

// === impl Ledger ===

impl Ledger {
    /// Reads the credentials of a cluster's id, in all its incarnations, oldest first.
    pub async fn of_cluster(&self, cluster: &str) -> Result<Vec<ClusterCredential>, LedgerError> {
        let mut parameters = Parameters::default();
        let cluster = parameters.add(rows::text(cluster));
        let sql = format!(
            "SELECT {COLUMNS}, CAST(CASE WHEN slot IS NULL THEN 0 ELSE 1 END AS BIGINT) FROM credentials \
             WHERE cluster_id = {cluster} ORDER BY id"
        );
        let rows = self.database().fetch(sql, parameters).await?;
        let read = |row: &database::Row| {
            let credential = rows::credential(row)?.credential;
            Ok(ClusterCredential { credential, has_place: row.number(11)? == 1 })
        };
        rows.iter().map(read).collect()
    }

    /// Reads the events by which the credentials of a cluster's id were assigned to it, and the orders to replace them, oldest
    /// first.
    pub async fn assignments(&self, cluster: &str) -> Result<Vec<Entry>, LedgerError> {
        let mut parameters = Parameters::default();
        let cluster = parameters.add(rows::text(cluster));
        let sql = format!(
            "SELECT credential_events.credential, credential_events.cluster_id, actor, action, outcome, credential_events.reason, remark, \
             time FROM credentials JOIN credential_events ON credential_events.credential = credentials.id \
             WHERE credentials.cluster_id = {cluster} AND action IN ('Reserve', 'Assign', 'OrderReplacement') ORDER BY number"
        );
        let rows = self.database().fetch(sql, parameters).await?;
        Ok(rows.iter().map(rows::entry).collect::<Result<_, _>>()?)
    }
}
