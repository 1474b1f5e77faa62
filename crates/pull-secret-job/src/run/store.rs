//! Runs the first phase: observe, decide, act, until the store holds the pull secret, or the secret is deleted.

use fleet_model::Generation;
use fleet_model::job::Reason;
use fleet_model::names::trace::OBSERVE;
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::{Metadata, Records, Replication, SecretStore, VersionNumber};
use tokio::time::Instant;
use tracing::{Instrument as _, info};

use crate::act::{Done, Performer, Progress, elapsed, step};
use crate::decide::{self, Cause, Plan, VersionState};
use crate::observe::Observation;
use crate::outcome::{DIFFERENT_INCARNATION_HINT, RunError, Written};
use crate::record::Record;
use crate::session::Session;
use crate::settings::Settings;

use super::dry_run;
use super::input::Input;
use super::phase::Phase;

/// Success of the phase.
pub(super) struct Stored {
    pub(super) phase: Phase,
    /// The content as it was read back.
    pub(super) content: Option<SecretSlice<u8>>,
    /// The newer generation that holds the secret, if there is one.
    pub(super) newer: Option<Generation>,
}

/// Stores the pull secret; a secret that is created gets this replication.
pub(super) async fn store<S: SecretStore>(
    session: &Session<'_, S>,
    input: &Input<'_>,
    replication: Replication,
    written: &mut Written,
) -> Result<Stored, RunError> {
    let mut performer = Performer { session, content: Some(&input.bytes), replication, done: Done::default() };
    let result = converge(input, &mut performer).await;
    written.versions_added = u32::try_from(performer.done.added.len()).unwrap_or(u32::MAX);
    written.versions_destroyed = performer.done.destroyed;
    result
}

/// Deletes the secret.
pub(super) async fn delete<S: SecretStore>(session: &Session<'_, S>, settings: &Settings) -> Result<Phase, RunError> {
    let replication = Replication::Automatic { kms_key: None };
    let mut performer = Performer { session, content: None, replication, done: Done::default() };
    let mut retries = 0;
    loop {
        let observed = session.observe_for_deletion(&settings.identity.cluster).instrument(step!(OBSERVE)).await?;
        if observed.secret.is_none() && session.version_exists(VersionNumber::FIRST).await? {
            // Its metadata lags; versions read by number never do.
            retries += 1;
            session.caller.pause_before_observing(retries, "the secret exists, but its metadata lags").await?;
            continue;
        }
        let plan = decide::delete(&settings.identity, &observed);
        if settings.dry_run {
            dry_run::report_and_check(session, settings, &plan, observed.secret.is_some()).await?;
            return Ok(Phase::of(&plan));
        }
        match performer.perform(&plan, observed.secret.map(|secret| secret.etag).unwrap_or_default()).await? {
            Progress::Done => return Ok(Phase::of(&plan)),
            Progress::ObserveAgain(why) => {
                retries += 1;
                session.caller.pause_before_observing(retries, why).await?;
            }
        }
    }
}

/// The loop. Ends when a plan was carried out as decided, or at the first permanent error.
async fn converge<S: SecretStore>(input: &Input<'_>, performer: &mut Performer<'_, S>) -> Result<Stored, RunError> {
    let (session, settings) = (performer.session, input.settings);
    let mut retries = 0;
    let mut exists = false;
    loop {
        let start = Instant::now();
        let secret = session.find().instrument(step!(OBSERVE)).await?;
        if secret.is_some() && !std::mem::replace(&mut exists, true) {
            info!(operation = "secret-exists", "Secret already exists: {}", settings.secret);
        } else if secret.is_none() && (exists || !performer.done.added.is_empty()) {
            return Err(deleted_concurrently());
        }
        let etag = secret.as_ref().map(|metadata| metadata.etag.clone()).unwrap_or_default();
        let (plan, mut observation) = decide_on(input, secret, performer).await?;
        refuse_conflict(&plan)?;
        if settings.dry_run {
            dry_run::report_and_check(session, settings, &plan, observation.observed.secret.is_some()).await?;
            return Ok(Stored::of(&plan, Some(input.bytes.clone())));
        }
        match performer.perform(&plan, etag).await? {
            Progress::Done => {
                let content = match plan.cause {
                    Cause::Holds(number) => observation.contents.remove(&number),
                    _ => performer.done.read_back.take(),
                };
                log_unchanged(session, &plan, content.as_ref(), elapsed(start));
                return Ok(Stored::of(&plan, content));
            }
            Progress::ObserveAgain(why) => {
                retries += 1;
                session.caller.pause_before_observing(retries, why).await?;
            }
        }
    }
}

