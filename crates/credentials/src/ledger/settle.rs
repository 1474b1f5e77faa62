//! The standing of the clusters of a rotation: those on their way are judged.

use database::{Parameters, Row, Transaction};
use jiff::Timestamp;
use registry_account::name::CredentialId;

use super::claim::micros;
use super::handle::LedgerError;
use super::rows::{self, COLUMNS};
use crate::credential::Credential;
use crate::decide::{Judged, judge};
use crate::reason::Reason;
use crate::rotation::{Rotation, RotationName, Standing};

/// A cluster that was begun.
struct Begun {
    credential: CredentialId,
    started: Timestamp,
    successor: Option<Credential>,
}

/// The change of a cluster's standing.
pub(super) struct MemberChange {
    pub(super) credential: CredentialId,
    pub(super) standing: Standing,
    pub(super) cause: Option<Reason>,
}

/// Judges the clusters on their way, in any phase that is not final. Returns the number of those that are done.
pub(super) async fn settle(write: &mut Transaction, rotation: &Rotation, now: Timestamp) -> Result<u64, LedgerError> {
    let mut settled = 0;
    for Begun { credential, started, successor } in begun(write, rotation).await? {
        let Judged { standing, cause } = judge(successor.as_ref(), started, &rotation.plan, now);
        if standing != Standing::InProgress {
            save_member(write, &rotation.name, &MemberChange { credential, standing, cause }, now).await?;
            settled += 1;
        }
    }
    Ok(settled)
}

/// Reads the clusters on their way, each with the credential that replaces its old one.
async fn begun(write: &mut Transaction, rotation: &Rotation) -> Result<Vec<Begun>, LedgerError> {
    let mut parameters = Parameters::default();
    let name = parameters.add(rows::text(&rotation.name));
    // The standing is no parameter, so that the index of these rows alone serves.
    let standing = Standing::InProgress;
    // A credential that waited beside that of AMS replaces no other one of ours.
    let is_new = if rotation.plan.from_ams { "id" } else { "replaces" };
    let sql = format!(
        "SELECT {COLUMNS}, credential, started FROM rotation_members LEFT JOIN credentials \
         ON credentials.{is_new} = rotation_members.credential AND credentials.slot IS NOT NULL \
         WHERE rotation = {name} AND standing = '{standing}'"
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

/// Writes the standing of a cluster, and the time at which it was begun or was done.
pub(super) async fn save_member(
    write: &mut Transaction,
    name: &RotationName,
    change: &MemberChange,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let column = if change.standing == Standing::InProgress { "started" } else { "settled" };
    let mut parameters = Parameters::default();
    let [standing, cause, now, name, credential] = [
        rows::text(change.standing),
        rows::optional(change.cause),
        micros(now),
        rows::text(name),
        rows::text(change.credential),
    ]
    .map(|value| parameters.add(value));
    let sql = format!(
        "UPDATE rotation_members SET standing = {standing}, cause = {cause}, {column} = {now} \
         WHERE rotation = {name} AND credential = {credential}"
    );
    write.execute(sql, parameters).await?;
    Ok(())
}
