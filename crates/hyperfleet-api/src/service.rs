//! The operations of the API, from a checked request to the stored result. Knows nothing of HTTP.

mod create;
mod delete;
mod evaluate;
mod failure;
mod group;
mod lost;
mod mapped;
mod operation;
mod read;
mod report;
mod restore;
#[cfg(test)]
mod tests;
mod together;
mod tombstones;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use daemon::traces;
use database::sealed::Keyring;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::authorization::SYSTEM_IDENTITY;
use crate::authorization::{Identity, Permissions, Scope};
use crate::decide::aggregate::aggregate;
use crate::decide::change::RequestInfo;
use crate::decide::mapped::MappedCondition;
use crate::decide::transitions;
use crate::entity::{Descriptor, Registry};
use crate::live::Live;
use crate::mapping::{Evaluator, Mapper};
use crate::resource::Resource;
use crate::spec_schema::SpecSchemas;
use crate::store::{Committed, Lock, Object, Prepared, Store, Stored, Write};
use crate::tenancy::{Reach, Tenancy};

use group::Group;
use mapped::MappedFacts;
use operation::{Creating, Reporting};

pub use failure::{Failure, PullSecretError};
pub use operation::Reported;

/// Maximum number of attempts of a transaction that conflicts with others.
const MAX_ATTEMPTS: usize = 8;
/// Maximum number of evaluations of mapped conditions for one operation. Each further one follows from a write of another
/// caller, so this is also the number of concurrent writers of one resource that all succeed.
const MAX_EVALUATIONS: usize = 32;

/// The API without HTTP. Clones share everything.
#[derive(Clone, Debug)]
pub struct Service {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    store: Store,
    registry: Registry,
    evaluator: Evaluator,
    schemas: SpecSchemas,
    keyring: Live<Option<Arc<Keyring>>>,
    creations: Group<Creating, Resource>,
    reports: Group<Reporting, Reported>,
}

/// The caller of an operation.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The identity; its subject is recorded with changes.
    pub identity: Identity,
    /// Its permissions.
    pub permissions: Permissions,
    /// The tenancy of the resources that it creates.
    pub tenancy: Tenancy,
    /// The resources that it reaches.
    pub reach: Reach,
}

/// The address of a resource in a request's path.
#[derive(Clone, Copy, Debug)]
pub struct Address<'a> {
    /// The kind that the path names; `None` is any kind.
    pub descriptor: Option<&'a Descriptor>,
    /// The owner that the path names, if it names one.
    pub owner_id: Option<&'a str>,
    /// The resource's id.
    pub id: &'a str,
}

// === impl Service ===

impl Service {
    /// Returns a service on that store. Fails if a condition mapping of the registry is wrong.
    pub fn new(
        store: Store,
        registry: Registry,
        schemas: SpecSchemas,
        keyring: Option<Keyring>,
    ) -> Result<Self, String> {
        let evaluator = Evaluator::start(mappers(&registry)?)?;
        let keyring = Live::new(keyring.map(Arc::new));
        let (creations, reports) = (Group::default(), Group::default());
        Ok(Self { parts: Arc::new(Parts { store, registry, evaluator, schemas, keyring, creations, reports }) })
    }

    /// Returns the kinds that are served.
    pub fn registry(&self) -> &Registry {
        &self.parts.registry
    }

    /// Returns the encryption keys.
    pub fn keyring(&self) -> Option<Arc<Keyring>> {
        self.parts.keyring.get()
    }

    /// Replaces the encryption keys.
    pub fn set_keyring(&self, keyring: Option<Arc<Keyring>>) {
        self.parts.keyring.set(keyring);
    }

    /// Returns a receiver that is notified when the encryption keys are replaced.
    pub fn keyring_changes(&self) -> watch::Receiver<Option<Arc<Keyring>>> {
        self.parts.keyring.subscribe()
    }

    /// Returns the store.
    pub fn store(&self) -> &Store {
        &self.parts.store
    }

