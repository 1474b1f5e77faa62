//! Clusters as they were compared with AMS, and the credentials of AMS that each has had.

use std::collections::{BTreeMap, BTreeSet};

use accounts_mgmt::Ksuid;
use database::{Parameters, Row, Statements, Value, insert_or, insert_rows};

use super::credentials::ksuid;
use crate::ams::{AmsCluster, AmsEntry, Finding};
use crate::credential::ClusterRef;
use crate::ledger::claim::micros;
use crate::ledger::handle::{Ledger, LedgerError};
use crate::ledger::rows::{self, damaged};
use crate::publish::meaning::normal;

/// The columns of a comparison.
const COMPARED: &str = "ams_clusters (cluster_id, incarnation, pass, looked, clean_since, differences)";

/// A comparison takes the place of the one before.
const AGAIN: &str = " WHERE TRUE ON CONFLICT (cluster_id) DO UPDATE SET incarnation = excluded.incarnation, pass = excluded.pass, \
                     looked = excluded.looked, clean_since = excluded.clean_since, differences = excluded.differences";

/// A host at which a cluster has had a credential of AMS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmsUse {
    /// The credential.
    pub credential: Ksuid,
    /// The cluster's id.
    pub cluster: String,
    /// The key in `auths`.
    pub host: String,
    /// True if the credential is deleted in AMS.
    pub is_deleted: bool,
}

// === impl Ledger ===

impl Ledger {
    /// Records a cluster as it was compared now, in place of what there was of it.
    pub async fn record_ams_cluster(&self, compared: &AmsCluster) -> Result<(), LedgerError> {
        let differences =
            serde_json::to_string(&compared.differences).map_err(|_unwritable| damaged("ams_clusters.differences"))?;
        let id = &compared.cluster.id;
        let row = vec![
            rows::text(id),
            Value::Number(compared.cluster.incarnation),
            Value::Number(compared.pass),
            micros(compared.compared_at),
            compared.clean_since.map_or(Value::NoNumber, micros),
            Value::Text(differences),
        ];
        let entry = |entry: &AmsEntry| {
            vec![
                rows::text(id),
                rows::text(&entry.host),
                rows::optional(entry.username.as_ref()),
                rows::text(entry.finding),
                rows::optional(entry.credential.as_ref()),
            ]
        };
        let of_ams = |entry: &AmsEntry| {
            Some(vec![rows::text(entry.credential.as_ref()?), rows::text(id), rows::text(&entry.host)])
        };
        let mut write = self.database().begin().await?;
        // First, as it locks the row: a comparison of a person may be at work beside that of the service.
        let mut statements = Statements::new(write.dialect());
        insert_or(&mut statements, COMPARED, vec![row], AGAIN);
        statements.run(&mut write).await?;
        let mut parameters = Parameters::default();
        let key = parameters.add(rows::text(id));
        write.execute(format!("DELETE FROM ams_entries WHERE cluster_id = {key}"), parameters).await?;
        let mut statements = Statements::new(write.dialect());
        let columns = "ams_entries (cluster_id, host, username, finding, credential)";
        insert_rows(&mut statements, columns, compared.entries.iter().map(entry).collect());
        let uses = compared.entries.iter().filter_map(of_ams).collect();
        let again = " WHERE TRUE ON CONFLICT (credential, cluster_id, host) DO NOTHING";
        insert_or(&mut statements, "ams_uses (credential, cluster_id, host)", uses, again);
        statements.run(&mut write).await?;
        Ok(write.commit().await?)
    }

    /// Returns true if a cluster was read by an import and has not left AMS: it gets its first credential by leaving,
    /// and not before. It has left once a credential of AMS that it had is deleted in AMS, and none that lives is at
    /// one of these hosts, which are those of our registries.
    pub async fn is_of_ams(&self, cluster: &ClusterRef, hosts: &[&str]) -> Result<bool, LedgerError> {
        let mut parameters = Parameters::default();
        let [id, incarnation] =
            [rows::text(&cluster.id), Value::Number(cluster.incarnation)].map(|value| parameters.add(value));
        let sql = format!(
            "SELECT ams_uses.host, CAST(CASE WHEN ams_credentials.deleted IS NULL THEN 0 ELSE 1 END AS BIGINT) \
             FROM ams_uses JOIN ams_clusters ON ams_clusters.cluster_id = ams_uses.cluster_id \
             LEFT JOIN ams_credentials ON ams_credentials.id = ams_uses.credential \
             WHERE ams_uses.cluster_id = {id} AND incarnation = {incarnation}"
        );
        let found = self.database().fetch(sql, parameters).await?;
        let taken: BTreeSet<String> = hosts.iter().map(|host| normal(host)).collect();
        let mut has_left = found.is_empty();
        for row in found {
            let (host, is_deleted) = (row.text(0)?, row.number(1)? == 1);
            if !is_deleted && taken.contains(&normal(&host)) {
                return Ok(true);
            }
            has_left |= is_deleted;
        }
        Ok(!has_left)
    }

