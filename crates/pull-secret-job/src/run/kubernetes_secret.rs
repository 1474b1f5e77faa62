//! Runs the second phase: observe, decide, act, until the Kubernetes Secret holds the stored content, or is deleted.

use daemon::traces;
use docker_config::Digest;
use fleet_model::job::Reason;
use fleet_model::names;
use jiff::Timestamp;
use kubernetes::{AppliedSecret, ErrorKind, Form, KubernetesError, ObservedSecret, SecretKey};
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::VersionNumber;
use tokio::time::Instant;
use tracing::{Span, info, info_span, warn};

use crate::act::elapsed;
use crate::decide::kubernetes_secret::{self as decide, Observed, Plan, Step};
use crate::outcome::{DIFFERENT_INCARNATION_HINT, RunError};
use crate::settings::KUBERNETES_SECRET_PHASE;

use super::dry_run;
use super::input::Input;
use super::phase::{Pass, Phase};

/// Result of a step.
enum Progress {
    Done,
    /// The state differs from the observed one; with the error to end with if it stays so.
    ObserveAgain(&'static str, Option<KubernetesError>),
}

/// Span of the phase: the fields that all its log lines have.
pub(super) fn span(key: &SecretKey) -> Span {
    let SecretKey { namespace, name } = key;
    info_span!("kubernetes-secret", phase = KUBERNETES_SECRET_PHASE, namespace, secret_name = name)
}

impl Pass<'_> {
    /// Span of the phase.
    pub(super) fn span(&self) -> Span {
        span(&self.kubernetes_secret.key)
    }

    /// Applies the Kubernetes Secret with `content`, which was read back from that version.
    pub(super) async fn apply(
        &self,
        input: &Input<'_>,
        version: VersionNumber,
        content: SecretSlice<u8>,
    ) -> Result<Phase, RunError> {
        let mut awaited = None;
        let result = self.converge(input, version, &content, &mut awaited).await;
        result.map_err(|failed| match awaited {
            // The cause is the awaited object that never appeared, not the deadline.
            Some(awaited) if failed.reason == Reason::DeadlineExceeded => awaited,
            _ => failed,
        })
    }

    async fn converge(
        &self,
        input: &Input<'_>,
        version: VersionNumber,
        content: &SecretSlice<u8>,
        awaited: &mut Option<RunError>,
    ) -> Result<Phase, RunError> {
        let mut retries = 0;
        loop {
            let start = Instant::now();
            let observed = self.observe().await?;
            let desired = self.desired(input, version, content, observed.as_ref());
            let plan = decide::decide(&desired, observed.as_ref().map(facts).as_ref());
            self.refuse(&plan)?;
            let applied = applied(&desired, content, observed.as_ref());
            if self.settings.dry_run {
                dry_run::apply(self, &plan, &applied, observed.as_ref()).await?;
                return Ok(Phase::of_kubernetes_secret(&plan));
            }
            match self.perform(&plan, &applied, observed.as_ref()).await? {
                Progress::Done => {
                    log_step(&plan, elapsed(start));
                    return Ok(Phase::of_kubernetes_secret(&plan));
                }
                Progress::ObserveAgain(why, failure) => {
                    *awaited = failure.map(RunError::from);
                    self.wait(&mut retries, why, awaited.is_some()).await?;
                }
            }
        }
    }

    /// Deletes the Kubernetes Secret.
    pub(super) async fn remove(&self) -> Result<Phase, RunError> {
        let mut retries = 0;
        loop {
            let observed = self.observe().await?;
            let facts = observed.as_ref().map(facts);
            let plan = decide::remove(&self.settings.identity, facts.as_ref());
            if self.settings.dry_run {
                dry_run::remove(self, &plan).await?;
                return Ok(Phase::of_kubernetes_secret(&plan));
            }
            match (plan.step, &observed) {
                (Step::Delete, Some(observed)) => match self.delete(observed).await? {
                    Progress::Done => {
                        info!(operation = "delete-secret", "Deleted Kubernetes secret");
                        return Ok(Phase::of_kubernetes_secret(&plan));
                    }
                    Progress::ObserveAgain(why, _) => self.wait(&mut retries, why, false).await?,
                },
                (Step::Wait, _) => self.wait(&mut retries, "the Kubernetes Secret is not deleted yet", false).await?,
                _ => return Ok(Phase::of_kubernetes_secret(&plan)),
            }
        }
    }

