//! The entries of all pull secrets, as they were when they were read last.

use std::collections::BTreeMap;
use std::time::Duration;

use database::{Parameters, Row, Transaction, Value};
use fleet_model::Generation;
use jiff::Timestamp;
use registry_account::name::CredentialId;

use super::handle::{Ledger, LedgerError};
use super::inventory::Filter;
use super::rows;
use crate::credential::{ClusterRef, Credential};
use crate::entries::{
    EntryCounts, EntryDigest, EntryDigests, Group, KnownEntry, ObservedEntry, ObservedPullSecret, SOON, Since,
};

/// Clusters that one statement forgets; SQLite has no arrays.
const FORGOTTEN_AT_ONCE: usize = 500;

/// The entries of a list; an empty filter selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// Those of this cluster's id.
    pub cluster: Option<String>,
    /// Those with this key.
    pub host: Option<String>,
    /// Those whose validity ends before.
    pub expires_before: Option<Timestamp>,
    /// Those that exist since before.
    pub since_before: Option<Timestamp>,
}

/// The kind of a pass over all pull secrets; the number is that of its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassKind {
    /// A read of their entries.
    Entries = 1,
    /// A comparison with AMS.
    Shadow = 2,
}

/// The last read of a pull secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRead {
    /// The incarnation of the cluster, in microseconds since 1970.
    pub incarnation: i64,
    /// The generation that was read.
    pub generation: Generation,
}

/// An entry as a row has it.
struct Stored {
    digest: EntryDigest,
    since: Since,
}

/// An entry to be recorded.
#[derive(Clone, Copy)]
struct Inserted<'a> {
    cluster: &'a str,
    entry: &'a ObservedEntry,
    credential: Option<CredentialId>,
    since: Since,
}

// === impl Ledger ===

impl Ledger {
    /// Takes the next pass over all pull secrets, unless another replica has it: one of each kind in each `interval`.
    pub async fn take_pass(&self, kind: PassKind, interval: Duration, now: Timestamp) -> Result<bool, LedgerError> {
        let mut parameters = Parameters::default();
        let id = parameters.add(Value::Number(kind as i64));
        let next = now.saturating_add(interval).unwrap_or(Timestamp::MAX);
        let [now, next] = [now, next].map(|time| parameters.add(Value::Number(time.as_microsecond())));
        let sql = format!(
            "INSERT INTO pull_secret_passes (id, next) VALUES ({id}, {next}) \
             ON CONFLICT (id) DO UPDATE SET next = excluded.next WHERE pull_secret_passes.next <= {now}"
        );
        let mut write = self.database().begin().await?;
        let taken = write.execute(sql, parameters).await?;
        write.commit().await?;
        Ok(taken > 0)
    }

    /// Returns the last reads of the pull secrets, by cluster; `None` where digests under another key are recorded, so that the next
    /// change of the content could not be detected.
    pub async fn last_reads(&self, digests: &EntryDigests) -> Result<BTreeMap<String, Option<LastRead>>, LedgerError> {
        let mut parameters = Parameters::default();
        let key = parameters.add(rows::text(digests.key_id()));
        let sql = format!(
            "SELECT cluster_id, incarnation, generation, CAST(CASE WHEN EXISTS (SELECT 1 FROM pull_secret_entries e \
             WHERE e.cluster_id = pull_secrets.cluster_id AND e.digest_key <> {key}) THEN 1 ELSE 0 END AS BIGINT) \
             FROM pull_secrets"
        );
        let rows = self.database().fetch(sql, parameters).await?;
        let last_read = |row: &Row| {
            let generation =
                Generation::try_from(row.number(2)?).map_err(|_range| rows::damaged("pull_secrets.generation"))?;
            let read = LastRead { incarnation: row.number(1)?, generation };
            Ok((row.text(0)?, (row.number(3)? == 0).then_some(read)))
        };
        rows.iter().map(last_read).collect()
    }

    /// Records a pull secret as it is now, unless a later generation of it is recorded. An entry that it does not have any more is
    /// forgotten.
    pub async fn record_pull_secret(&self, observed: &ObservedPullSecret, now: Timestamp) -> Result<(), LedgerError> {
        let cluster = &observed.cluster;
        let own = self.list(&Filter { cluster: Some(cluster.id.clone()), ..Filter::default() }).await?;
        let mut write = self.database().begin().await?;
        if !lock(&mut write, observed, now).await? {
            return Ok(write.roll_back().await?);
        }
        let mut known = stored(&mut write, cluster).await?;
        delete(&mut write, "pull_secret_entries", std::slice::from_ref(&cluster.id)).await?;
        for entry in observed.entries.iter().flatten() {
            let before = known.remove(&entry.host).filter(|before| entry.digest.may_be(&before.digest));
            let made = made_here(entry, cluster, &own);
            let since = Since::at_read(
                entry,
                made.and_then(|made| made.record.created),
                before.map(|before| before.since),
                now,
            );
            let credential = made.map(|made| made.id);
            insert(&mut write, &Inserted { cluster: &cluster.id, entry, credential, since }).await?;
        }
        update(&mut write, observed).await?;
        Ok(write.commit().await?)
    }

