//! Runs the Job: the secret in the store, then the Kubernetes Secret for HyperShift; each phase reconciles on its own.

use std::time::Duration;

use daemon::calls::CallLog;
use daemon::log::SPANS;
use daemon::retry::Budget;
use daemon::traces;
use fleet_model::TraceContext;
use fleet_model::job::{Calls, Reason};
use fleet_model::names::trace::{
    APPLY_SECRET, GENERATION, KUBERNETES_SECRET, NAMESPACE, REASON, RESOURCE_ID, RESOURCE_TYPE, RUN, STORED_SECRET,
    VERSION,
};
use kubernetes::{Cluster, SecretKey};
use secrecy::SecretSlice;
use secret_store::{ProjectId, SecretStore, StoreError, StoreSettings, VersionNumber};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument as _, error, info, info_span, warn};

use crate::act::elapsed;
use crate::outcome::{Details, Outcome, RunError};
use crate::session::{Caller, Session};
use crate::settings::{KUBERNETES_SECRET_PHASE, KubernetesSecretSettings, Settings, Task};

mod dry_run;
mod input;
mod kubernetes_secret;
mod mirror;
mod phase;
mod store;
mod stores;

use input::Input;
use mirror::Mirror;
use phase::{Pass, Phase};
use stores::{CallLogs, Stores, log_clients};

/// Name of this component in the log.
pub const COMPONENT: &str = "pullsecret-job";
/// The API's plural of the resources that runs are for.
const CLUSTERS: &str = "clusters";

/// Carries out `settings` and logs each step, until `budget` is spent.
///
/// `connect` creates the client of a store, which records its calls; it sends nothing yet.
pub async fn run<S: SecretStore>(
    settings: &Settings,
    budget: &Budget,
    connect: impl AsyncFn(&StoreSettings, CallLog) -> Result<S, StoreError>,
) -> Outcome {
    let work = async |details: &mut Details| match &settings.store {
        Some(store) => {
            let calls = CallLogs::default();
            let stores = Stores::connect(settings, store, budget, &calls, &connect).await;
            let result = phases(settings, budget, stores, &calls, details).await;
            details.api_calls = summary(&calls.first);
            details.k8s_api_calls = summary(&calls.kubernetes);
            if let Some(mirror) = &mut details.mirror {
                mirror.api_calls = summary(&calls.mirror);
            }
            result
        }
        None => delete_kubernetes_secret(settings, budget, details).await,
    };
    reported(settings, work).await
}

/// Works within the spans of a run, and makes its outcome of the result.
async fn reported(settings: &Settings, work: impl AsyncFnOnce(&mut Details) -> Result<Phase, RunError>) -> Outcome {
    let traced = info_span!(
        target: SPANS,
        RUN,
        { RESOURCE_TYPE } = CLUSTERS,
        { RESOURCE_ID } = settings.identity.cluster.as_str(),
        { GENERATION } = settings.identity.generation.map(i64::from),
        { STORED_SECRET } = settings.secret.as_str(),
        { REASON } = Empty,
        { VERSION } = Empty,
    );
    let traced = traces::continuing(settings.trace.as_ref(), traced);
    let span = info_span!(
        "run",
        component = COMPONENT,
        phase = settings.phase(),
        cluster_id = settings.identity.cluster.as_str(),
        gcp_project = settings.project().map(ProjectId::as_str),
        secret_name = settings.secret.as_str(),
        trace_id = settings.trace.as_ref().map(TraceContext::trace_id),
    );
    let start = Instant::now();
    let mut details = Details::of(settings);
    let outcome = async {
        let result = work(&mut details).await;
        details.duration_ms = elapsed(start);
        finish(settings, result, details)
    }
    .instrument(span)
    .instrument(traced.clone())
    .await;
    traced.record(REASON, outcome.reason.as_str());
    if let Some(version) = outcome.details.secret_version {
        traced.record(VERSION, version);
    }
    if outcome.reason.exit_code() != 0 {
        traces::fail(&traced, outcome.reason.as_str());
    }
    outcome
}

