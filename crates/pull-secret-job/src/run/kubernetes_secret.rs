//! The second phase: observe, decide, act, until the Kubernetes Secret holds what the store holds, or is gone.

use docker_config::Digest;
use fleet_model::job::Reason;
use fleet_model::names;
use jiff::Timestamp;
use kubernetes::{AppliedSecret, Cluster, Fault, Form, KubernetesError, ObservedSecret, SecretKey};
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::VersionNumber;
use tokio::time::Instant;
use tracing::{Span, info, info_span, warn};

use crate::act::elapsed;
use crate::decide::kubernetes_secret::{self as decide, Plan, Seen, Step};
use crate::ending::{KUBERNETES_SECRET_PHASE, Stop};
use crate::session::Caller;
use crate::settings::{KubernetesSecretSettings, Settings};

use super::wanted::Wanted;
use super::{Phase, dry_run};

/// One pass over the phase.
pub(super) struct Pass<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) kubernetes_secret: &'a KubernetesSecretSettings,
    pub(super) caller: &'a Caller<'a>,
    pub(super) settings: &'a Settings,
}

/// What a step has come to.
enum Progress {
    Done,
    /// The world is another one than was seen; with the failure to end with if it stays so.
    LookAgain(&'static str, Option<KubernetesError>),
}

impl Pass<'_> {
    /// What the log's lines of this phase have in common.
    pub(super) fn span(&self) -> Span {
        let SecretKey { namespace, name } = &self.kubernetes_secret.key;
        info_span!("kubernetes-secret", phase = KUBERNETES_SECRET_PHASE, namespace, secret_name = name)
    }

    /// Makes the Kubernetes Secret hold `content`, which was read back from that version.
    pub(super) async fn apply(
        &self,
        wanted: &Wanted<'_>,
        version: VersionNumber,
        content: SecretSlice<u8>,
    ) -> Result<Phase, Stop> {
        let mut awaited = None;
        let result = self.converge(wanted, version, &content, &mut awaited).await;
        result.map_err(|stop| match awaited {
            // Where something was waited for, its absence is what the run has failed of, not its time.
            Some(awaited) if stop.reason == Reason::DeadlineExceeded => awaited,
            _ => stop,
        })
    }

    async fn converge(
        &self,
        wanted: &Wanted<'_>,
        version: VersionNumber,
        content: &SecretSlice<u8>,
        awaited: &mut Option<Stop>,
    ) -> Result<Phase, Stop> {
        let mut surprises = 0;
        loop {
            let start = Instant::now();
            let seen = self.look().await?;
            let should_be = self.should_be(wanted, version, content, seen.as_ref());
            let plan = decide::decide(&should_be, seen.as_ref().map(facts).as_ref());
            self.refuse(&plan)?;
            let applied = applied(&should_be, content, seen.as_ref());
            if self.settings.dry_run {
                dry_run::apply(self, &plan, &applied, seen.as_ref()).await?;
                return Ok(Phase::of_kubernetes_secret(&plan));
            }
            match self.perform(&plan, &applied, seen.as_ref()).await? {
                Progress::Done => {
                    tell(&plan, elapsed(start));
                    return Ok(Phase::of_kubernetes_secret(&plan));
                }
                Progress::LookAgain(why, failure) => {
                    *awaited = failure.map(Stop::from);
                    self.wait(&mut surprises, why, awaited.is_some()).await?;
                }
            }
        }
    }

    /// Makes the Kubernetes Secret go.
    pub(super) async fn remove(&self) -> Result<Phase, Stop> {
        let mut surprises = 0;
        loop {
            let seen = self.look().await?;
            let facts = seen.as_ref().map(facts);
            let plan = decide::remove(&self.settings.cluster, self.settings.generation, facts.as_ref());
            self.refuse(&plan)?;
            if self.settings.dry_run {
                dry_run::remove(self, &plan).await?;
                return Ok(Phase::of_kubernetes_secret(&plan));
            }
            match (plan.step, &seen) {
                (Step::Delete, Some(seen)) => match self.delete(seen).await? {
                    Progress::Done => {
                        info!(operation = "delete-secret", "Deleted Kubernetes secret");
                        return Ok(Phase::of_kubernetes_secret(&plan));
                    }
                    Progress::LookAgain(why, _) => self.wait(&mut surprises, why, false).await?,
                },
                (Step::Wait, _) => self.wait(&mut surprises, "the Kubernetes Secret has not gone yet", false).await?,
                _ => return Ok(Phase::of_kubernetes_secret(&plan)),
            }
        }
    }

