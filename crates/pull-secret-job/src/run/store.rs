//! The first phase: observe, decide, act, until the store holds the pull secret, or none.

use fleet_model::job::Reason;
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::{Metadata, Replication, SecretStore, VersionNumber};
use tokio::time::Instant;
use tracing::info;

use crate::act::{Done, Performer, Progress, elapsed};
use crate::decide::{self, Because, Plan, Seen};
use crate::ending::Stop;
use crate::observe::Look;
use crate::report::Details;
use crate::session::Session;
use crate::settings::{Settings, Task};

use super::Phase;
use super::dry_run;
use super::wanted::Wanted;

/// How the phase has ended well, and the content as it was read back.
pub(super) struct Stored {
    pub(super) phase: Phase,
    pub(super) content: Option<SecretSlice<u8>>,
}

/// Makes the store hold the pull secret.
pub(super) async fn store<S: SecretStore>(
    session: &Session<'_, S>,
    wanted: &Wanted<'_>,
    details: &mut Details,
) -> Result<Stored, Stop> {
    let replication = wanted.task.replication.clone();
    let mut performer = Performer { session, wanted: Some(&wanted.bytes), replication, done: Done::default() };
    let result = converge(wanted, &mut performer).await;
    details.versions_added = u32::try_from(performer.done.added.len()).unwrap_or(u32::MAX);
    details.versions_destroyed = performer.done.destroyed;
    result
}

/// Makes the store forget the secret.
pub(super) async fn delete<S: SecretStore>(session: &Session<'_, S>, settings: &Settings) -> Result<Phase, Stop> {
    let replication = Replication::Automatic { kms_key: None };
    let mut performer = Performer { session, wanted: None, replication, done: Done::default() };
    let mut surprises = 0;
    loop {
        let secret = session.find().await?;
        if secret.is_none() && session.read_exists(VersionNumber::FIRST).await? {
            // Its metadata does not show yet, but versions read by number are always as they are.
            surprises += 1;
            session.caller.pause_before_looking_again(surprises, "the secret exists, but does not show yet").await?;
            continue;
        }
        let plan = decide::delete(&settings.cluster, settings.generation, secret.as_ref());
        refuse_conflict(settings, &plan)?;
        if settings.dry_run {
            dry_run::check_and_tell(session, settings, &plan, secret.is_some()).await?;
            return Ok(Phase::of(&plan));
        }
        match performer.perform(&plan, secret.map(|secret| secret.etag).unwrap_or_default()).await? {
            Progress::Done => return Ok(Phase::of(&plan)),
            Progress::LookAgain(why) => {
                surprises += 1;
                session.caller.pause_before_looking_again(surprises, why).await?;
            }
        }
    }
}

/// The loop. Ends when a plan was carried out as decided, or at the first failure that the run cannot get over.
async fn converge<S: SecretStore>(wanted: &Wanted<'_>, performer: &mut Performer<'_, S>) -> Result<Stored, Stop> {
    let (session, settings) = (performer.session, wanted.settings);
    let mut surprises = 0;
    let mut seen = false;
    loop {
        let start = Instant::now();
        let secret = session.find().await?;
        if secret.is_some() && !std::mem::replace(&mut seen, true) {
            info!(operation = "secret-exists", "Secret already exists: {}", settings.secret);
        } else if secret.is_none() && (seen || !performer.done.added.is_empty()) {
            return Err(deleted_meanwhile());
        }
        let etag = secret.as_ref().map(|metadata| metadata.etag.clone()).unwrap_or_default();
        let (plan, mut look) = decide_on(wanted, secret, performer).await?;
        refuse_conflict(settings, &plan)?;
        if settings.dry_run {
            dry_run::check_and_tell(session, settings, &plan, look.observed.secret.is_some()).await?;
            return Ok(Stored { phase: Phase::of(&plan), content: Some(wanted.bytes.clone()) });
        }
        match performer.perform(&plan, etag).await? {
            Progress::Done => {
                let content = match plan.because {
                    Because::Holds(number) => look.contents.remove(&number),
                    _ => performer.done.read_back.take(),
                };
                tell_kept(session, &plan, content.as_ref(), elapsed(start));
                let content = content.filter(|_| plan.version.is_some());
                return Ok(Stored { phase: Phase::of(&plan), content });
            }
            Progress::LookAgain(why) => {
                surprises += 1;
                session.caller.pause_before_looking_again(surprises, why).await?;
            }
        }
    }
}

async fn decide_on<S: SecretStore>(
    wanted: &Wanted<'_>,
    secret: Option<Metadata>,
    performer: &mut Performer<'_, S>,
) -> Result<(Plan, Look), Stop> {
    // What is not ours is not looked into.
    if let Some(refusal) = secret.as_ref().and_then(|secret| decide::refuse_foreign(&wanted.desired.cluster, secret)) {
        return Ok((refusal, Look::of_nothing()));
    }
    let mut look = performer.session.look(secret, &performer.done.added).await?;
    if let Some(first) = performer.done.unanswered {
        let ours = Seen::Live(wanted.desired.content);
        let found = look.observed.versions.range(first..).filter(|(_, seen)| **seen == ours);
        performer.done.added.extend(found.map(|(number, _)| *number));
        look.observed.added.clone_from(&performer.done.added);
    }
    Ok((decide::store(&wanted.desired, &look.observed), look))
}

/// Creating it again could bring back what a deletion has just removed; another run may decide that.
fn deleted_meanwhile() -> Stop {
    let message = "Failed to create/update secret: it was deleted while this run worked on it";
    Stop::new("create-update-secret", Reason::StoreUnavailable, message)
}

/// Tells the plan to whoever debugs; fails where the secret is not ours.
fn refuse_conflict(settings: &Settings, plan: &Plan) -> Result<(), Stop> {
    let actions: Vec<String> = plan.actions.iter().map(ToString::to_string).collect();
    tracing::debug!(operation = "decide", reason = %plan.reason, "{}: {}", plan.because, actions.join(", then "));
    if plan.reason != Reason::NameConflict {
        return Ok(());
    }
    let (project, secret, cluster) = (&settings.store.project, &settings.secret, &settings.cluster);
    let goal = if matches!(settings.task, Task::Delete) { "delete" } else { "create/update" };
    let message = format!("Failed to {goal} secret: {}; it was not touched", plan.because);
    let location =
        settings.store.location.as_ref().map(|location| format!(" --location={location}")).unwrap_or_default();
    let hint = format!(
        "set SECRET_NAME to another name; or, if the secret is this cluster's after all, say so: \
         gcloud secrets update {secret} --project={project}{location} --update-labels=managed-by=hyperfleet,cluster-id={cluster}"
    );
    Err(Stop { hint: Some(hint), ..Stop::new("create-update-secret", Reason::NameConflict, message) })
}

/// What was found to be right already was read back by looking at it.
fn tell_kept<S: SecretStore>(
    session: &Session<'_, S>,
    plan: &Plan,
    content: Option<&SecretSlice<u8>>,
    duration_ms: u64,
) {
    let Because::Holds(number) = plan.because else { return };
    if plan.reason == Reason::SecretUnchanged {
        let version = session.version_path(number);
        info!(operation = "secret-unchanged", version, "Secret is unchanged: {}", plan.because);
    }
    if let Some(content) = content {
        session.tell_verified(number, content.expose_secret().len(), duration_ms);
    }
}

impl Phase {
    fn of(plan: &Plan) -> Self {
        Self { reason: plan.reason, because: plan.because.to_string(), version: plan.version }
    }
}