    /// Forgets the pull secrets of clusters that do not exist any more.
    pub async fn forget_pull_secrets(&self, clusters: &[String]) -> Result<(), LedgerError> {
        for clusters in clusters.chunks(FORGOTTEN_AT_ONCE) {
            let mut write = self.database().begin().await?;
            for table in ["pull_secret_entries", "pull_secrets"] {
                delete(&mut write, table, clusters).await?;
            }
            write.commit().await?;
        }
        Ok(())
    }

    /// Reads the entries that a filter selects, those that end first first, and the oldest before others.
    pub async fn entries(&self, filter: &EntryFilter) -> Result<Vec<KnownEntry>, LedgerError> {
        let mut parameters = Parameters::default();
        let time = |time: Timestamp| Value::Number(time.as_microsecond());
        let conditions = [
            ("cluster_id =", filter.cluster.as_ref().map(rows::text)),
            ("host =", filter.host.as_ref().map(rows::text)),
            ("expires <", filter.expires_before.map(time)),
            ("since <", filter.since_before.map(time)),
        ];
        let conditions = conditions.into_iter().filter_map(|(column, value)| Some((column, value?)));
        let conditions: Vec<String> =
            conditions.map(|(column, value)| format!("{column} {}", parameters.add(value))).collect();
        let condition =
            if conditions.is_empty() { String::new() } else { format!("WHERE {} ", conditions.join(" AND ")) };
        let sql = format!(
            "SELECT cluster_id, host, credential, since, made, expires FROM pull_secret_entries {condition}\
             ORDER BY COALESCE(expires, {}), since, cluster_id, host",
            rows::NEVER
        );
        self.database().fetch(sql, parameters).await?.iter().map(known).collect()
    }

    /// Counts the entries by their maker.
    pub async fn entry_counts(&self, now: Timestamp) -> Result<EntryCounts, LedgerError> {
        let mut parameters = Parameters::default();
        let soon = now.saturating_add(SOON).unwrap_or(Timestamp::MAX);
        let [now, soon] = [now, soon].map(|time| parameters.add(Value::Number(time.as_microsecond())));
        let sql = format!(
            "SELECT CAST(CASE WHEN credential IS NULL THEN 0 ELSE 1 END AS BIGINT), COUNT(*), MIN(since), \
             COUNT(CASE WHEN expires <= {now} THEN 1 END), COUNT(CASE WHEN expires > {now} AND expires <= {soon} THEN 1 END) \
             FROM pull_secret_entries GROUP BY 1"
        );
        let mut counts = EntryCounts::default();
        for row in self.database().fetch(sql, parameters).await? {
            let count = |column| Ok::<_, LedgerError>(u64::try_from(row.number(column)?).unwrap_or_default());
            let oldest = row.optional_number(2)?.map(rows::time).transpose()?;
            let group = Group { number: count(1)?, oldest, expired: count(3)?, soon: count(4)? };
            *(if row.number(0)? == 1 { &mut counts.service } else { &mut counts.elsewhere }) = group;
        }
        let sql = "SELECT COUNT(*) FROM pull_secrets WHERE readable = 0";
        let rows = self.database().fetch(sql.to_owned(), Parameters::default()).await?;
        counts.unread = rows.first().map(|row| row.number(0)).transpose()?.unwrap_or_default().try_into().unwrap_or(0);
        Ok(counts)
    }
}

/// Returns the credential of the ledger that an entry logs in with.
fn made_here<'a>(entry: &ObservedEntry, cluster: &ClusterRef, own: &'a [Credential]) -> Option<&'a Credential> {
    let user = entry.user.as_ref()?;
    own.iter().find(|own| own.record.login.as_ref() == Some(user) && own.cluster.as_ref() == Some(cluster))
}