    /// The Secret. A Role lies in the namespace that it is for, so where that does not exist, the answer is that looking
    /// is forbidden: then the namespace is asked for, if that is allowed.
    async fn look(&self) -> Result<Option<ObservedSecret>, Stop> {
        let key = &self.kubernetes_secret.key;
        let look = async || match self.cluster.find_secret(key).await {
            Err(error) if error.fault == Fault::Forbidden => match self.cluster.namespace_exists(&key.namespace).await?
            {
                Some(false) => Ok(None),
                _ => Err(error),
            },
            found => found,
        };
        self.caller.call("getSecret", look).await
    }

    fn should_be(
        &self,
        wanted: &Wanted<'_>,
        version: VersionNumber,
        content: &SecretSlice<u8>,
        seen: Option<&ObservedSecret>,
    ) -> decide::Wanted {
        let store = &self.settings.store;
        let mut annotations = vec![
            (names::ANNOTATION_STORE_PATH, store.latest_path(&self.settings.secret)),
            (names::ANNOTATION_STORE_VERSION, version.to_string()),
            (names::ANNOTATION_CREATED_BY, names::CREATED_BY.to_owned()),
        ];
        let recorded =
            seen.and_then(|seen| seen.annotations.get(names::ANNOTATION_KUBERNETES_SECRET_GENERATION).cloned());
        let generation = wanted.desired.generation.map(|generation| generation.to_string()).or(recorded);
        annotations.extend(generation.map(|generation| (names::ANNOTATION_KUBERNETES_SECRET_GENERATION, generation)));
        let had_digest =
            seen.is_some_and(|seen| seen.annotations.contains_key(names::ANNOTATION_KUBERNETES_SECRET_DIGEST));
        // Without a key for it, a digest of an earlier run would be a lie as soon as the content changes.
        let digest = wanted.desired.shown_digest.clone().or(had_digest.then(|| "none".to_owned()));
        annotations.extend(digest.map(|digest| (names::ANNOTATION_KUBERNETES_SECRET_DIGEST, digest)));
        decide::Wanted {
            cluster: self.settings.cluster.clone(),
            labels: self.kubernetes_secret.labels.clone(),
            annotations: annotations.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            content: Digest::of_bytes(content.expose_secret()),
            generation: wanted.desired.generation,
            adopt: self.kubernetes_secret.adopt,
        }
    }

    fn refuse(&self, plan: &Plan) -> Result<(), Stop> {
        tracing::debug!(operation = "decide", reason = %plan.reason, "{}: {}", plan.why(), plan.step);
        let key = &self.kubernetes_secret.key;
        let hint = match plan.reason {
            Reason::NameConflict => "set K8S_SECRET_NAME to another name, or take it over with --adopt".to_owned(),
            Reason::SecretImmutable => {
                format!(
                    "delete it, and the next run creates it anew: kubectl -n {} delete secret {}",
                    key.namespace, key.name
                )
            }
            _ => return Ok(()),
        };
        let message = format!("Failed to create/update Kubernetes secret: {}; it was not touched", plan.why());
        let stop = Stop::new("create-update-secret", plan.reason, message);
        Err(Stop { hint: Some(hint), phase: KUBERNETES_SECRET_PHASE, ..stop })
    }

    async fn perform(
        &self,
        plan: &Plan,
        applied: &AppliedSecret,
        seen: Option<&ObservedSecret>,
    ) -> Result<Progress, Stop> {
        let key = &self.kubernetes_secret.key;
        match (plan.step, seen) {
            (Step::Create, _) => self.create(applied).await,
            (Step::Apply, Some(seen)) => {
                let apply = async || self.cluster.apply_secret(key, applied, seen, false).await;
                self.surprised_by(Fault::Changed, "patchSecret", apply).await
            }
            (Step::Replace, Some(seen)) => {
                warn!(operation = "replace-secret", "Replacing Kubernetes secret: {}", plan.why());
                match self.delete(seen).await? {
                    Progress::Done => self.create(applied).await,
                    again @ Progress::LookAgain(..) => Ok(again),
                }
            }
            (Step::Wait, _) => Ok(Progress::LookAgain("the Kubernetes Secret has not gone yet", None)),
            _ => Ok(Progress::Done),
        }
    }