    /// Reads the Secret. A Role is stored in its namespace, so if that does not exist, reading is forbidden; then the
    /// namespace is looked up, if that is allowed.
    async fn observe(&self) -> Result<Option<ObservedSecret>, RunError> {
        let key = &self.kubernetes_secret.key;
        let find = async || match self.cluster.find_secret(key).await {
            Err(error) if error.kind == ErrorKind::Forbidden => {
                match self.cluster.namespace_exists(&key.namespace).await? {
                    Some(false) => Ok(None),
                    _ => Err(error),
                }
            }
            found => found,
        };
        self.caller.call(find).await
    }

    fn desired(
        &self,
        input: &Input<'_>,
        version: VersionNumber,
        content: &SecretSlice<u8>,
        observed: Option<&ObservedSecret>,
    ) -> decide::Desired {
        let mut annotations = vec![
            (names::ANNOTATION_STORE_PATH, self.stored_as.clone()),
            (names::ANNOTATION_STORE_VERSION, version.to_string()),
            (names::ANNOTATION_CREATED_BY, names::CREATED_BY.to_owned()),
        ];
        let recorded = observed
            .and_then(|observed| observed.annotations.get(names::ANNOTATION_KUBERNETES_SECRET_GENERATION).cloned());
        let identity = &self.settings.identity;
        let generation = identity.generation.map(|generation| generation.to_string()).or(recorded);
        annotations.extend(generation.map(|generation| (names::ANNOTATION_KUBERNETES_SECRET_GENERATION, generation)));
        let incarnation = identity.incarnation.as_ref().map(ToString::to_string);
        let incarnation = incarnation.map(|text| (names::ANNOTATION_KUBERNETES_SECRET_INCARNATION, text));
        annotations.extend(incarnation);
        let had_digest = observed
            .is_some_and(|observed| observed.annotations.contains_key(names::ANNOTATION_KUBERNETES_SECRET_DIGEST));
        // Without a key, the digest of an earlier run would be wrong as soon as the content changes.
        let digest = input.desired.published_digest.clone().or(had_digest.then(|| "none".to_owned()));
        annotations.extend(digest.map(|digest| (names::ANNOTATION_KUBERNETES_SECRET_DIGEST, digest)));
        decide::Desired {
            identity: identity.clone(),
            labels: self.kubernetes_secret.labels.clone(),
            annotations: annotations.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            content: Digest::of_bytes(content.expose_secret()),
            adopt: self.kubernetes_secret.adopt,
        }
    }

    fn refuse(&self, plan: &Plan) -> Result<(), RunError> {
        tracing::debug!(operation = "decide", reason = %plan.reason, "{}: {}", plan.why(), plan.step);
        let key = &self.kubernetes_secret.key;
        let hint = match plan.reason {
            Reason::NameConflict => "set K8S_SECRET_NAME to another name, or take it over with --adopt".to_owned(),
            Reason::DifferentIncarnation => DIFFERENT_INCARNATION_HINT.to_owned(),
            Reason::SecretImmutable => {
                format!(
                    "delete it, and the next run creates it again: kubectl -n {} delete secret {}",
                    key.namespace, key.name
                )
            }
            _ => return Ok(()),
        };
        let message = format!("Failed to create/update Kubernetes secret: {}; it was not touched", plan.why());
        let failed = RunError::new("create-update-secret", plan.reason, message);
        Err(RunError { hint: Some(hint), phase: Some(KUBERNETES_SECRET_PHASE), ..failed })
    }

    async fn perform(
        &self,
        plan: &Plan,
        applied: &AppliedSecret,
        observed: Option<&ObservedSecret>,
    ) -> Result<Progress, RunError> {
        let key = &self.kubernetes_secret.key;
        match (plan.step, observed) {
            (Step::Create, _) => self.create(applied).await,
            (Step::Apply, Some(observed)) => {
                let apply = async || self.cluster.apply_secret(key, applied, observed, false).await;
                self.observe_again_on(ErrorKind::Changed, apply).await
            }
            (Step::Replace, Some(observed)) => {
                warn!(operation = "replace-secret", "Replacing Kubernetes secret: {}", plan.why());
                match self.delete(observed).await? {
                    Progress::Done => self.create(applied).await,
                    again @ Progress::ObserveAgain(..) => Ok(again),
                }
            }
            (Step::Wait, _) => Ok(Progress::ObserveAgain("the Kubernetes Secret is not deleted yet", None)),
            _ => Ok(Progress::Done),
        }
    }

