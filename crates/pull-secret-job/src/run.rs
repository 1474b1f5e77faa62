//! One run: stores the secret, then applies the Kubernetes Secret that HyperShift reads. Each phase compares and corrects by itself.

use daemon::retry::Budget;
use fleet_model::TraceContext;
use fleet_model::job::Reason;
use kubernetes::Cluster;
use secret_store::{SecretStore, StoreError, VersionNumber, google};
use tokio::time::Instant;
use tracing::{Instrument as _, error, info, info_span, warn};

use crate::act::elapsed;
use crate::ending::{Ending, STORE_PHASE, Stop};
use crate::report::Details;
use crate::session::{Caller, Session};
use crate::settings::{Settings, Task};

mod dry_run;
mod kubernetes_secret;
mod store;
mod wanted;

use kubernetes_secret::Pass;
use wanted::Wanted;

/// The name of this component in the log.
pub const COMPONENT: &str = "pullsecret-job";

/// How a phase has ended well.
struct Phase {
    reason: Reason,
    because: String,
    version: Option<VersionNumber>,
}

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
        phase = STORE_PHASE,
        cluster_id = settings.cluster.as_str(),
        gcp_project = settings.store.project.as_str(),
        secret_name = settings.secret.as_str(),
        trace_id = settings.trace.as_ref().map(TraceContext::trace_id),
    );
    let start = Instant::now();
    let mut details = Details::of(settings);
    async {
        let result = phases(settings, budget, connect, &mut details).await;
        details.duration_ms = elapsed(start);
        tell_end(settings, result, details)
    }
    .instrument(span)
    .await
}

async fn phases<S: SecretStore>(
    settings: &Settings,
    budget: &Budget,
    connect: impl AsyncFnOnce(&google::Settings) -> Result<S, StoreError>,
    details: &mut Details,
) -> Result<Phase, Stop> {
    let wanted = match &settings.task {
        Task::Store(task) => Some(Wanted::read::<S>(settings, task, budget).await?),
        Task::Delete => None,
    };
    let mode = if settings.dry_run { " (DRY RUN MODE)" } else { "" };
    let goal = if wanted.is_some() { "storage" } else { "deletion" };
    info!(operation = "start", "Starting pull secret {goal} operation{mode}");
    let store = budget.run(connect(&settings.store)).await??;
    info!(operation = "client-initialized", "Successfully initialized Secret Manager client");
    details.secret_path = Some(store.path(&settings.secret));
    details.digest = wanted.as_ref().and_then(|wanted| wanted.desired.shown_digest.clone());
    // Both clients are set up before anything is written: what is wrong with a kubeconfig shows at once.
    let cluster = match &settings.kubernetes_secret {
        Some(kubernetes_secret) => Some(budget.run(Cluster::connect(&kubernetes_secret.cluster)).await??),
        None => None,
    };
    let session = Session::new(&store, &settings.secret, budget);
    let caller = Caller::new(budget);
    let target = settings.kubernetes_secret.as_ref().zip(cluster.as_ref());
    let pass =
        target.map(|(kubernetes_secret, cluster)| Pass { cluster, kubernetes_secret, caller: &caller, settings });
    let result = match &wanted {
        Some(wanted) => store_and_apply(&session, pass.as_ref(), wanted, details).await,
        None => remove_and_delete(&session, pass.as_ref(), settings).await,
    };
    details.api_calls = session.caller.calls();
    details.k8s_api_calls = caller.calls();
    result
}

async fn store_and_apply<S: SecretStore>(
    session: &Session<'_, S>,
    pass: Option<&Pass<'_>>,
    wanted: &Wanted<'_>,
    details: &mut Details,
) -> Result<Phase, Stop> {
    let store::Stored { phase, content } = store::store(session, wanted, details).await?;
    let Some(pass) = pass else {
        info!(operation = "skip", "Skipping the Kubernetes Secret: MANAGEMENT_NAMESPACE is not set");
        return Ok(phase);
    };
    // A superseded run has nothing to apply.
    let (Some(content), Some(version)) = (content, phase.version) else { return Ok(phase) };
    let applied = pass.apply(wanted, version, content).instrument(pass.span()).await;
    let applied = applied.map_err(Stop::in_kubernetes_secret_phase)?;
    Ok(phase.followed_by(&applied))
}

/// HyperShift loses the Secret before the store does, so that at no time it refers to what is gone.
async fn remove_and_delete<S: SecretStore>(
    session: &Session<'_, S>,
    pass: Option<&Pass<'_>>,
    settings: &Settings,
) -> Result<Phase, Stop> {
    let taken = match pass {
        Some(pass) => Some(pass.remove().instrument(pass.span()).await.map_err(Stop::in_kubernetes_secret_phase)?),
        None => None,
    };
    if let Some(newer) = taken.as_ref().filter(|taken| taken.reason == Reason::Superseded) {
        return Ok(Phase { reason: newer.reason, because: newer.because.clone(), version: None });
    }
    let deleted = store::delete(session, settings).await?;
    Ok(match taken {
        // A deletion in either place is a deletion.
        Some(taken) if deleted.reason == Reason::SecretAbsent => taken,
        _ => deleted,
    })
}

impl Phase {
    /// Merges both phases into one result: a change in the store is reported before one in Kubernetes.
    fn followed_by(self, applied: &Self) -> Self {
        let reason = if self.reason == Reason::SecretUnchanged { applied.reason } else { self.reason };
        Self { reason, because: format!("{}; {}", self.because, applied.because), version: self.version }
    }
}

fn tell_end(settings: &Settings, result: Result<Phase, Stop>, mut details: Details) -> Ending {
    let duration_ms = details.duration_ms;
    match result {
        Ok(phase) => {
            details.secret_version = phase.version.map(VersionNumber::get).filter(|_| !settings.dry_run);
            let reason = if settings.dry_run { Reason::DryRunPassed } else { phase.reason };
            info!(operation = "completed", reason = %reason, duration_ms, "{}", completed(reason));
            let version = details.secret_version.map(|version| format!(" Version {version}.")).unwrap_or_default();
            Ending {
                reason,
                message: format!("{}{version} Observed before: {}", reason.meaning(), phase.because),
                details,
            }
        }
        Err(stop) => {
            let hint = stop.hint.map(|hint| format!("; hint: {hint}")).unwrap_or_default();
            let message = format!("{}{hint}", stop.message);
            let Stop { operation, phase, reason, .. } = stop;
            if reason == Reason::Interrupted {
                warn!(operation, phase, reason = %reason, duration_ms, "{message}");
            } else {
                error!(operation, phase, reason = %reason, duration_ms, "{message}");
            }
            Ending { reason, message, details }
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