    async fn create(&self, applied: &AppliedSecret) -> Result<Progress, Stop> {
        let key = &self.kubernetes_secret.key;
        let created =
            self.caller.call("createSecret", async || match self.cluster.create_secret(key, applied, false).await {
                Ok(()) => Ok(Ok(())),
                Err(error) if error.fault == Fault::Forbidden => {
                    match self.cluster.namespace_exists(&key.namespace).await? {
                        Some(false) => Ok(Err(KubernetesError { fault: Fault::NamespaceMissing, ..error })),
                        _ => Err(error),
                    }
                }
                Err(error)
                    if matches!(error.fault, Fault::AlreadyExists | Fault::Changed | Fault::NamespaceMissing) =>
                {
                    Ok(Err(error))
                }
                Err(error) => Err(error),
            });
        Ok(match created.await? {
            Ok(()) => Progress::Done,
            Err(error) if error.fault == Fault::NamespaceMissing => {
                Progress::LookAgain("the namespace does not exist yet", Some(error))
            }
            Err(_) => Progress::LookAgain("another run, or an unanswered call of this one, has created it", None),
        })
    }

    async fn delete(&self, seen: &ObservedSecret) -> Result<Progress, Stop> {
        let delete = async || match self.cluster.delete_secret(&self.kubernetes_secret.key, seen, false).await {
            Ok(true) => Ok(Progress::Done),
            Ok(false) => Ok(Progress::LookAgain("the Kubernetes Secret has not gone yet", None)),
            Err(error) if error.fault == Fault::Changed => {
                Ok(Progress::LookAgain("the Kubernetes Secret was changed meanwhile", None))
            }
            Err(error) => Err(error),
        };
        self.caller.call("deleteSecret", delete).await
    }

    async fn surprised_by(
        &self,
        surprising: Fault,
        name: &'static str,
        mut attempt: impl AsyncFnMut() -> Result<(), KubernetesError>,
    ) -> Result<Progress, Stop> {
        let call = self.caller.call(name, async || match attempt().await {
            Ok(()) => Ok(Progress::Done),
            Err(error) if error.fault == surprising => {
                Ok(Progress::LookAgain("the Kubernetes Secret was changed meanwhile", None))
            }
            Err(error) => Err(error),
        });
        call.await
    }

    /// Waits before another look. A look at once helps against another writer, not where something is awaited.
    async fn wait(&self, surprises: &mut u32, why: &'static str, is_awaited: bool) -> Result<(), Stop> {
        *surprises = if is_awaited { (*surprises).max(1) + 1 } else { *surprises + 1 };
        self.caller.pause_before_looking_again(*surprises, why).await
    }
}

impl Phase {
    fn of_kubernetes_secret(plan: &Plan) -> Self {
        Self { reason: plan.reason, because: plan.why(), version: None }
    }
}

/// What a decision needs of what was seen.
fn facts(seen: &ObservedSecret) -> Seen {
    Seen {
        kind: seen.kind.clone(),
        labels: seen.labels.clone(),
        annotations: seen.annotations.clone(),
        content: seen.content.as_ref().map(|content| Digest::of_bytes(content.expose_secret())),
        is_immutable: seen.is_immutable,
        is_terminating: seen.is_terminating,
    }
}

/// The Secret to send: the time of its creation stays what it was.
fn applied(should_be: &decide::Wanted, content: &SecretSlice<u8>, seen: Option<&ObservedSecret>) -> AppliedSecret {
    let mut annotations = should_be.annotations.clone();
    let since = seen.and_then(|seen| seen.annotations.get(names::ANNOTATION_CREATED_AT).cloned());
    let now = || Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    annotations.insert(names::ANNOTATION_CREATED_AT.to_owned(), since.unwrap_or_else(now));
    AppliedSecret {
        labels: should_be.labels.clone(),
        annotations,
        content: content.clone(),
        form: Form::DockerConfigJson,
        owner: None,
    }
}

fn tell(plan: &Plan, duration_ms: u64) {
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