    async fn create(&self, applied: &AppliedSecret) -> Result<Progress, RunError> {
        let key = &self.kubernetes_secret.key;
        let created = self.caller.call(async || match self.cluster.create_secret(key, applied, false).await {
            Ok(()) => Ok(Ok(())),
            Err(error) if error.kind == ErrorKind::Forbidden => {
                match self.cluster.namespace_exists(&key.namespace).await? {
                    Some(false) => Ok(Err(KubernetesError { kind: ErrorKind::NamespaceMissing, ..error })),
                    _ => Err(error),
                }
            }
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::AlreadyExists | ErrorKind::Changed | ErrorKind::NamespaceMissing
                ) =>
            {
                Ok(Err(error))
            }
            Err(error) => Err(error),
        });
        Ok(match created.await? {
            Ok(()) => Progress::Done,
            Err(error) if error.kind == ErrorKind::NamespaceMissing => {
                Progress::ObserveAgain("the namespace does not exist yet", Some(error))
            }
            Err(_) => Progress::ObserveAgain("another run, or an unanswered call of this one, has created it", None),
        })
    }

    async fn delete(&self, observed: &ObservedSecret) -> Result<Progress, RunError> {
        let delete = async || match self.cluster.delete_secret(&self.kubernetes_secret.key, observed, false).await {
            Ok(true) => Ok(Progress::Done),
            Ok(false) => Ok(Progress::ObserveAgain("the Kubernetes Secret is not deleted yet", None)),
            Err(error) if error.kind == ErrorKind::Changed => {
                Ok(Progress::ObserveAgain("the Kubernetes Secret was changed concurrently", None))
            }
            Err(error) => Err(error),
        };
        self.caller.call(delete).await
    }

    async fn observe_again_on(
        &self,
        expected: ErrorKind,
        mut attempt: impl AsyncFnMut() -> Result<(), KubernetesError>,
    ) -> Result<Progress, RunError> {
        let call = self.caller.call(async || match attempt().await {
            Ok(()) => Ok(Progress::Done),
            Err(error) if error.kind == expected => {
                Ok(Progress::ObserveAgain("the Kubernetes Secret was changed concurrently", None))
            }
            Err(error) => Err(error),
        });
        call.await
    }

    /// Waits before the next observation. Observing at once helps against another writer, not where something is awaited.
    async fn wait(&self, retries: &mut u32, why: &'static str, is_awaited: bool) -> Result<(), RunError> {
        *retries = if is_awaited { (*retries).max(1) + 1 } else { *retries + 1 };
        self.caller.pause_before_observing(*retries, why).await
    }
}

impl Phase {
    fn of_kubernetes_secret(plan: &Plan) -> Self {
        Self { reason: plan.reason, cause: plan.why(), version: None }
    }
}

/// The facts that a decision needs.
fn facts(observed: &ObservedSecret) -> Observed {
    Observed {
        kind: observed.kind.clone(),
        labels: observed.labels.clone(),
        annotations: observed.annotations.clone(),
        content: observed.content.as_ref().map(|content| Digest::of_bytes(content.expose_secret())),
        is_immutable: observed.is_immutable,
        is_terminating: observed.is_terminating,
    }
}

/// The Secret to apply; its creation time is preserved.
fn applied(desired: &decide::Desired, content: &SecretSlice<u8>, observed: Option<&ObservedSecret>) -> AppliedSecret {
    let mut annotations = desired.annotations.clone();
    let since = observed.and_then(|observed| observed.annotations.get(names::ANNOTATION_CREATED_AT).cloned());
    let now = || Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    annotations.insert(names::ANNOTATION_CREATED_AT.to_owned(), since.unwrap_or_else(now));
    let trace = traces::current().map(|trace| (names::ANNOTATION_TRACE.to_owned(), trace.to_string()));
    annotations.extend(trace);
    AppliedSecret {
        labels: desired.labels.clone(),
        annotations,
        content: content.clone(),
        form: Form::DockerConfigJson,
        owner: None,
    }
}

fn log_step(plan: &Plan, duration_ms: u64) {
    match plan.step {
        Step::Create | Step::Replace => {
            info!(operation = "create-secret", duration_ms, "Created Kubernetes secret");
        }
        Step::Apply => info!(operation = "update-secret", duration_ms, "Updated Kubernetes secret: {}", plan.why()),
        _ if plan.reason == Reason::Superseded => {
            info!(operation = "secret-unchanged", duration_ms, "Kubernetes secret is left alone: {}", plan.why());
        }
        _ => info!(operation = "secret-unchanged", duration_ms, "Secret data unchanged, skipping update"),
    }
}
