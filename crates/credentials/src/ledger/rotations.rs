//! Rotations: their start, what people ask of them, and their progress.

use std::time::Duration;

use database::{Dialect, Parameters, Row, Statements, Transaction, Value, insert_rows};
use jiff::Timestamp;

use super::claim::micros;
use super::handle::{Ledger, LedgerError};
use super::members::{MemberChange, judge_begun, save_member};
use super::model::{NewRotation, RotationRequest, Statement};
use super::put_back::{PutBack, put_back};
use super::rows::{self, damaged, id, time};
use crate::credential::RegistryName;
use crate::reason::Reason;
use crate::rotation::{
    Candidate, ClusterProgress, GroupCounts, Member, Request, Rotation, RotationName, RotationPhase, RotationReason,
};
use crate::state::State;

/// The columns that [`rotation`] reads.
const COLUMNS: &str =
    "name, registry, plan, phase, reason, current_group, tolerated, history, paid_off, started, updated";

/// The columns of a member, in the order of [`member`].
const MEMBER: &str = "credential, cluster, member_group, standing, cause, started, settled";

// === impl Ledger ===

impl Ledger {
    /// Returns the credentials of a registry that their clusters use and that nothing replaces yet, with their clusters.
    pub async fn candidates(&self, registry: &RegistryName) -> Result<Vec<Candidate>, LedgerError> {
        let mut parameters = Parameters::default();
        let [registry, adopted] = [rows::text(registry), rows::text(State::Adopted)].map(|value| parameters.add(value));
        let sql = format!(
            "SELECT id, cluster_id FROM credentials WHERE registry = {registry} AND state = {adopted} AND cluster_id IS NOT NULL \
             AND NOT EXISTS (SELECT 1 FROM credentials newer WHERE newer.replaces = credentials.id AND newer.slot IS NOT NULL) \
             ORDER BY id"
        );
        let rows = self.database().fetch(sql, parameters).await?;
        let candidate = |row: &Row| Ok(Candidate { credential: id(&row.text(0)?)?, cluster: row.text(1)? });
        rows.iter().map(candidate).collect()
    }

    /// Records a rotation; the service works on it from now on.
    ///
    /// # Errors
    ///
    /// `RotationExists` if the name is used, `RotationOpen` if another one of the registry is not over.
    pub async fn start_rotation(&self, new: &NewRotation<'_>, statement: &Statement<'_>) -> Result<(), LedgerError> {
        let NewRotation { name, registry, plan, groups } = *new;
        let all = self.rotations().await?;
        if all.iter().any(|rotation| rotation.name == *name) {
            return Err(LedgerError::RotationExists(name.clone()));
        }
        if let Some(open) = all.iter().find(|one| one.registry == *registry && !one.phase.is_final()) {
            return Err(LedgerError::RotationOpen { registry: registry.clone(), name: open.name.clone() });
        }
        let history = vec![request("start", statement)];
        let now = micros(statement.now);
        let plan = serde_json::to_string(plan).map_err(|_unwritable| damaged("rotations.plan"))?;
        let row = vec![
            rows::text(name),
            rows::text(registry),
            Value::Text(plan),
            rows::text(RotationPhase::Running),
            rows::text(RotationReason::Rotating),
            Value::Number(0),
            Value::Number(0),
            written(&history)?,
            now.clone(),
            now.clone(),
            now,
        ];
        let mut write = self.database().begin().await?;
        let mut statements = Statements::new(write.dialect());
        insert_rows(&mut statements, &format!("rotations ({COLUMNS})"), vec![row]);
        let members = groups.iter().enumerate().flat_map(|(group, members)| {
            members.iter().map(move |Candidate { credential, cluster }| {
                let group = Value::Number(i64::try_from(group).unwrap_or(i64::MAX));
                vec![
                    rows::text(name),
                    rows::text(credential),
                    rows::text(cluster),
                    group,
                    rows::text(ClusterProgress::Waiting),
                ]
            })
        });
        let columns = "rotation_members (rotation, credential, cluster, member_group, standing)";
        insert_rows(&mut statements, columns, members.collect());
        statements.run(&mut write).await?;
        Ok(write.commit().await?)
    }

    /// Reads all rotations, oldest first.
    pub async fn rotations(&self) -> Result<Vec<Rotation>, LedgerError> {
        let sql = format!("SELECT {COLUMNS} FROM rotations ORDER BY started, name");
        self.database().fetch(sql, Parameters::default()).await?.iter().map(rotation).collect()
    }

    /// Reads a rotation.
    ///
    /// # Errors
    ///
    /// `NoRotation` if there is none with the name.
    pub async fn rotation(&self, name: &RotationName) -> Result<Rotation, LedgerError> {
        let mut parameters = Parameters::default();
        let key = parameters.add(rows::text(name));
        let sql = format!("SELECT {COLUMNS} FROM rotations WHERE name = {key}");
        let rows = self.database().fetch(sql, parameters).await?;
        rows.first().map_or_else(|| Err(LedgerError::NoRotation(name.clone())), rotation)
    }