    /// Returns the descriptor of a stored resource. A kind that is no longer configured is not served.
    fn descriptor(&self, resource: &Resource) -> Result<&Descriptor, Failure> {
        let missing = || Failure::NotFound { kind: resource.kind.clone(), id: resource.id.clone() };
        self.registry().kind(&resource.kind).ok_or_else(missing)
    }

    /// Computes a resource's conditions after a change of its desired state. A mapping that cannot be evaluated is the
    /// configuration's fault, not the caller's: its conditions are left out.
    fn conclude(
        &self,
        resource: &mut Resource,
        has_active_children: bool,
        mapped: &MappedFacts,
        at: Timestamp,
    ) -> Result<(), Failure> {
        match self.conclude_strictly(resource, has_active_children, mapped, at) {
            Err(Failure::Mapping(error)) => {
                let (kind, id) = (&resource.kind, &resource.id);
                tracing::warn!(
                    operation = "map-conditions",
                    kind,
                    id,
                    cause = error.to_string(),
                    "left out the mapped conditions"
                );
                let adapters = &self.descriptor(resource)?.required_adapters;
                resource.state.conditions = aggregate(adapters, resource, has_active_children, &[], at);
                Ok(())
            }
            concluded => concluded,
        }
    }

    /// Computes a resource's conditions; fails if a mapping cannot be evaluated, or was evaluated on another state.
    fn conclude_strictly(
        &self,
        resource: &mut Resource,
        has_active_children: bool,
        mapped: &MappedFacts,
        at: Timestamp,
    ) -> Result<(), Failure> {
        let mapped: &[MappedCondition] = if self.parts.evaluator.maps(&resource.kind) {
            mapped.of(resource)?.as_ref().map_err(Clone::clone)?
        } else {
            &[]
        };
        let adapters = &self.descriptor(resource)?.required_adapters;
        resource.state.conditions = aggregate(adapters, resource, has_active_children, mapped, at);
        Ok(())
    }

    /// Commits a write if its work is done, else undoes it.
    async fn finish<T>(&self, write: Write, done: Result<T, Failure>) -> Result<T, Failure> {
        match done {
            Ok(done) => self.commit(write).await.map(|()| done),
            // Its locks must be released before the evaluation begins.
            Err(Failure::Unevaluated(resources)) => {
                write.roll_back().await?;
                Err(Failure::Unevaluated(resources))
            }
            failed => failed,
        }
    }

    /// Commits a write, and then notifies the readers of the change stream.
    async fn commit(&self, write: Write) -> Result<(), Failure> {
        self.commit_prepared(write.prepare().await?, false).await.map(drop)
    }

    /// Commits a prepared write, and then notifies the readers of the change stream. With `again` it may begin the next write,
    /// which it returns.
    async fn commit_prepared(&self, prepared: Prepared, again: bool) -> Result<Option<Write>, Failure> {
        let Committed { version, next } = if again {
            prepared.commit_and_begin(self.store().database()).await?
        } else {
            Committed { version: prepared.commit().await?, next: None }
        };
        if let Some(version) = version {
            self.store().announce(version);
        }
        Ok(next)
    }
}

/// Compiles the condition mappings of all kinds that have any.
fn mappers(registry: &Registry) -> Result<BTreeMap<String, Mapper>, String> {
    let mapped = registry.descriptors().iter().enumerate().filter(|(_, descriptor)| !descriptor.conditions.is_empty());
    let mappers = mapped.map(|(index, descriptor)| {
        let mapper = Mapper::compile(&descriptor.conditions);
        mapper.map(|mapper| (descriptor.kind.clone(), mapper)).map_err(|error| format!("entities[{index}].{error}"))
    });
    mappers.collect()
}

/// Stores a changed resource with the transitions of its conditions.
fn save(write: &mut Write, before: &Stored, after: Stored, at: Timestamp) {
    let transitions = transitions::of_conditions(Some(&before.resource), &after.resource);
    write.save(before, after, transitions, at);
}