/// Locks the row of a pull secret. Returns false if a later generation of it is recorded.
async fn lock(write: &mut Transaction, observed: &ObservedPullSecret, now: Timestamp) -> Result<bool, LedgerError> {
    let mut parameters = Parameters::default();
    let values = [
        rows::text(&observed.cluster.id),
        Value::Number(observed.cluster.incarnation),
        Value::Number(0),
        Value::Number(0),
        Value::Number(now.as_microsecond()),
    ];
    let values = values.map(|value| parameters.add(value)).join(", ");
    let sql = format!(
        "INSERT INTO pull_secrets (cluster_id, incarnation, generation, readable, looked) VALUES ({values}) \
         ON CONFLICT (cluster_id) DO UPDATE SET looked = excluded.looked RETURNING incarnation, generation"
    );
    let rows = write.fetch(sql, parameters).await?;
    let Some(row) = rows.first() else { return Ok(false) };
    Ok((row.number(0)?, row.number(1)?) <= (observed.cluster.incarnation, i64::from(observed.generation)))
}

/// Records which generation of a pull secret was read.
async fn update(write: &mut Transaction, observed: &ObservedPullSecret) -> Result<(), LedgerError> {
    let mut parameters = Parameters::default();
    let mut add = |number: i64| parameters.add(Value::Number(number));
    let set = [
        format!("incarnation = {}", add(observed.cluster.incarnation)),
        format!("generation = {}", add(observed.generation.into())),
        format!("readable = {}", add(i64::from(observed.entries.is_some()))),
    ];
    let id = parameters.add(rows::text(&observed.cluster.id));
    write.execute(format!("UPDATE pull_secrets SET {} WHERE cluster_id = {id}", set.join(", ")), parameters).await?;
    Ok(())
}

/// Reads the entries of a cluster in this incarnation.
async fn stored(write: &mut Transaction, cluster: &ClusterRef) -> Result<BTreeMap<String, Stored>, LedgerError> {
    let mut parameters = Parameters::default();
    let id = parameters.add(rows::text(&cluster.id));
    let incarnation = parameters.add(Value::Number(cluster.incarnation));
    let sql = format!(
        "SELECT e.host, e.digest_key, e.digest, e.since, e.made FROM pull_secrets p \
         JOIN pull_secret_entries e ON e.cluster_id = p.cluster_id \
         WHERE p.cluster_id = {id} AND p.incarnation = {incarnation}"
    );
    let rows = write.fetch(sql, parameters).await?;
    let read = |row: &Row| {
        let digest = EntryDigest { key: row.text(1)?, digest: row.text(2)? };
        Ok((row.text(0)?, Stored { digest, since: since(row, 3)? }))
    };
    rows.iter().map(read).collect()
}

async fn insert(write: &mut Transaction, inserted: &Inserted<'_>) -> Result<(), LedgerError> {
    let Inserted { cluster, entry, credential, since } = *inserted;
    let mut parameters = Parameters::default();
    let expires = entry.validity.expires.map_or(Value::NoNumber, |time| Value::Number(time.as_microsecond()));
    let values = [
        rows::text(cluster),
        rows::text(&entry.host),
        rows::text(&entry.digest.key),
        rows::text(&entry.digest.digest),
        rows::optional(credential),
        Value::Number(since.time().as_microsecond()),
        Value::Number(i64::from(matches!(since, Since::Made(_)))),
        expires,
    ];
    let values = values.map(|value| parameters.add(value)).join(", ");
    // Two keys that hold a credential by mistake may be shown by the same text.
    let sql = format!(
        "INSERT INTO pull_secret_entries (cluster_id, host, digest_key, digest, credential, since, made, expires) \
         VALUES ({values}) ON CONFLICT (cluster_id, host) DO NOTHING"
    );
    write.execute(sql, parameters).await?;
    Ok(())
}

/// Deletes the rows of clusters.
async fn delete(write: &mut Transaction, table: &str, clusters: &[String]) -> Result<(), LedgerError> {
    let mut parameters = Parameters::default();
    let condition = parameters.one_of(write.dialect(), "cluster_id", clusters);
    write.execute(format!("DELETE FROM {table} WHERE {condition}"), parameters).await?;
    Ok(())
}

fn known(row: &Row) -> Result<KnownEntry, LedgerError> {
    let credential: Option<CredentialId> = row.optional_text(2)?.map(|id| rows::id(&id)).transpose()?;
    let expires = row.optional_number(5)?.map(rows::time).transpose()?;
    Ok(KnownEntry { cluster: row.text(0)?, host: row.text(1)?, credential, since: since(row, 3)?, expires })
}

/// Reads a time; the next column is 1 if the credential was made then.
fn since(row: &Row, column: usize) -> Result<Since, LedgerError> {
    let time = rows::time(row.number(column)?)?;
    Ok(if row.number(column + 1)? == 1 { Since::Made(time) } else { Since::FirstObserved(time) })
}
