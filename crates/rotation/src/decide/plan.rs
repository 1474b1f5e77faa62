//! Decides which clusters are rotated, and in which wave.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::digest::ShortDigest;
use crate::fleet::{Content, Seen};
use crate::plan::{Options, Plan, Planned, SkipReason, Skipped};

/// Seconds that a plan allows each wave after its last write, until its last Job is done.
const SETTLING_SECONDS: u64 = 60;

/// A cluster that was selected, with the digest of its new pull secret, or the cause for which there is none.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The cluster.
    pub seen: Seen,
    /// The digest of its new pull secret.
    pub new: Result<ShortDigest, Skipped>,
}

/// The expected cost of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Estimate {
    /// Writes to the secret store.
    pub store_writes: u64,
    /// All calls of the secret store, reads included.
    pub store_calls: u64,
    /// Writes to the secret store in a minute, if all clusters are in one project.
    pub store_writes_per_minute: u64,
    /// Seconds until the end.
    pub seconds: u64,
}

/// Plans a rotation of the candidates, ordered by their ids; `skipped` are texts that select no cluster.
pub fn plan(
    selection: String,
    candidates: Vec<Candidate>,
    mut skipped: Vec<Skipped>,
    options: Options,
    now: Timestamp,
) -> Plan {
    // A cluster that was created by a server whose clock is ahead is not one that was created later.
    let planned_at = candidates.iter().filter_map(|candidate| candidate.seen.created).fold(now, Timestamp::max);
    let mut clusters = BTreeMap::new();
    let mut projects = BTreeMap::new();
    for Candidate { seen, new } in candidates {
        match judge(&seen, new) {
            Ok(planned) => {
                let project = seen.project.unwrap_or_else(|| "unknown".to_owned());
                if clusters.insert(planned.id.clone(), planned).is_none() {
                    *projects.entry(project).or_insert(0) += 1;
                }
            }
            Err(cause) => skipped.push(cause),
        }
    }
    let mut clusters = clusters.into_values();
    let mut waves = Vec::new();
    let mut size = options.first_wave.max(1);
    loop {
        let wave: Vec<Planned> = clusters.by_ref().take(size).collect();
        if wave.is_empty() {
            break;
        }
        waves.push(wave);
        size = options.wave_size.max(1);
    }
    skipped.sort_by(|one, other| (one.reason, &one.cluster).cmp(&(other.reason, &other.cluster)));
    skipped.dedup();
    Plan { planned: planned_at, selection, options, waves, skipped, projects }
}

/// Returns the planned cluster, or the cause for which it is skipped.
fn judge(seen: &Seen, new: Result<ShortDigest, Skipped>) -> Result<Planned, Skipped> {
    let skip = |reason, message: String| Err(Skipped { cluster: seen.id.clone(), reason, message });
    if seen.is_deleting {
        return skip(SkipReason::Deleting, "it is being deleted".to_owned());
    }
    let digest = match &seen.content {
        Content::Referenced(secret) => {
            let message = format!(
                "its pull secret is in Secret {secret} of the management cluster: change that Secret, and the adapter stores \
                 its content without a new generation"
            );
            return skip(SkipReason::Referenced, message);
        }
        Content::None => {
            return skip(
                SkipReason::NoPullSecret,
                "it has no pull secret to replace: set spec.pullSecret first".to_owned(),
            );
        }
        Content::Hidden => {
            let message = "the API shows no digests to this caller: have reads_pull_secrets granted";
            return skip(SkipReason::DigestHidden, message.to_owned());
        }
        Content::Shown(digest) => digest,
    };
    let new = new?;
    if new.is_of(digest) {
        return skip(SkipReason::SameContent, "it has this content already".to_owned());
    }
    if !seen.is_available() {
        let id = &seen.id;
        let message = format!("its present pull secret is not available: see `pull-secret explain cluster {id}`");
        return skip(SkipReason::NotAvailable, message);
    }
    Ok(Planned { id: seen.id.clone(), generation: seen.generation, digest: new })
}

/// Estimates the cost of a plan: a rotation of one cluster needs up to nine calls of the secret store.
pub fn estimate(plan: &Plan) -> Estimate {
    const CALLS_PER_RUN: u64 = 9;
    let writes_per_run = u64::from(diagnosis::retry::WRITES_PER_RUN);
    let clusters = u64::try_from(plan.clusters()).unwrap_or(u64::MAX);
    let waves = u64::try_from(plan.waves.len()).unwrap_or(u64::MAX);
    let per_minute = u64::from(plan.options.per_minute.max(1));
    Estimate {
        store_writes: clusters.saturating_mul(writes_per_run),
        store_calls: clusters.saturating_mul(CALLS_PER_RUN),
        store_writes_per_minute: per_minute.min(clusters).saturating_mul(writes_per_run),
        seconds: clusters
            .saturating_mul(60)
            .div_ceil(per_minute)
            .saturating_add(waves.saturating_mul(SETTLING_SECONDS)),
    }
}
