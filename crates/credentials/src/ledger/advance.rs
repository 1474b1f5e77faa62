//! One step of a rotation, as one transaction: any number of replicas advance it.

use database::{Parameters, Row, Transaction, Value};

use super::ams::release;
use super::handle::{Ledger, LedgerError};
use super::members::{MemberChange, judge_begun, save_member};
use super::model::{Advance, Advanced, Fresh, Reservation, Slot};
use super::rotations::{counted, counting, lock_rotation, update};
use super::rows::{self, COLUMNS};
use super::write::insert;
use crate::credential::Credential;
use crate::decide::rotation::pay;
use crate::decide::{RotationFacts, RotationStep, move_obstacle, obstacle, rotation_step};
use crate::rotation::{ClusterProgress, Rotation, RotationName, RotationPhase, RotationReason};

/// Maximum number of clusters that one transaction begins.
const MAX_BATCH: u64 = 100;

/// The clusters that one step begins or skips.
#[derive(Default)]
struct Batch {
    /// Those that were begun, or skipped.
    handled: u64,
    /// Those that were begun.
    rotated: u64,
}

/// A cluster that is begun next.
struct Next {
    credential: Credential,
    has_successor: bool,
}

// === impl Batch ===

impl Batch {
    fn add(&mut self, progress: ClusterProgress) {
        self.handled += 1;
        self.rotated += u64::from(progress == ClusterProgress::InProgress);
    }
}

// === impl Ledger ===

impl Ledger {
    /// Advances the rotation of a registry that is not over, if there is one: judges the clusters in progress, and
    /// begins with further ones while it runs. Returns what has changed.
    pub async fn advance_rotation(
        &self,
        advance: &Advance<'_>,
        fresh: &mut (dyn FnMut() -> Option<Fresh> + Send),
    ) -> Result<Advanced, LedgerError> {
        let Some(name) = self.open_rotation(advance).await? else { return Ok(Advanced::default()) };
        let mut write = self.database().begin().await?;
        let mut rotation = lock_rotation(&mut write, &name).await?;
        if rotation.phase.is_final() {
            return Ok(Advanced::default());
        }
        let mut advanced =
            Advanced { ended: judge_begun(&mut write, &rotation, advance.now).await?, ..Advanced::default() };
        if rotation.phase != RotationPhase::Running {
            write.commit().await?;
            return Ok(advanced);
        }
        let rows::Statement { sql, parameters } = counting(&rotation);
        let counts = counted(&rotation, &write.fetch(sql, parameters).await?)?;
        let step = rotation_step(&RotationFacts {
            plan: &rotation.plan,
            group: rotation.group,
            counts: &counts,
            tolerated: rotation.tolerated,
            paid_off: rotation.paid_off,
            now: advance.now,
        });
        let before = (rotation.phase, rotation.reason, rotation.group, rotation.paid_off);
        match step {
            RotationStep::Begin(number) => {
                let Batch { handled, rotated } =
                    begin(&mut write, &rotation, number.min(MAX_BATCH), advance, fresh).await?;
                advanced.begun = handled;
                rotation.reason = RotationReason::Rotating;
                if rotation.plan.max_calls_per_minute.is_some() {
                    rotation.paid_off = pay(&rotation.plan, rotation.paid_off, rotated, advance.now);
                }
            }
            RotationStep::NextGroup => rotation.group += 1,
            RotationStep::Wait(reason) => rotation.reason = reason,
            RotationStep::Stop(reason) => (rotation.phase, rotation.reason) = (RotationPhase::Stopped, reason),
            RotationStep::Finish => {
                (rotation.phase, rotation.reason) = (RotationPhase::Done, RotationReason::Finished);
            }
        }
        advanced.moved = before != (rotation.phase, rotation.reason, rotation.group, rotation.paid_off);
        if advanced.moved {
            update(&mut write, &mut rotation, advance.now).await?;
        }
        write.commit().await?;
        Ok(advanced)
    }

