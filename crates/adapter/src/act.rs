//! Carries out the actions of a plan. Each action may be repeated, and two replicas may carry it out at the same time.

use std::time::Duration;

use daemon::retry::Transient as _;
use fleet_model::names;
use kubernetes::{
    AppliedSecret, Cluster, ErrorKind, Form, KubernetesError, ObservedJob, ObservedSecret, OwnerJob, SecretKey, Verb,
};
use secrecy::{ExposeSecret as _, SecretSlice};

use crate::access;
use crate::config::{Account, Checked};
use crate::decide::{Action, Facts, InputState, Purpose, StartRun};
use crate::manifest::{self, Trigger};
use crate::observe::{Observed, input_key, is_managed};
use crate::reason::Reason;

/// The resource that actions are carried out for, and the means to do it.
#[derive(Clone, Copy, Debug)]
pub struct Executor<'a> {
    /// The adapter's configuration.
    pub config: &'a Checked,
    /// The Kubernetes cluster that Jobs run in.
    pub cluster: &'a Cluster,
    /// The observed state of the resource.
    pub observed: &'a Observed,
    /// The event that caused the pass.
    pub trigger: &'a Trigger,
}

/// The result of an action.
#[derive(Debug)]
pub enum Step {
    /// The action is complete.
    Done,
    /// A Job was created, or another replica has created it.
    Started(Box<ObservedJob>),
    /// Another object must be deleted first; the pass is repeated after this time.
    Wait(Duration),
    /// Kubernetes has refused it permanently, for this reason.
    Refused(Reason, String),
}

/// Time until the next pass while a Job is terminating whose name is needed. Its deletion causes a pass as well.
const TERMINATING_REQUEUE: Duration = Duration::from_secs(1);