async fn phases<S: SecretStore>(
    settings: &Settings,
    budget: &Budget,
    connected: Result<Stores<S>, RunError>,
    calls: &CallLogs,
    details: &mut Details,
) -> Result<Phase, RunError> {
    let input = match (&settings.task, &connected) {
        (Task::Store(task), Ok(stores)) => Some(Input::read(settings, task, budget, stores.max_content_bytes()).await?),
        _ => None,
    };
    log_start(settings, if matches!(settings.task, Task::Store(_)) { "storage" } else { "deletion" });
    let stores = connected?;
    log_clients(settings);
    details.secret_path = Some(stores.first.path(&settings.secret));
    if let (Some(of_mirror), Some(mirror)) = (&mut details.mirror, &stores.mirror) {
        of_mirror.secret_path = Some(mirror.path(&settings.secret));
    }
    details.digest = input.as_ref().and_then(|input| input.desired.published_digest.clone());
    // All clients are created before anything is written: an invalid kubeconfig fails at once.
    let cluster = cluster(settings, budget, &calls.kubernetes).await?;
    let session = Session::new(&stores.first, &settings.secret, budget);
    let mirror = stores.mirror.as_ref().zip(settings.mirror.as_ref());
    let mirror = mirror.map(|(store, place)| Mirror { session: Session::new(store, &settings.secret, budget), place });
    let caller = Caller::new(budget);
    let target = settings.kubernetes_secret.as_ref().zip(cluster.as_ref());
    let pass = target.map(|(kubernetes_secret, cluster)| {
        let stored_as = stores.first.latest_path(&settings.secret);
        Pass { cluster, kubernetes_secret, caller: &caller, settings, stored_as }
    });
    let result = match &input {
        Some(input) => store_and_apply(&session, pass.as_ref(), mirror.as_ref(), input, details).await,
        None => remove_and_delete(&session, pass.as_ref(), mirror.as_ref(), settings).await,
    };
    let of_mirror = mirror.as_ref().map(|mirror| &mirror.session.caller);
    let callers = [&session.caller, &caller].into_iter().chain(of_mirror);
    details.retries = callers.fold(0, |retries, caller| retries.saturating_add(caller.retries()));
    result
}

/// Deletes the Kubernetes Secret of [`Settings::kubernetes_secret`].
async fn delete_kubernetes_secret(
    settings: &Settings,
    budget: &Budget,
    details: &mut Details,
) -> Result<Phase, RunError> {
    log_start(settings, "deletion");
    let calls = CallLog::default();
    let cluster = cluster(settings, budget, &calls).await?;
    let caller = Caller::new(budget);
    let target = settings.kubernetes_secret.as_ref().zip(cluster.as_ref());
    let pass = target.map(|(kubernetes_secret, cluster)| {
        let stored_as = String::new();
        Pass { cluster, kubernetes_secret, caller: &caller, settings, stored_as }
    });
    let result = match &pass {
        Some(pass) => pass.remove().instrument(pass.span()).await.map_err(RunError::in_kubernetes_secret_phase),
        // The settings refuse this.
        None => Err(RunError::new("start", Reason::InvalidConfiguration, "MANAGEMENT_NAMESPACE: missing")),
    };
    details.k8s_api_calls = summary(&calls);
    details.retries = caller.retries();
    result
}

fn log_start(settings: &Settings, goal: &str) {
    let mode = if settings.dry_run { " (DRY RUN MODE)" } else { "" };
    info!(operation = "start", "Starting pull secret {goal} operation{mode}");
}

/// Connects to the cluster of the Kubernetes Secret, if there is to be one. A kubeconfig that is invalid fails at once.
async fn cluster(settings: &Settings, budget: &Budget, calls: &CallLog) -> Result<Option<Cluster>, RunError> {
    let Some(KubernetesSecretSettings { cluster, .. }) = &settings.kubernetes_secret else { return Ok(None) };
    let settings = kubernetes::Settings { calls: Some(calls.clone()), ..cluster.clone() };
    Ok(Some(budget.run(Cluster::connect(&settings)).await??))
}

fn summary(calls: &CallLog) -> Vec<Calls> {
    let ms = |took: Duration| u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
    Calls::group(calls.calls().into_iter().map(|call| (call.operation.into_owned(), call.status_code, ms(call.took))))
}

