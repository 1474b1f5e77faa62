//! One run: observe, decide, act, until what is seen is what is wanted; then tell.

use std::path::Path;

use daemon::retry::Budget;
use docker_config::Digest;
use fleet_model::job::Reason;
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::{Metadata, Replication, SecretStore, StoreError, google};
use tokio::time::Instant;
use tracing::{Instrument as _, error, info, info_span, warn};

use crate::act::{Done, Performer, Progress, elapsed};
use crate::decide::{self, Because, Desired, Observed, Plan, Seen};
use crate::ending::{Ending, Stop};
use crate::observe::Look;
use crate::report::Details;
use crate::session::Session;
use crate::settings::{Settings, StoreTask, Task};
use crate::source;

mod dry_run;

/// The name of this component in the log.
pub const COMPONENT: &str = "pullsecret-job";

/// Carries out what `settings` say and tells it to the log, until `budget` is spent.
///
/// `connect` sets the store's client up; it sends nothing yet.
pub async fn run<S: SecretStore>(
    settings: &Settings,
    budget: &Budget,
    connect: impl AsyncFnOnce(&google::Settings) -> Result<S, StoreError>,
) -> Ending {
    let span = info_span!(
        "run",
        component = COMPONENT,
        phase = "gcp-secret-manager",
        cluster_id = settings.cluster.as_str(),
        gcp_project = settings.store.project.as_str(),
        secret_name = settings.secret.as_str(),
    );
    let start = Instant::now();
    let mut details = Details {
        cluster_id: Some(settings.cluster.to_string()),
        secret_name: Some(settings.secret.to_string()),
        gcp_project: Some(settings.store.project.to_string()),
        generation: settings.generation.map(|generation| generation.to_string()),
        ..Details::default()
    };
    async {
        let result = prepare_and_run(settings, budget, connect, &mut details).await;
        details.duration_ms = elapsed(start);
        tell_end(settings, result, details)
    }
    .instrument(span)
    .await
}

async fn prepare_and_run<S: SecretStore>(
    settings: &Settings,
    budget: &Budget,
    connect: impl AsyncFnOnce(&google::Settings) -> Result<S, StoreError>,
    details: &mut Details,
) -> Result<Plan, Stop> {
    let wanted = match &settings.task {
        Task::Store(task) => Some(Wanted::read::<S>(settings, task)?),
        Task::Delete => None,
    };
    let mode = if settings.dry_run { " (DRY RUN MODE)" } else { "" };
    let goal = if wanted.is_some() { "storage" } else { "deletion" };
    info!(operation = "start", "Starting pull secret {goal} operation{mode}");
    let store = budget.spend(connect(&settings.store)).await??;
    info!(operation = "client-initialized", "Successfully initialized Secret Manager client");
    details.secret_path = Some(store.path(&settings.secret));
    details.digest = wanted.as_ref().and_then(|wanted| wanted.desired.shown_digest.clone());
    let session = Session::new(&store, &settings.secret, budget);
    let replication = match &settings.task {
        Task::Store(task) => task.replication.clone(),
        Task::Delete => Replication::Automatic { kms_key: None },
    };
    let bytes = wanted.as_ref().map(|wanted| &wanted.bytes);
    let mut performer = Performer { session: &session, wanted: bytes, replication, done: Done::default() };
    let result = converge(settings, wanted.as_ref(), &mut performer).await;
    details.versions_added = u32::try_from(performer.done.added.len()).unwrap_or(u32::MAX);
    details.versions_destroyed = performer.done.destroyed;
    details.api_calls = session.calls();
    result
}

/// The pull secret of this run, and what should be.
struct Wanted {
    bytes: SecretSlice<u8>,
    desired: Desired,
}

impl Wanted {
    fn read<S: SecretStore>(settings: &Settings, task: &StoreTask) -> Result<Self, Stop> {
        let limit = S::capabilities().max_content_bytes;
        let pull_secret = source::pull_secret(&task.source, limit).map_err(|error| invalid_pull_secret(&error))?;
        let shown_digest = match &task.digest_key_file {
            Some(path) => Some(shown_digest(pull_secret.document.digest(), path)?),
            None => None,
        };
        for warning in pull_secret.document.warnings() {
            warn!(operation = "validate-pull-secret", "{warning}");
        }
        for label in &task.changed_labels {
            warn!(
                operation = "sanitize-label",
                "Label {} is written as {:?}: the store does not take {:?}", label.key, label.written, label.given
            );
        }
        if settings.management_namespace.is_some() {
            warn!(operation = "k8s-secret", "MANAGEMENT_NAMESPACE has no effect: this version has no Kubernetes phase");
        }
        let desired = Desired {
            cluster: settings.cluster.clone(),
            labels: task.labels.clone(),
            generation: settings.generation,
            content: pull_secret.document.digest(),
            shown_digest,
            retain: task.retain,
            always_add: task.always_add,
        };
        Ok(Self { bytes: pull_secret.bytes, desired })
    }
}

fn shown_digest(digest: Digest, key_file: &Path) -> Result<String, Stop> {
    let key = source::digest_key(key_file).map_err(|error| {
        let message = format!("DIGEST_KEY_FILE: {}", with_cause(&error));
        Stop::new("validate-config", Reason::InvalidConfiguration, message)
    })?;
    Ok(digest.keyed(key.expose_secret()).to_string())
}

fn invalid_pull_secret(error: &source::SourceError) -> Stop {
    let (operation, reason) = match error {
        source::SourceError::Invalid(_) | source::SourceError::TooLarge { .. } => {
            ("validate-pull-secret", Reason::InvalidPullSecret)
        }
        _ => ("validate-config", Reason::InvalidConfiguration),
    };
    Stop::new(operation, reason, format!("Invalid pull secret format: {}", with_cause(error)))
}

