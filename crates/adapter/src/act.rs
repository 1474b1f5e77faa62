//! Doing what was decided about one resource. Each step may be done twice, and by two at once.

use std::time::Duration;

use daemon::retry::Transient as _;
use fleet_model::names;
use kubernetes::ObservedJob;
use kubernetes::{AppliedSecret, Cluster, Fault, Form, KubernetesError, ObservedSecret, OwnerJob, Verb};
use secrecy::{ExposeSecret as _, SecretSlice};

use crate::config::Plan as Config;
use crate::decide::{Action, Begin, Facts, InputState, Purpose};
use crate::manifest::{self, Occasion};
use crate::observe::{Observed, input_key, is_ours};
use crate::reason::Reason;

/// What is done, to whom, where.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The adapter.
    pub config: &'a Config,
    /// Where.
    pub cluster: &'a Cluster,
    /// What was seen of the resource.
    pub observed: &'a Observed,
    /// Upon what.
    pub occasion: &'a Occasion,
}

/// How a step went.
#[derive(Debug)]
pub enum Step {
    /// It is done.
    Done,
    /// A run has begun.
    Begun(Box<ObservedJob>),
    /// Something must go first; look again after this.
    Wait(Duration),
    /// It was refused for good, for this reason.
    Refused(Reason, String),
}

/// What a Job that must go first may take before it is looked for again; its end is news besides.
const GOING: Duration = Duration::from_secs(1);

impl Scene<'_> {
    /// Does one step. An error is one that may pass.
    pub async fn perform(&self, action: &Action, facts: &Facts<'_>) -> Result<Step, KubernetesError> {
        let done = match action {
            Action::Begin(begin) => self.begin(begin, facts).await,
            Action::DeleteJob(job) => self.cluster.delete_job(&self.config.namespace, job).await.map(|()| Step::Done),
            Action::OwnInput(job) => self.own_input(job).await.map(|()| Step::Done),
            Action::RemoveInput(input) => self.remove_input(input).await.map(|()| Step::Done),
        };
        match done {
            Err(error) if is_for_good(&error) => {
                let reason = match action {
                    Action::Begin(_) => Reason::ResourceCreationFailed,
                    _ => Reason::KubernetesApiFailure,
                };
                let hint = hint(&error, self.config).map(|hint| format!("; {hint}")).unwrap_or_default();
                Ok(Step::Refused(reason, format!("{error}{hint}")))
            }
            other => other,
        }
    }

    async fn begin(&self, begin: &Begin, facts: &Facts<'_>) -> Result<Step, KubernetesError> {
        let namespace = &self.config.namespace;
        if let Some(replaced) = &begin.replaces {
            self.cluster.delete_job(namespace, replaced).await?;
            let left = self.cluster.find_job(namespace, &replaced.name).await?;
            if left.is_some_and(|left| left.uid == replaced.uid) {
                return Ok(Step::Wait(GOING));
            }
        }
        let job = match manifest::job(self.config, facts, begin, self.occasion) {
            Ok(job) => job,
            Err(words) => return Ok(Step::Refused(Reason::ResourceCreationFailed, words)),
        };
        if begin.purpose == Purpose::Apply
            && let Err(conflict) = self.put_input(facts, None).await?
        {
            return Ok(Step::Refused(Reason::NameConflict, conflict));
        }
        let Some(created) = self.cluster.create_job_once(namespace, &job).await? else {
            return self.in_the_way(begin, job.metadata.name.as_deref().unwrap_or_default()).await;
        };
        if begin.purpose == Purpose::Apply {
            // If this fails, the next look repairs it: an input must not outlive its Job.
            self.own_input(&created).await?;
        }
        Ok(Step::Begun(Box::new(created)))
    }

    /// A Job of the name is there: that of another replica, one that must go first, or somebody else's.
    async fn in_the_way(&self, begin: &Begin, name: &str) -> Result<Step, KubernetesError> {
        let namespace = &self.config.namespace;
        let Some(found) = self.cluster.find_job(namespace, name).await? else { return Ok(Step::Wait(GOING)) };
        let is = |label: &str, value: &str| found.labels.get(label).is_some_and(|found| found == value);
        let id = &self.observed.resource.id;
        if !is(names::LABEL_RUN_ADAPTER, &self.config.adapter) || !is(names::LABEL_RUN_RESOURCE, id) {
            let words = format!("job {namespace}/{name} is there and is not this adapter's; it is not touched");
            return Ok(Step::Refused(Reason::NameConflict, words));
        }
        let wanted = if begin.purpose == Purpose::Apply { names::PURPOSE_APPLY } else { names::PURPOSE_DELETE };
        let edition = found.annotations.get(names::ANNOTATION_SOURCE);
        let is_wanted = is(names::LABEL_RUN_PURPOSE, wanted)
            && !manifest::is_of_former(&found, &self.observed.resource)
            && match self.observed.facts(jiff::Timestamp::UNIX_EPOCH).source {
                crate::decide::Source::Edition(now) if begin.purpose == Purpose::Apply => edition == Some(&now),
                _ => true,
            };
        if is_wanted && !found.is_terminating {
            return Ok(Step::Begun(Box::new(found)));
        }
        self.cluster.delete_job(namespace, &found).await?;
        Ok(Step::Wait(GOING))
    }

    /// Brings the input to what the run needs; the inner error is a Secret of its name that is not ours.
    async fn put_input(
        &self,
        facts: &Facts<'_>,
        owner: Option<OwnerJob>,
    ) -> Result<Result<(), String>, KubernetesError> {
        let (Some(input), Some(content)) = (&self.config.input, &self.observed.content) else { return Ok(Ok(())) };
        let id = &self.observed.resource.id;
        let key = input_key(self.config, id);
        let wanted = AppliedSecret {
            labels: manifest::labels(self.config, facts, Purpose::Apply),
            annotations: manifest::input_annotations(self.config, facts.resource),
            content: SecretSlice::from(content.expose_secret().to_vec()),
            form: Form::Opaque(input.key.clone()),
            owner,
        };
        match self.cluster.find_secret_of(&key, &wanted.form).await? {
            None => self.cluster.create_secret(&key, &wanted, false).await?,
            Some(found) if !is_ours(self.config, id, &found) => {
                return Ok(Err(format!("{key} is there and is not this adapter's; it is not touched")));
            }
            // Another replica knows a newer generation: its run must not read this one's pull secret.
            Some(found) if manifest::is_input_of_newer_generation(&found, facts.resource) => {
                return Err(KubernetesError::new(Verb::Apply, key.to_string(), Fault::Changed));
            }
            Some(found) => self.cluster.apply_secret(&key, &wanted, &found, false).await?,
        }
        Ok(Ok(()))
    }

    /// Lets the input go with its Job.
    async fn own_input(&self, job: &ObservedJob) -> Result<(), KubernetesError> {
        let facts = self.observed.facts(jiff::Timestamp::UNIX_EPOCH);
        let owner = OwnerJob { name: job.name.clone(), uid: job.uid.clone() };
        // A Secret that is not ours was refused before.
        self.put_input(&facts, Some(owner)).await.map(drop)
    }

    /// Removes the input in the version that was observed. Another version may feed a run that another replica has begun
    /// meanwhile; then the error is `Changed`, and the pass is repeated with a new observation.
    async fn remove_input(&self, observed: &InputState) -> Result<(), KubernetesError> {
        let Some(input) = &self.config.input else { return Ok(()) };
        let id = &self.observed.resource.id;
        let key = input_key(self.config, id);
        let found = managed_input(self.config, self.cluster, id, &input.key).await?;
        let Some(found) = found else { return Ok(()) };
        if (&found.uid, &found.resource_version) != (&observed.uid, &observed.resource_version) {
            return Err(KubernetesError::new(Verb::Delete, key.to_string(), Fault::Changed));
        }
        self.cluster.delete_secret(&key, &found, false).await.map(drop)
    }
}