async fn decide_on<S: SecretStore>(
    input: &Input<'_>,
    secret: Option<Metadata>,
    performer: &mut Performer<'_, S>,
) -> Result<(Plan, Observation), RunError> {
    // Versions of a secret that is not this cluster's are not read.
    let refusal = secret.as_ref().and_then(|secret| {
        let record = match performer.session.store.capabilities().records {
            Records::UnderEtag => Record::read(&secret.annotations),
            Records::WithVersion => Record::default(),
        };
        decide::refuse(&input.desired, secret, &record)
    });
    if let Some(refusal) = refusal {
        return Ok((refusal, Observation::empty()));
    }
    let mut observation = performer.session.observe(secret, &performer.done.added).instrument(step!(OBSERVE)).await?;
    if let Some(first) = performer.done.unanswered {
        let desired = VersionState::Live(input.desired.content);
        let found = observation.observed.versions.range(first..).filter(|(_, state)| **state == desired);
        performer.done.added.extend(found.map(|(number, _)| *number));
        observation.observed.added.clone_from(&performer.done.added);
    }
    Ok((decide::store(&input.desired, &observation.observed), observation))
}

/// Creating it again could bring back what a deletion has just removed; another run may decide that.
fn deleted_concurrently() -> RunError {
    let message = "Failed to create/update secret: it was deleted while this run worked on it";
    RunError::new("create-update-secret", Reason::StoreUnavailable, message)
}

/// Logs the plan at debug level; fails if the secret is not this cluster's.
fn refuse_conflict(plan: &Plan) -> Result<(), RunError> {
    let actions: Vec<String> = plan.actions.iter().map(ToString::to_string).collect();
    tracing::debug!(operation = "decide", reason = %plan.reason, "{}: {}", plan.cause, actions.join(", then "));
    let hint = match plan.reason {
        Reason::NameConflict => "set SECRET_NAME to another name; this one stays its owner's",
        Reason::DifferentIncarnation => DIFFERENT_INCARNATION_HINT,
        _ => return Ok(()),
    };
    let message = format!("Failed to create/update secret: {}; it was not touched", plan.cause);
    Err(RunError { hint: Some(hint.to_owned()), ..RunError::new("create-update-secret", plan.reason, message) })
}

/// Logs an unchanged secret; observing it has read it back.
fn log_unchanged<S: SecretStore>(
    session: &Session<'_, S>,
    plan: &Plan,
    content: Option<&SecretSlice<u8>>,
    duration_ms: u64,
) {
    let Cause::Holds(number) = plan.cause else { return };
    if plan.reason == Reason::SecretUnchanged {
        let version = session.version_path(number);
        info!(operation = "secret-unchanged", version, "Secret is unchanged: {}", plan.cause);
    }
    if let Some(content) = content {
        session.log_verified(number, content.expose_secret().len(), duration_ms);
    }
}

impl Stored {
    fn of(plan: &Plan, content: Option<SecretSlice<u8>>) -> Self {
        let newer = if let Cause::NewerGeneration(newer) = plan.cause { Some(newer) } else { None };
        Self { phase: Phase::of(plan), content: content.filter(|_| plan.version.is_some()), newer }
    }
}

impl Phase {
    fn of(plan: &Plan) -> Self {
        Self { reason: plan.reason, cause: plan.cause.to_string(), version: plan.version }
    }
}
