//! The progress of the clusters of a rotation: those in progress are judged.

use database::{Parameters, Row, Transaction};
use jiff::Timestamp;
use registry_account::name::CredentialId;

use super::claim::micros;
use super::handle::LedgerError;
use super::rows::{self, COLUMNS};
use crate::credential::Credential;
use crate::decide::{Judged, judge};
use crate::reason::Reason;
use crate::rotation::{ClusterProgress, Rotation, RotationName};

/// A cluster that was begun.
struct Begun {
    credential: CredentialId,
    started: Timestamp,
    successor: Option<Credential>,
}

/// The change of a cluster's progress.
pub(super) struct MemberChange {
    pub(super) credential: CredentialId,
    pub(super) progress: ClusterProgress,
    pub(super) cause: Option<Reason>,
}

/// Judges the clusters in progress, in any phase that is not final. Returns the number of those that have ended.
pub(super) async fn judge_begun(
    write: &mut Transaction,
    rotation: &Rotation,
    now: Timestamp,
) -> Result<u64, LedgerError> {
    let mut ended = 0;
    for Begun { credential, started, successor } in begun(write, rotation).await? {
        let Judged { progress, cause } = judge(successor.as_ref(), started, &rotation.plan, now);
        if progress != ClusterProgress::InProgress {
            save_member(write, &rotation.name, &MemberChange { credential, progress, cause }, now).await?;
            ended += 1;
        }
    }
    Ok(ended)
}

/// Reads the clusters in progress, each with the credential that replaces its old one.
async fn begun(write: &mut Transaction, rotation: &Rotation) -> Result<Vec<Begun>, LedgerError> {
    let mut parameters = Parameters::default();
    let name = parameters.add(rows::text(&rotation.name));
    // The progress is no parameter, so that the index of these rows alone serves.
    let progress = ClusterProgress::InProgress;
    // A credential that waited beside that of AMS replaces no other one of this service.
    let is_new = if rotation.plan.from_ams { "id" } else { "replaces" };
    let sql = format!(
        "SELECT {COLUMNS}, credential, started FROM rotation_members LEFT JOIN credentials \
         ON credentials.{is_new} = rotation_members.credential AND credentials.slot IS NOT NULL \
         WHERE rotation = {name} AND standing = '{progress}'"
    );
    let rows = write.fetch(sql, parameters).await?;
    let begun = |row: &Row| {
        let has_successor = row.optional_text(0)?.is_some();
        Ok(Begun {
            credential: rows::id(&row.text(11)?)?,
            started: rows::time(row.number(12)?)?,
            successor: has_successor.then(|| rows::credential(row)).transpose()?.map(|found| found.credential),
        })
    };
    rows.iter().map(begun).collect()
}

/// Writes the progress of a cluster, and the time at which it was begun or has ended.
pub(super) async fn save_member(
    write: &mut Transaction,
    name: &RotationName,
    change: &MemberChange,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let column = if change.progress == ClusterProgress::InProgress { "started" } else { "settled" };
    let mut parameters = Parameters::default();
    let [progress, cause, now, name, credential] = [
        rows::text(change.progress),
        rows::optional(change.cause),
        micros(now),
        rows::text(name),
        rows::text(change.credential),
    ]
    .map(|value| parameters.add(value));
    let sql = format!(
        "UPDATE rotation_members SET standing = {progress}, cause = {cause}, {column} = {now} \
         WHERE rotation = {name} AND credential = {credential}"
    );
    write.execute(sql, parameters).await?;
    Ok(())
}