    async fn open_rotation(&self, advance: &Advance<'_>) -> Result<Option<RotationName>, LedgerError> {
        let mut parameters = Parameters::default();
        let registry = parameters.add(rows::text(advance.registry));
        // The phases are no parameters, so that the index of these rows alone serves.
        let [running, paused, stopped] = [RotationPhase::Running, RotationPhase::Paused, RotationPhase::Stopped];
        let sql = format!(
            "SELECT name FROM rotations WHERE registry = {registry} AND phase IN ('{running}', '{paused}', '{stopped}')"
        );
        let rows = self.database().fetch(sql, parameters).await?;
        let name = rows.first().map(|row| row.text(0)).transpose()?;
        Ok(name.map(|name| name.parse().map_err(|_invalid| rows::damaged("rotations.name"))).transpose()?)
    }
}

/// Reserves new credentials for the next clusters of the group.
async fn begin(
    write: &mut Transaction,
    rotation: &Rotation,
    number: u64,
    advance: &Advance<'_>,
    fresh: &mut (dyn FnMut() -> Option<Fresh> + Send),
) -> Result<Batch, LedgerError> {
    let mut batch = Batch::default();
    let actor = format!("rotation {}", rotation.name);
    for Next { credential, has_successor } in next(write, rotation, number).await? {
        let is_move = rotation.plan.from_ams;
        let cause = if is_move { move_obstacle(&credential) } else { obstacle(&credential, has_successor) };
        if cause.is_none() && is_move {
            let id = credential.id;
            release(write, credential, &actor, advance.now).await?;
            let change = MemberChange { credential: id, progress: ClusterProgress::InProgress, cause };
            save_member(write, &rotation.name, &change, advance.now).await?;
            batch.add(ClusterProgress::InProgress);
            continue;
        }
        let (Credential { id, registry, cluster, .. }, progress) = match cause {
            Some(_) => (credential, ClusterProgress::Skipped),
            None => (credential, ClusterProgress::InProgress),
        };
        if let (ClusterProgress::InProgress, Some(cluster)) = (progress, cluster) {
            let Some(fresh) = fresh() else { break };
            let slot = Slot { registry: registry.clone(), cluster, replaces: Some(id) };
            let reservation = Reservation { fresh, registry, slot: Some(slot) };
            insert(write, &reservation, &actor, advance.now).await?;
        }
        let change = MemberChange { credential: id, progress, cause };
        save_member(write, &rotation.name, &change, advance.now).await?;
        batch.add(progress);
    }
    Ok(batch)
}

/// Reads the next waiting clusters of the current group.
async fn next(write: &mut Transaction, rotation: &Rotation, number: u64) -> Result<Vec<Next>, LedgerError> {
    let mut parameters = Parameters::default();
    let [name, progress, group, number] = [
        rows::text(&rotation.name),
        rows::text(ClusterProgress::Waiting),
        Value::Number(i64::try_from(rotation.group).unwrap_or(i64::MAX)),
        Value::Number(i64::try_from(number).unwrap_or(i64::MAX)),
    ]
    .map(|value| parameters.add(value));
    let sql = format!(
        "SELECT {COLUMNS}, CAST(CASE WHEN EXISTS (SELECT 1 FROM credentials newer WHERE newer.replaces = credentials.id AND \
         newer.slot IS NOT NULL) THEN 1 ELSE 0 END AS BIGINT) FROM rotation_members JOIN credentials \
         ON credentials.id = rotation_members.credential WHERE rotation = {name} AND member_group = {group} \
         AND standing = {progress} ORDER BY cluster, credential LIMIT {number}"
    );
    let rows = write.fetch(sql, parameters).await?;
    let next =
        |row: &Row| Ok(Next { credential: rows::credential(row)?.credential, has_successor: row.number(11)? == 1 });
    rows.iter().map(next).collect()
}