impl Executor<'_> {
    /// Carries out one action; a run must be prepared before ([`Executor::prepare`]). Errors are transient; a permanent failure is
    /// [`Step::Refused`].
    pub async fn perform(&self, action: &Action, facts: &Facts<'_>) -> Result<Step, KubernetesError> {
        let done = match action {
            // The pass itself reports; see `reconcile`.
            Action::RecordCopies => Ok(Step::Done),
            Action::StartRun(run) => self.start_run(run, facts).await,
            Action::DeleteJob(job) => self.cluster.delete_job(&self.config.namespace, job).await.map(|()| Step::Done),
            Action::SetInputOwner(job) => self.set_input_owner(job).await.map(|()| Step::Done),
            Action::RemoveInput(input) => self.remove_input(input).await.map(|()| Step::Done),
            Action::RevokeAccess => self.revoke_access(facts).await.map(|()| Step::Done),
        };
        let reason = match action {
            Action::StartRun(_) => Reason::ResourceCreationFailed,
            _ => Reason::KubernetesApiFailure,
        };
        self.or_refused(reason, done)
    }

    /// Does everything for a run that comes before its Job, the input last. Its Job's Pod cannot start without the input.
    pub async fn prepare(&self, run: &StartRun, facts: &Facts<'_>) -> Result<Step, KubernetesError> {
        self.or_refused(Reason::ResourceCreationFailed, self.prepare_run(run, facts).await)
    }

    /// Turns a permanent failure into a refusal for this reason.
    fn or_refused(&self, reason: Reason, done: Result<Step, KubernetesError>) -> Result<Step, KubernetesError> {
        match done {
            Err(error) if is_permanent(&error) => {
                let hint = hint(&error, self.config).map(|hint| format!("; {hint}")).unwrap_or_default();
                Ok(Step::Refused(reason, format!("{error}{hint}")))
            }
            other => other,
        }
    }

    async fn prepare_run(&self, run: &StartRun, facts: &Facts<'_>) -> Result<Step, KubernetesError> {
        let namespace = &self.config.namespace;
        if let Some(replaced) = &run.replaces {
            self.cluster.delete_job(namespace, replaced).await?;
            let left = self.cluster.find_job(namespace, &replaced.name).await?;
            if left.is_some_and(|left| left.uid == replaced.uid) {
                return Ok(Step::Wait(TERMINATING_REQUEUE));
            }
        }
        if let Err(message) = manifest::job(self.config, facts, run, self.trigger) {
            return Ok(Step::Refused(Reason::ResourceCreationFailed, message));
        }
        if run.purpose == Purpose::Apply
            && let Err(error) = self.grant_access(facts).await
        {
            return refused_access(error);
        }
        if run.purpose == Purpose::Apply
            && let Err(conflict) = self.apply_input(facts, None).await?
        {
            return Ok(Step::Refused(Reason::NameConflict, conflict));
        }
        Ok(Step::Done)
    }

    /// Creates the Job of a run that was prepared.
    async fn start_run(&self, run: &StartRun, facts: &Facts<'_>) -> Result<Step, KubernetesError> {
        let namespace = &self.config.namespace;
        let job = match manifest::job(self.config, facts, run, self.trigger) {
            Ok(job) => job,
            Err(message) => return Ok(Step::Refused(Reason::ResourceCreationFailed, message)),
        };
        let Some(created) = self.cluster.create_job_once(namespace, &job).await? else {
            return self.resolve_job_conflict(run, job.metadata.name.as_deref().unwrap_or_default()).await;
        };
        if run.purpose == Purpose::Apply {
            // The input is deleted with its Job. If this fails, the next pass repairs it.
            self.set_input_owner(&created).await?;
        }
        Ok(Step::Started(Box::new(created)))
    }

    /// Grants the Job, and this adapter, access to the Secret that the Job applies.
    async fn grant_access(&self, facts: &Facts<'_>) -> Result<(), KubernetesError> {
        let Some((key, jobs)) = self.access(facts) else { return Ok(()) };
        access::grant(self.config, self.cluster, &facts.resource.id, &key, &jobs).await
    }

    async fn revoke_access(&self, facts: &Facts<'_>) -> Result<(), KubernetesError> {
        let Some((key, jobs)) = self.access(facts) else { return Ok(()) };
        access::revoke(self.config, self.cluster, &key, &jobs).await
    }

    /// The Secret that runs apply, and the account of their Jobs.
    fn access(&self, facts: &Facts<'_>) -> Option<(SecretKey, Account)> {
        self.observed.output_key(self.config).zip(manifest::job_account(self.config, facts).ok())
    }

    /// Handles an existing Job of the same name: another replica's, an outdated one that is deleted first, or an unmanaged one.
    async fn resolve_job_conflict(&self, run: &StartRun, name: &str) -> Result<Step, KubernetesError> {
        let namespace = &self.config.namespace;
        let Some(found) = self.cluster.find_job(namespace, name).await? else {
            return Ok(Step::Wait(TERMINATING_REQUEUE));
        };
        let is = |label: &str, value: &str| found.labels.get(label).is_some_and(|found| found == value);
        let id = &self.observed.resource.id;
        if !is(names::LABEL_RUN_ADAPTER, &self.config.adapter) || !is(names::LABEL_RUN_RESOURCE, id) {
            let message = format!("unmanaged job {namespace}/{name} exists; delete or rename it");
            return Ok(Step::Refused(Reason::NameConflict, message));
        }
        let purpose = manifest::purpose_label(run.purpose);
        let revision = found.annotations.get(names::ANNOTATION_SOURCE);
        let is_current = is(names::LABEL_RUN_PURPOSE, purpose)
            && !manifest::is_of_former(&found, &self.observed.resource)
            && match self.observed.facts(jiff::Timestamp::UNIX_EPOCH).source {
                crate::decide::PullSecretSource::Revision(now) if run.purpose == Purpose::Apply => {
                    revision == Some(&now)
                }
                _ => true,
            };
        if is_current && !found.is_terminating {
            return Ok(Step::Started(Box::new(found)));
        }
        self.cluster.delete_job(namespace, &found).await?;
        Ok(Step::Wait(TERMINATING_REQUEUE))
    }

    /// Creates or updates the input; the inner error names an unmanaged Secret of the same name.
    async fn apply_input(
        &self,
        facts: &Facts<'_>,
        owner: Option<OwnerJob>,
    ) -> Result<Result<(), String>, KubernetesError> {
        let (Some(input), Some(content)) = (&self.config.input, &self.observed.content) else { return Ok(Ok(())) };
        let id = &self.observed.resource.id;
        let key = input_key(self.config, id);
        let desired = AppliedSecret {
            labels: manifest::labels(self.config, facts, Purpose::Apply),
            annotations: manifest::input_annotations(self.config, facts.resource),
            content: SecretSlice::from(content.expose_secret().to_vec()),
            form: Form::Opaque(input.key.clone()),
            owner,
        };
        match self.cluster.find_secret_of(&key, &desired.form).await? {
            None => self.cluster.create_secret(&key, &desired, false).await?,
            Some(found) if !is_managed(self.config, id, &found) => {
                return Ok(Err(format!("unmanaged {key} exists; delete or rename it")));
            }
            // Another replica knows a newer generation: its run must not read this one's pull secret.
            Some(found) if manifest::is_input_of_newer_generation(&found, facts.resource) => {
                return Err(KubernetesError::new(Verb::Apply, key.to_string(), ErrorKind::Changed));
            }
            Some(found) => self.cluster.apply_secret(&key, &desired, &found, false).await?,
        }
        Ok(Ok(()))
    }

    /// Makes the Job the owner of the input, so that both are deleted together.
    async fn set_input_owner(&self, job: &ObservedJob) -> Result<(), KubernetesError> {
        let facts = self.observed.facts(jiff::Timestamp::UNIX_EPOCH);
        let owner = OwnerJob { name: job.name.clone(), uid: job.uid.clone() };
        // An unmanaged Secret was refused before the Job was created.
        self.apply_input(&facts, Some(owner)).await.map(drop)
    }

    /// Removes the input in the version that was observed. Another version may feed a run that another replica has started
    /// meanwhile; then the error is `Changed`, and the pass is repeated with a new observation.
    async fn remove_input(&self, observed: &InputState) -> Result<(), KubernetesError> {
        let Some(input) = &self.config.input else { return Ok(()) };
        let id = &self.observed.resource.id;
        let key = input_key(self.config, id);
        let found = managed_input(self.config, self.cluster, id, &input.key).await?;
        let Some(found) = found else { return Ok(()) };
        if (&found.uid, &found.resource_version) != (&observed.uid, &observed.resource_version) {
            return Err(KubernetesError::new(Verb::Delete, key.to_string(), ErrorKind::Changed));
        }
        self.cluster.delete_secret(&key, &found, false).await.map(drop)
    }
}

