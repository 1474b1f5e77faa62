//! The record of a rotation in the management cluster: a ConfigMap with the plan that never changes, and one with the state, that
//! each process changes only as it was read.

use std::collections::BTreeMap;
use std::time::Duration;

use fleet_model::names;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::leadership::{LEASE_DURATION, RETRY_PERIOD};
use kubernetes::lease::{LeaseCandidate, LeaseClaim, LeaseState, Now};
use kubernetes::{Cluster, ErrorKind, KubernetesError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::plan::Plan;
use crate::state::{Phase, Request, State};

/// The key of the ConfigMap's only value.
const KEY: &str = "rotation.json";
/// The longest plan: a ConfigMap holds 1 MiB.
const LONGEST_PLAN: usize = 1_000_000;
/// Number of attempts at a change that others change at the same time.
const ATTEMPTS: u32 = 10;
/// Longer than a holder leaves its Lease without renewal.
const OBSERVATION: Duration = RETRY_PERIOD.saturating_add(Duration::from_secs(2));

/// The records of rotations in one namespace.
#[derive(Clone, Debug)]
pub struct Records {
    cluster: Cluster,
    namespace: String,
}

/// A rotation as it is recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its name.
    pub name: String,
    /// The plan.
    pub plan: Plan,
    /// The state.
    pub state: State,
    /// The process that works on it.
    pub holder: Option<String>,
}

/// The cause for which a record cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Kubernetes refuses, or does not answer.
    #[error("{}", with_hint(.0))]
    Kubernetes(#[from] KubernetesError),
    /// There is no rotation of that name.
    #[error("there is no rotation {0}: `pull-secret rotate status` lists all")]
    NotFound(String),
    /// There is a rotation of that name.
    #[error("there is a rotation {0} already: go on with `pull-secret rotate resume {0}`, or give another name")]
    Exists(String),
    /// It is over.
    #[error("rotation {name} is over ({phase:?}): plan another one")]
    Over {
        /// The rotation.
        name: String,
        /// Its phase.
        phase: Phase,
    },
    /// Its abortion is requested, and not carried out yet.
    #[error(
        "rotation {0} is to be aborted: if no process works on it, `pull-secret rotate abort {0} --yes` carries that out"
    )]
    Aborting(String),
    /// Another process works on it.
    #[error("another process works on rotation {name}: {holder}; see `pull-secret rotate status {name}`")]
    Held {
        /// The rotation.
        name: String,
        /// The process.
        holder: String,
    },
    /// The name cannot be used.
    #[error("the name of a rotation must be of lower-case letters, digits and hyphens, at most 63")]
    InvalidName,
    /// The record is too large.
    #[error("the plan has {0} bytes, and a ConfigMap holds {LONGEST_PLAN}: split the search into several rotations")]
    TooLarge(usize),
    /// The record was changed by hand, or is of another release.
    #[error("the record {object} cannot be read: it is damaged, or of another release")]
    Unreadable {
        /// The ConfigMap.
        object: String,
    },
}

// === impl Records ===