fn with_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// The loop. Ends when a plan was carried out as decided, or at the first failure that the run cannot get over.
async fn converge<S: SecretStore>(
    settings: &Settings,
    wanted: Option<&Wanted>,
    performer: &mut Performer<'_, S>,
) -> Result<Plan, Stop> {
    let session = performer.session;
    let mut surprises = 0;
    let mut exists = false;
    loop {
        let start = Instant::now();
        let secret = session.find().await?;
        if secret.is_some() && !exists && wanted.is_some() {
            exists = true;
            info!(operation = "secret-exists", "Secret already exists: {}", settings.secret);
        }
        let etag = secret.as_ref().map(|metadata| metadata.etag.clone()).unwrap_or_default();
        let (plan, look) = decide_on(settings, wanted, secret, performer).await?;
        tell_plan(&plan);
        if plan.reason == Reason::NameConflict {
            return Err(conflict(settings, &plan.because));
        }
        if settings.dry_run {
            let found = look.is_none_or(|look| look.observed.secret.is_some());
            dry_run::check_and_tell(session, settings, &plan, found).await?;
            return Ok(plan);
        }
        match performer.perform(&plan, etag).await? {
            Progress::Done => {
                tell_kept(performer, &plan, look.as_ref(), elapsed(start));
                return Ok(plan);
            }
            Progress::LookAgain(why) => {
                surprises += 1;
                performer.wait_to_look_again(surprises, why).await?;
            }
        }
    }
}

async fn decide_on<S: SecretStore>(
    settings: &Settings,
    wanted: Option<&Wanted>,
    secret: Option<Metadata>,
    performer: &mut Performer<'_, S>,
) -> Result<(Plan, Option<Look>), Stop> {
    let Some(wanted) = wanted else {
        return Ok((decide::delete(&settings.cluster, settings.generation, secret.as_ref()), None));
    };
    // What is not ours is not looked into.
    let foreign = decide::store(&wanted.desired, &Observed { secret: secret.clone(), ..Observed::default() });
    if foreign.reason == Reason::NameConflict {
        return Ok((foreign, None));
    }
    let mut look = performer.session.look(secret, &performer.done.added).await?;
    if let Some(first) = performer.done.unanswered {
        let ours = Seen::Live(wanted.desired.content);
        let found = look.observed.versions.range(first..).filter(|(_, seen)| **seen == ours);
        performer.done.added.extend(found.map(|(number, _)| *number));
        look.observed.added.clone_from(&performer.done.added);
    }
    Ok((decide::store(&wanted.desired, &look.observed), Some(look)))
}

fn tell_plan(plan: &Plan) {
    let actions: Vec<String> = plan.actions.iter().map(ToString::to_string).collect();
    tracing::debug!(operation = "decide", reason = %plan.reason, "{}: {}", plan.because, actions.join(", then "));
}

/// What was found to be right already was read back by looking at it.
fn tell_kept<S: SecretStore>(performer: &Performer<'_, S>, plan: &Plan, look: Option<&Look>, duration_ms: u64) {
    let Because::Holds(number) = plan.because else { return };
    if plan.reason == Reason::SecretUnchanged {
        let version = performer.session.version_path(number);
        info!(operation = "secret-unchanged", version, "Secret is unchanged: {}", plan.because);
    }
    if let Some(bytes) = look.and_then(|look| look.sizes.get(&number)) {
        performer.session.tell_verified(number, *bytes, duration_ms);
    }
}

fn conflict(settings: &Settings, because: &Because) -> Stop {
    let (project, secret, cluster) = (&settings.store.project, &settings.secret, &settings.cluster);
    let message = format!("Failed to create/update secret: {because}; it was not touched");
    Stop {
        hint: Some(format!(
            "set SECRET_NAME to another name; or, if the secret is this cluster's after all, say so: \
             gcloud secrets update {secret} --project={project} --update-labels=managed-by=hyperfleet,cluster-id={cluster}"
        )),
        ..Stop::new("create-update-secret", Reason::NameConflict, message)
    }
}

fn tell_end(settings: &Settings, result: Result<Plan, Stop>, mut details: Details) -> Ending {
    let duration_ms = details.duration_ms;
    match result {
        Ok(plan) => {
            details.secret_version = plan.version.map(secret_store::VersionNumber::get).filter(|_| !settings.dry_run);
            let reason = if settings.dry_run { Reason::DryRunPassed } else { plan.reason };
            info!(operation = "completed", reason = %reason, duration_ms, "{}", completed(reason));
            let version = details.secret_version.map(|version| format!(" (version {version})")).unwrap_or_default();
            Ending { reason, message: format!("{}{version}: {}", reason.meaning(), plan.because), details }
        }
        Err(stop) => {
            let hint = stop.hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default();
            let message = format!("{}{hint}", stop.message);
            error!(operation = stop.operation, reason = %stop.reason, duration_ms, "{message}");
            Ending { reason: stop.reason, message, details }
        }
    }
}

fn completed(reason: Reason) -> &'static str {
    match reason {
        Reason::DryRunPassed => "DRY RUN completed successfully - authentication validated",
        Reason::SecretUnchanged => "Pull secret is up to date",
        Reason::Superseded => "A newer generation is stored; nothing to do",
        Reason::SecretDeleted => "Successfully deleted pull secret",
        Reason::SecretAbsent => "Secret does not exist; nothing to delete",
        _ => "Successfully created/updated pull secret",
    }
}