    /// Forgets the comparison of a cluster that does not exist any more; what it had of AMS stays known.
    pub async fn forget_ams_cluster(&self, id: &str) -> Result<(), LedgerError> {
        let mut write = self.database().begin().await?;
        for table in ["ams_entries", "ams_clusters"] {
            let mut parameters = Parameters::default();
            let key = parameters.add(rows::text(id));
            write.execute(format!("DELETE FROM {table} WHERE cluster_id = {key}"), parameters).await?;
        }
        Ok(write.commit().await?)
    }

    /// Reads the clusters as they were compared last, in the order of ids; one of them if an id is given.
    pub async fn ams_clusters(&self, id: Option<&str>) -> Result<Vec<AmsCluster>, LedgerError> {
        let mut entries: BTreeMap<String, Vec<AmsEntry>> = BTreeMap::new();
        let (condition, parameters) = of_cluster(id);
        let sql = format!(
            "SELECT cluster_id, host, username, finding, credential FROM ams_entries{condition} ORDER BY cluster_id, host"
        );
        for row in self.database().fetch(sql, parameters).await? {
            entries.entry(row.text(0)?).or_default().push(entry(&row)?);
        }
        let (condition, parameters) = of_cluster(id);
        let sql = format!(
            "SELECT cluster_id, incarnation, pass, looked, clean_since, differences FROM ams_clusters{condition} \
             ORDER BY cluster_id"
        );
        let rows = self.database().fetch(sql, parameters).await?;
        rows.iter().map(|row| cluster(row, &mut entries)).collect()
    }

    /// Reads where credentials of AMS are, or were: those of a cluster, or all.
    pub async fn ams_uses(&self, cluster: Option<&str>) -> Result<Vec<AmsUse>, LedgerError> {
        let (condition, parameters) = of_cluster(cluster);
        self.read_uses(condition, parameters).await
    }

    /// Reads where a credential of AMS is, or was.
    pub async fn ams_uses_of(&self, credential: &Ksuid) -> Result<Vec<AmsUse>, LedgerError> {
        let mut parameters = Parameters::default();
        let condition = format!(" WHERE credential = {}", parameters.add(rows::text(credential)));
        self.read_uses(condition, parameters).await
    }

    async fn read_uses(&self, condition: String, parameters: Parameters) -> Result<Vec<AmsUse>, LedgerError> {
        let deleted = "CAST(CASE WHEN EXISTS (SELECT 1 FROM ams_credentials WHERE id = credential AND deleted IS NOT NULL) \
                       THEN 1 ELSE 0 END AS BIGINT)";
        let sql = format!(
            "SELECT credential, cluster_id, host, {deleted} FROM ams_uses{condition} ORDER BY cluster_id, host, credential"
        );
        let found = |row: &Row| {
            let credential = ksuid(&row.text(0)?)?;
            Ok(AmsUse { credential, cluster: row.text(1)?, host: row.text(2)?, is_deleted: row.number(3)? == 1 })
        };
        self.database().fetch(sql, parameters).await?.iter().map(found).collect()
    }
}

fn of_cluster(id: Option<&str>) -> (String, Parameters) {
    let mut parameters = Parameters::default();
    let condition = id.map(|id| format!(" WHERE cluster_id = {}", parameters.add(rows::text(id))));
    (condition.unwrap_or_default(), parameters)
}

fn entry(row: &Row) -> Result<AmsEntry, LedgerError> {
    Ok(AmsEntry {
        host: row.text(1)?,
        username: row.optional_text(2)?,
        finding: Finding::parse(&row.text(3)?).ok_or(damaged("ams_entries.finding"))?,
        credential: row.optional_text(4)?.map(|text| ksuid(&text)).transpose()?,
    })
}

fn cluster(row: &Row, entries: &mut BTreeMap<String, Vec<AmsEntry>>) -> Result<AmsCluster, LedgerError> {
    let id = row.text(0)?;
    let differences = row.text(5)?;
    Ok(AmsCluster {
        pass: row.number(2)?,
        compared_at: rows::time(row.number(3)?)?,
        clean_since: row.optional_number(4)?.map(rows::time).transpose()?,
        differences: serde_json::from_str(&differences).map_err(|_quotes| damaged("ams_clusters.differences"))?,
        entries: entries.remove(&id).unwrap_or_default(),
        cluster: ClusterRef { incarnation: row.number(1)?, id },
    })
}