impl Records {
    /// The records in a namespace.
    pub fn new(cluster: Cluster, namespace: &str) -> Self {
        Self { cluster, namespace: namespace.to_owned() }
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Reads a rotation.
    pub async fn find(&self, name: &str) -> Result<Recorded, RecordError> {
        let (state, _) = self.read(name).await?;
        let object = plan_name(name);
        let found = self.cluster.find::<ConfigMap>(&self.namespace, &object).await?;
        let plan = parse(&found.ok_or(RecordError::Unreadable { object })?)?;
        Ok(Recorded { name: name.to_owned(), plan, state, holder: self.holder(name).await? })
    }

    /// Lists the names of all rotations.
    pub async fn names(&self) -> Result<Vec<String>, RecordError> {
        let found: Vec<ConfigMap> = self.cluster.list(&self.namespace, names::LABEL_ROTATION).await?;
        let name = |object: ConfigMap| {
            let labels = object.metadata.labels.unwrap_or_default();
            let name = labels.get(names::LABEL_ROTATION)?;
            (object.metadata.name? == state_name(name)).then(|| name.clone())
        };
        Ok(found.into_iter().filter_map(name).collect())
    }

    /// Fails if there is a rotation of that name, or the name cannot be used.
    pub async fn check_absent(&self, name: &str) -> Result<(), RecordError> {
        match self.read(name).await {
            Ok(_) => Err(RecordError::Exists(name.to_owned())),
            Err(RecordError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Records a new rotation. The caller holds its Lease, so that a plan without a state is what a killed process has left.
    pub async fn create(&self, name: &str, plan: &Plan, state: &State) -> Result<(), RecordError> {
        let plan = self.object(name, plan_name(name), &plan.recorded())?;
        let plan = ConfigMap { immutable: Some(true), ..plan };
        let length = plan.data.iter().flat_map(BTreeMap::values).map(String::len).sum();
        if length > LONGEST_PLAN {
            return Err(RecordError::TooLarge(length));
        }
        if let Some(left_behind) = self.cluster.find::<ConfigMap>(&self.namespace, &plan_name(name)).await? {
            self.cluster.delete(&left_behind).await?;
        }
        self.cluster.create(&plan).await?;
        self.cluster.create(&self.object(name, state_name(name), state)?).await?;
        Ok(())
    }

    /// Changes the state as it is now; returns the changed one. Nothing is written if the change fails.
    pub async fn change<E: From<RecordError>>(
        &self,
        name: &str,
        change: impl Fn(&mut State) -> Result<(), E>,
    ) -> Result<State, E> {
        let mut attempts = 1;
        loop {
            let (mut state, read) = self.read(name).await?;
            change(&mut state)?;
            state.updated = Timestamp::now();
            let written = self.object(name, state_name(name), &state)?;
            let object = ConfigMap { data: written.data, ..read };
            match self.cluster.apply(&object, &[]).await {
                Ok(_) => return Ok(state),
                Err(error) if error.kind == ErrorKind::Changed && attempts < ATTEMPTS => attempts += 1,
                Err(error) => return Err(RecordError::from(error).into()),
            }
        }
    }

    /// Reads the state.
    pub async fn state(&self, name: &str) -> Result<State, RecordError> {
        Ok(self.read(name).await?.0)
    }

    async fn read(&self, name: &str) -> Result<(State, ConfigMap), RecordError> {
        if !fleet_model::id::is_dns_label(name) {
            return Err(RecordError::InvalidName);
        }
        let found = self.cluster.find::<ConfigMap>(&self.namespace, &state_name(name)).await?;
        let found = found.ok_or_else(|| RecordError::NotFound(name.to_owned()))?;
        Ok((parse(&found)?, found))
    }

    /// Claims the rotation for this process. A Lease that its holder does not renew is waited for, up to its expiry.
    pub async fn claim(&self, name: &str, holder: &str) -> Result<(), RecordError> {
        let claim = LeaseClaim {
            namespace: self.namespace.clone(),
            name: state_name(name),
            holder: holder.to_owned(),
            duration: LEASE_DURATION,
        };
        let mut candidate = LeaseCandidate::new(self.cluster.clone(), claim);
        let mut before = None;
        loop {
            let state = candidate.try_acquire(Now::read()).await?;
            let LeaseState::HeldByOther { holder, until } = state else { return Ok(()) };
            if before.is_some_and(|before| until > before) {
                return Err(RecordError::Held { name: name.to_owned(), holder });
            }
            before = Some(until);
            tokio::time::sleep(OBSERVATION).await;
        }
    }

    /// The holder of the Lease that was renewed lately, by the clocks of both machines. A renewal further in the future than a
    /// Lease lasts says nothing about the present.
    async fn holder(&self, name: &str) -> Result<Option<String>, RecordError> {
        let lease = self.cluster.find::<Lease>(&self.namespace, &state_name(name)).await?;
        let spec = lease.and_then(|lease| lease.spec).unwrap_or_default();
        let age = spec.renew_time.map(|time| Timestamp::now().duration_since(time.0).as_secs());
        let is_live = age.is_some_and(|age| age.unsigned_abs() <= LEASE_DURATION.as_secs());
        Ok(spec.holder_identity.filter(|holder| is_live && !holder.is_empty()))
    }

    fn object(&self, rotation: &str, name: String, content: &impl Serialize) -> Result<ConfigMap, RecordError> {
        let text = serde_json::to_string(content).map_err(|_never| RecordError::Unreadable { object: name.clone() })?;
        let metadata = ObjectMeta {
            name: Some(name),
            namespace: Some(self.namespace.clone()),
            labels: Some([(names::LABEL_ROTATION.to_owned(), rotation.to_owned())].into()),
            ..ObjectMeta::default()
        };
        Ok(ConfigMap { metadata, data: Some([(KEY.to_owned(), text)].into()), ..ConfigMap::default() })
    }
}

// === impl State ===

impl State {
    /// Fails if the rotation is done or aborted.
    pub fn check_not_over(&self, name: &str) -> Result<(), RecordError> {
        match self.phase {
            phase @ (Phase::Done | Phase::Aborted) => Err(RecordError::Over { name: name.to_owned(), phase }),
            Phase::Running | Phase::Paused | Phase::Stopped => Ok(()),
        }
    }

    /// Fails if the rotation is done or aborted, or is to be aborted.
    pub fn check_unfinished(&self, name: &str) -> Result<(), RecordError> {
        self.check_not_over(name)?;
        if self.request == Some(Request::Abort) { Err(RecordError::Aborting(name.to_owned())) } else { Ok(()) }
    }
}

fn with_hint(error: &KubernetesError) -> String {
    error.hint().map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}"))
}

fn parse<T: DeserializeOwned>(object: &ConfigMap) -> Result<T, RecordError> {
    let text = object.data.as_ref().and_then(|data| data.get(KEY));
    let parsed = text.and_then(|text| serde_json::from_str(text).ok());
    let name = object.metadata.name.clone().unwrap_or_default();
    parsed.ok_or(RecordError::Unreadable { object: format!("configmap {name}") })
}

/// The name of a rotation's state and of its Lease.
pub fn state_name(rotation: &str) -> String {
    format!("{}{rotation}", names::ROTATION_PREFIX)
}

/// The name of a rotation's plan. A rotation's name has no dot, so that no state has this name.
fn plan_name(rotation: &str) -> String {
    format!("{}{rotation}.plan", names::ROTATION_PREFIX)
}