async fn store_and_apply<S: SecretStore>(
    session: &Session<'_, S>,
    pass: Option<&Pass<'_>>,
    mirror: Option<&Mirror<'_, S>>,
    input: &Input<'_>,
    details: &mut Details,
) -> Result<Phase, RunError> {
    let replication = input.task.replication.clone();
    let store::Stored { phase, content, .. } = store::store(session, input, replication, &mut details.written).await?;
    if pass.is_none() {
        info!(operation = "skip", "Skipping the Kubernetes Secret: MANAGEMENT_NAMESPACE is not set");
    }
    // A superseded run has nothing to apply, and nothing to mirror.
    let (Some(content), Some(version)) = (content, phase.version) else { return Ok(phase) };
    let (phase, holders) = match pass {
        Some(pass) => {
            let applied = apply(pass, input, version, content).await?;
            (phase.followed_by(&applied), "the first store and the Kubernetes Secret hold")
        }
        None => (phase, "the first store holds"),
    };
    let (Some(mirror), Some(of_mirror)) = (mirror, &mut details.mirror) else { return Ok(phase) };
    // The adapter reports it even if the mirror fails.
    details.secret_version = Some(version.get()).filter(|_| !input.settings.dry_run);
    Ok(phase.mirrored(&mirror.store(input, holders, of_mirror).await?))
}

/// Applies the Kubernetes Secret with content that was read back from that version.
async fn apply(
    pass: &Pass<'_>,
    input: &Input<'_>,
    version: VersionNumber,
    content: SecretSlice<u8>,
) -> Result<Phase, RunError> {
    let SecretKey { namespace, name } = &pass.kubernetes_secret.key;
    let traced = info_span!(target: SPANS, APPLY_SECRET, { NAMESPACE } = namespace, { KUBERNETES_SECRET } = name);
    let applied = pass.apply(input, version, content).instrument(pass.span()).instrument(traced).await;
    applied.map_err(RunError::in_kubernetes_secret_phase)
}

/// Deletes the Kubernetes Secret before the stored one, so that it never refers to a deleted secret, and the mirror's in between.
async fn remove_and_delete<S: SecretStore>(
    session: &Session<'_, S>,
    pass: Option<&Pass<'_>>,
    mirror: Option<&Mirror<'_, S>>,
    settings: &Settings,
) -> Result<Phase, RunError> {
    let mut before = None;
    if let Some(pass) = pass {
        let removed = pass.remove().instrument(pass.span()).await.map_err(RunError::in_kubernetes_secret_phase)?;
        if removed.reason == Reason::Superseded {
            return Ok(removed);
        }
        before = Some(removed);
    }
    if let Some(mirror) = mirror {
        let deleted = mirror.delete(settings).await?;
        if deleted.reason == Reason::Superseded {
            return Ok(deleted);
        }
        before = Some(deleted.after(before));
    }
    Ok(store::delete(session, settings).await?.after(before))
}

fn finish(settings: &Settings, result: Result<Phase, RunError>, mut details: Details) -> Outcome {
    let duration_ms = details.duration_ms;
    match result {
        Ok(phase) => {
            details.secret_version = phase.version.map(VersionNumber::get).filter(|_| !settings.dry_run);
            let reason = if settings.dry_run { Reason::DryRunPassed } else { phase.reason };
            info!(operation = "completed", reason = %reason, duration_ms, "{}", completed(reason));
            let version = details.secret_version.map(|version| format!(" Version {version}.")).unwrap_or_default();
            Outcome {
                reason,
                message: format!("{}{version} Observed before: {}", reason.meaning(), phase.cause),
                details,
            }
        }
        Err(failed) => {
            let hint = failed.hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default();
            let message = format!("{}{hint}", failed.message);
            let RunError { operation, phase, reason, .. } = failed;
            let phase = phase.unwrap_or_else(|| settings.phase());
            // The last line is about the same Secret as the lines of its phase.
            let of_phase = settings.kubernetes_secret.as_ref().filter(|_| phase == KUBERNETES_SECRET_PHASE);
            let _entered = of_phase.map(|secret| kubernetes_secret::span(&secret.key).entered());
            if reason == Reason::Interrupted {
                warn!(operation, phase, reason = %reason, duration_ms, "{message}");
            } else {
                error!(operation, phase, reason = %reason, duration_ms, "{message}");
            }
            Outcome { reason, message, details }
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
        Reason::UnmanagedSecretKept => "The secret of this name is not this cluster's and was left alone",
        _ => "Successfully created/updated pull secret",
    }
}

#[cfg(test)]
mod tests;