/// Removes what is left of a resource's runs; says whether there was anything.
pub async fn remove_leftovers(config: &Config, cluster: &Cluster, id: &str) -> Result<bool, KubernetesError> {
    let jobs = cluster.jobs(&config.namespace, &manifest::selector(config, id)).await?;
    for job in jobs.iter().filter(|job| !job.is_terminating) {
        cluster.delete_job(&config.namespace, job).await?;
    }
    let input = config.input.as_ref().map(|input| input.key.as_str());
    if let Some(key) = input
        && let Some(found) = managed_input(config, cluster, id, key).await?
    {
        cluster.delete_secret(&input_key(config, id), &found, false).await?;
    }
    Ok(!jobs.is_empty())
}

/// Returns the input of a resource's runs; `None` if there is none, or an unmanaged Secret has its name.
async fn managed_input(
    config: &Config,
    cluster: &Cluster,
    id: &str,
    key: &str,
) -> Result<Option<ObservedSecret>, KubernetesError> {
    let found = cluster.find_secret_of(&input_key(config, id), &Form::Opaque(key.to_owned())).await?;
    Ok(found.filter(|found| is_ours(config, id, found)))
}

/// What no repetition mends. A namespace may come, a quota be freed, a conflict pass.
fn is_for_good(error: &KubernetesError) -> bool {
    let may_pass = matches!(
        error.fault,
        Fault::Changed | Fault::NotFound | Fault::AlreadyExists | Fault::NamespaceMissing | Fault::QuotaExceeded
    );
    !error.is_transient() && !may_pass
}

fn hint(error: &KubernetesError, config: &Config) -> Option<String> {
    match error.fault {
        Fault::Forbidden => Some(format!(
            "allow the adapter's service account that verb in namespace {} (Role, RoleBinding)",
            config.namespace
        )),
        Fault::NamespaceMissing => Some(format!("create namespace {}", config.namespace)),
        _ => error.hint(),
    }
}