/// Locks and returns the resource within reach at an address.
async fn lock(write: &mut Write, address: &Address<'_>, lock: Lock, reach: &Reach) -> Result<Stored, Failure> {
    let found = write.lock(address.id, lock, reach).await?.filter(|stored| address.fits(&stored.resource));
    found.ok_or_else(|| address.not_found())
}

/// Waits with jitter, longer after each attempt, so that transactions do not conflict again.
async fn pause(attempts: usize) {
    let longest = Duration::from_millis(10).saturating_mul(u32::try_from(attempts).unwrap_or(u32::MAX));
    tokio::time::sleep(longest.mul_f64(rand::random())).await;
}

/// Repeats an attempt of a transaction from its beginning when it conflicts with another one.
///
/// Conditions are mapped between the attempts, when no lock is held: work that needs them for a state on which they were
/// not evaluated fails with [`Failure::Unevaluated`], is rolled back, and begins again with the result.
macro_rules! attempt {
    ($service:expr, $mapped:ident = $facts:expr, $attempt:expr) => {{
        let (mut attempts, mut evaluations) = (0, 0);
        let mut $mapped = $facts;
        loop {
            let done: Result<_, Failure> = $attempt;
            match done {
                Err(Failure::Store(error)) if error.is_contended() && attempts + 1 < super::MAX_ATTEMPTS => {
                    attempts += 1;
                    super::pause(attempts).await;
                }
                Err(Failure::Unevaluated(resources)) if evaluations < super::MAX_EVALUATIONS => {
                    evaluations += 1;
                    $mapped.update($service.evaluate(resources).await);
                }
                done => break done,
            }
        }
    }};
}
use attempt;

/// Carries out a transaction as often as [`attempt`] repeats it.
macro_rules! transact {
    ($service:expr, $mapped:ident = $facts:expr, $write:ident => $work:expr) => {
        super::attempt!($service, $mapped = $facts, {
            async {
                let mut $write = $service.store().write().await?;
                let done: Result<_, Failure> = async { Ok($work) }.await;
                $service.finish($write, done).await
            }
            .await
        })
    };
}
use transact;

// === impl Address ===

impl Address<'_> {
    fn fits(&self, resource: &Resource) -> bool {
        self.descriptor.is_none_or(|descriptor| descriptor.kind == resource.kind)
            && self.owner_id.is_none_or(|id| resource.owner.as_ref().is_some_and(|owner| owner.id == id))
    }

    fn fits_object(&self, object: &Object) -> bool {
        self.descriptor.is_none_or(|descriptor| descriptor.kind == object.kind)
            && self.owner_id.is_none_or(|id| object.owner_id.as_deref() == Some(id))
    }

    fn not_found(&self) -> Failure {
        Failure::NotFound { kind: self.kind().to_owned(), id: self.id.to_owned() }
    }

    fn kind(&self) -> &str {
        self.descriptor.map_or("Resource", |descriptor| &descriptor.kind)
    }
}

// === impl RequestInfo ===

impl RequestInfo {
    /// Returns the information of an act of the operator, from the command line, at that time.
    pub fn of_operator(now: Timestamp) -> Self {
        let identity = Identity { subject: SYSTEM_IDENTITY.to_owned(), ..Identity::default() };
        let permissions = Permissions::unauthenticated(false);
        Self::now(&Caller { identity, permissions, reach: Reach::Unlimited, ..Caller::default() }, Scope::Every, now)
    }

    /// Returns the information of a request of that caller about those kinds at that time.
    pub fn now(caller: &Caller, scope: Scope<'_>, now: Timestamp) -> Self {
        // The store keeps microseconds, and the answer must equal the stored resource.
        let time = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        Self {
            caller: caller.identity.subject.clone(),
            tenancy: caller.tenancy.clone(),
            reach: caller.reach.clone(),
            time,
            pull_secrets: caller.permissions.pull_secrets(scope),
            trace: traces::current(),
        }
    }
}