/// A Job without access to the Secret that it applies would only fail.
fn refused_access(error: KubernetesError) -> Result<Step, KubernetesError> {
    let hint = match error.kind {
        ErrorKind::NamespaceMissing => "the run starts when the namespace exists",
        ErrorKind::Forbidden => {
            "allow the adapter's service account to create Roles and RoleBindings there, or grant the access to the Secret and \
             leave out spec.kubernetes.serviceAccount"
        }
        _ => return Err(error),
    };
    Ok(Step::Refused(Reason::ResourceCreationFailed, format!("{error}; {hint}")))
}

/// The Jobs and the input that are left of a resource's runs.
#[derive(Debug)]
pub struct Leftovers {
    jobs: Vec<ObservedJob>,
    input: Option<ObservedSecret>,
}

impl Leftovers {
    /// Observes them.
    pub async fn find(config: &Checked, cluster: &Cluster, id: &str) -> Result<Self, KubernetesError> {
        let jobs = cluster.jobs(&config.namespace, &manifest::selector(config, id)).await?;
        let input = match &config.input {
            Some(input) => managed_input(config, cluster, id, &input.key).await?,
            None => None,
        };
        Ok(Self { jobs, input })
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.input.is_none()
    }

    /// Deletes them as they were observed, by their uids.
    ///
    /// The caller has made sure, after they were observed, that the API does not have the resource: they could otherwise
    /// belong to another one with its id, which was created meanwhile.
    pub async fn remove(&self, config: &Checked, cluster: &Cluster, id: &str) -> Result<(), KubernetesError> {
        for job in self.jobs.iter().filter(|job| !job.is_terminating) {
            cluster.delete_job(&config.namespace, job).await?;
        }
        if let Some(input) = &self.input {
            cluster.delete_secret(&input_key(config, id), input, false).await?;
        }
        Ok(())
    }
}

/// Returns the input of a resource's runs; `None` if there is none, or an unmanaged Secret has its name.
async fn managed_input(
    config: &Checked,
    cluster: &Cluster,
    id: &str,
    key: &str,
) -> Result<Option<ObservedSecret>, KubernetesError> {
    let found = cluster.find_secret_of(&input_key(config, id), &Form::Opaque(key.to_owned())).await?;
    Ok(found.filter(|found| is_managed(config, id, found)))
}

/// Returns true if a repetition cannot succeed. A missing namespace, an exhausted quota and a conflict are not permanent.
fn is_permanent(error: &KubernetesError) -> bool {
    let may_pass = matches!(
        error.kind,
        ErrorKind::Changed
            | ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::NamespaceMissing
            | ErrorKind::QuotaExceeded
    );
    !error.is_transient() && !may_pass
}

fn hint(error: &KubernetesError, config: &Checked) -> Option<String> {
    match error.kind {
        ErrorKind::Forbidden => Some(format!(
            "allow the adapter's service account that verb in namespace {} (Role, RoleBinding)",
            config.namespace
        )),
        ErrorKind::NamespaceMissing => Some(format!("create namespace {}", config.namespace)),
        _ => error.hint(),
    }
}