    /// Counts the clusters of a rotation by group and progress.
    pub async fn rotation_counts(&self, rotation: &Rotation) -> Result<Vec<GroupCounts>, LedgerError> {
        let rows::Statement { sql, parameters } = counting(rotation);
        counted(rotation, &self.database().fetch(sql, parameters).await?)
    }

    /// Returns the mean time from the reservation of a new credential to the end of its soak, of the clusters that have succeeded.
    pub async fn rotation_pace(&self, name: &RotationName) -> Result<Option<Duration>, LedgerError> {
        let mut parameters = Parameters::default();
        let [name, progress] =
            [rows::text(name), rows::text(ClusterProgress::Succeeded)].map(|value| parameters.add(value));
        let sql = format!(
            "SELECT COUNT(*), CAST(COALESCE(SUM(settled - started), 0) AS BIGINT) FROM rotation_members \
             WHERE rotation = {name} AND standing = {progress}"
        );
        let rows = self.database().fetch(sql, parameters).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let mean = row.number(1)?.checked_div(row.number(0)?).and_then(|micros| u64::try_from(micros).ok());
        Ok(mean.map(Duration::from_micros))
    }

    /// Reads the first clusters of a rotation with this progress, by group.
    pub async fn rotation_members(
        &self,
        name: &RotationName,
        progress: ClusterProgress,
        limit: u32,
    ) -> Result<Vec<Member>, LedgerError> {
        let mut parameters = Parameters::default();
        let [name, progress] = [rows::text(name), rows::text(progress)].map(|value| parameters.add(value));
        let sql = format!(
            "SELECT {MEMBER} FROM rotation_members WHERE rotation = {name} AND standing = {progress} \
             ORDER BY member_group, cluster LIMIT {limit}"
        );
        self.database().fetch(sql, parameters).await?.iter().map(member).collect()
    }

    /// Records a request of a person about a rotation, and returns the rotation as it is from now on. The clusters on
    /// their way are judged first. A resumed rotation tolerates the clusters that have failed so far. An aborted one
    /// gives those still on their way, and those that have failed and have adopted no new one since, their old one
    /// back, where that is asked for and the old one still lives.
    ///
    /// # Errors
    ///
    /// `NoRotation` if there is none with the name, `RotationOver` if it is aborted or done.
    pub async fn ask(
        &self,
        name: &RotationName,
        asked: RotationRequest,
        statement: &Statement<'_>,
    ) -> Result<Rotation, LedgerError> {
        let mut write = self.database().begin().await?;
        let mut rotation = lock_rotation(&mut write, name).await?;
        if rotation.phase.is_final() {
            return Err(LedgerError::RotationOver { name: name.clone(), phase: rotation.phase });
        }
        if rotation.plan.from_ams && asked == (RotationRequest::Abort { put_back: true }) {
            return Err(LedgerError::NoPutBack(name.clone()));
        }
        judge_begun(&mut write, &rotation, statement.now).await?;
        rotation.phase = match asked {
            RotationRequest::Pause => RotationPhase::Paused,
            RotationRequest::Resume => RotationPhase::Running,
            RotationRequest::Abort { .. } => RotationPhase::Aborted,
        };
        rotation.reason = RotationReason::Requested;
        if asked == RotationRequest::Resume {
            let rows::Statement { sql, parameters } = counting(&rotation);
            let counts = counted(&rotation, &write.fetch(sql, parameters).await?)?;
            rotation.tolerated = counts.iter().map(|counts| counts.failed).sum();
        }
        rotation.history.push(request(asked.as_str(), statement));
        update(&mut write, &mut rotation, statement.now).await?;
        if let RotationRequest::Abort { put_back: true } = asked {
            for Member { credential, progress, .. } in not_done(&mut write, name).await? {
                let condition =
                    if progress == ClusterProgress::Failed { PutBack::UnlessAdopted } else { PutBack::Always };
                match put_back(&mut write, credential, condition, statement).await {
                    // The new one stays.
                    Err(LedgerError::TooLate(_)) => continue,
                    result => result?,
                };
                let change =
                    MemberChange { credential, progress: ClusterProgress::Skipped, cause: Some(Reason::RolledBack) };
                save_member(&mut write, name, &change, statement.now).await?;
            }
        }
        write.commit().await?;
        Ok(rotation)
    }
}

/// Reads a rotation and locks it until the end of the transaction.
pub(super) async fn lock_rotation(write: &mut Transaction, name: &RotationName) -> Result<Rotation, LedgerError> {
    let lock = if write.dialect() == Dialect::Postgres { " FOR UPDATE" } else { "" };
    let mut parameters = Parameters::default();
    let key = parameters.add(rows::text(name));
    let sql = format!("SELECT {COLUMNS} FROM rotations WHERE name = {key}{lock}");
    let rows = write.fetch(sql, parameters).await?;
    rows.first().map_or_else(|| Err(LedgerError::NoRotation(name.clone())), rotation)
}

/// Writes what has changed of a rotation.
pub(super) async fn update(
    write: &mut Transaction,
    rotation: &mut Rotation,
    now: Timestamp,
) -> Result<(), LedgerError> {
    rotation.updated = now;
    let mut parameters = Parameters::default();
    let [phase, reason, group, tolerated, history, paid_off, updated, name] = [
        rows::text(rotation.phase),
        rows::text(rotation.reason),
        Value::Number(i64::try_from(rotation.group).unwrap_or(i64::MAX)),
        Value::Number(i64::try_from(rotation.tolerated).unwrap_or(i64::MAX)),
        written(&rotation.history)?,
        micros(rotation.paid_off),
        micros(now),
        rows::text(&rotation.name),
    ]
    .map(|value| parameters.add(value));
    let sql = format!(
        "UPDATE rotations SET phase = {phase}, reason = {reason}, current_group = {group}, tolerated = {tolerated}, \
         history = {history}, paid_off = {paid_off}, updated = {updated} WHERE name = {name}"
    );
    write.execute(sql, parameters).await?;
    Ok(())
}

/// Reads the clusters of a rotation that are on their way, and those that have failed.
async fn not_done(write: &mut Transaction, name: &RotationName) -> Result<Vec<Member>, LedgerError> {
    let mut parameters = Parameters::default();
    let [name, in_progress, failed] =
        [rows::text(name), rows::text(ClusterProgress::InProgress), rows::text(ClusterProgress::Failed)]
            .map(|value| parameters.add(value));
    let sql = format!(
        "SELECT {MEMBER} FROM rotation_members WHERE rotation = {name} AND standing IN ({in_progress}, {failed}) ORDER BY credential"
    );
    write.fetch(sql, parameters).await?.iter().map(member).collect()
}

/// A statement that counts the clusters of a rotation by group and progress.
pub(super) fn counting(rotation: &Rotation) -> rows::Statement {
    let mut parameters = Parameters::default();
    let name = parameters.add(rows::text(&rotation.name));
    let sql = format!(
        "SELECT member_group, standing, COUNT(*) FROM rotation_members WHERE rotation = {name} GROUP BY member_group, standing"
    );
    rows::Statement { sql, parameters }
}

/// Reads the rows of [`counting`].
pub(super) fn counted(rotation: &Rotation, rows: &[Row]) -> Result<Vec<GroupCounts>, LedgerError> {
    let mut counts = vec![GroupCounts::default(); rotation.plan.groups.len()];
    for row in rows {
        let group = usize::try_from(row.number(0)?).ok().and_then(|group| counts.get_mut(group));
        let group = group.ok_or(damaged("rotation_members.member_group"))?;
        let progress = ClusterProgress::parse(&row.text(1)?).ok_or(damaged("rotation_members.standing"))?;
        group.add(progress, u64::try_from(row.number(2)?).unwrap_or_default());
    }
    Ok(counts)
}

fn request(request: &str, statement: &Statement<'_>) -> Request {
    let Statement { actor, reason, now } = *statement;
    Request { request: request.to_owned(), actor: actor.to_owned(), reason: reason.to_owned(), at: now }
}

fn written(history: &[Request]) -> Result<Value, LedgerError> {
    let text = serde_json::to_string(history).map_err(|_unwritable| damaged("rotations.history"))?;
    Ok(Value::Text(text))
}

fn rotation(row: &Row) -> Result<Rotation, LedgerError> {
    let number = |column| Ok::<_, LedgerError>(u64::try_from(row.number(column)?).unwrap_or_default());
    Ok(Rotation {
        name: row.text(0)?.parse().map_err(|_invalid| damaged("rotations.name"))?,
        registry: row.text(1)?.parse().map_err(|_invalid| damaged("rotations.registry"))?,
        plan: serde_json::from_str(&row.text(2)?).map_err(|_quotes| damaged("rotations.plan"))?,
        phase: RotationPhase::parse(&row.text(3)?).ok_or(damaged("rotations.phase"))?,
        reason: RotationReason::parse(&row.text(4)?).ok_or(damaged("rotations.reason"))?,
        group: usize::try_from(number(5)?).unwrap_or(usize::MAX),
        tolerated: number(6)?,
        history: serde_json::from_str(&row.text(7)?).map_err(|_quotes| damaged("rotations.history"))?,
        paid_off: time(row.number(8)?)?,
        started: time(row.number(9)?)?,
        updated: time(row.number(10)?)?,
    })
}

fn member(row: &Row) -> Result<Member, LedgerError> {
    let at = |column| row.optional_number(column)?.map(time).transpose();
    Ok(Member {
        credential: id(&row.text(0)?)?,
        cluster: row.text(1)?,
        group: usize::try_from(row.number(2)?).map_err(|_range| damaged("rotation_members.member_group"))?,
        progress: ClusterProgress::parse(&row.text(3)?).ok_or(damaged("rotation_members.standing"))?,
        cause: row.optional_text(4)?,
        started: at(5)?,
        ended: at(6)?,
    })
}
