//! The operations of the API, from a checked request to the stored result. Knows nothing of HTTP.

mod delete;
mod read;
mod report;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::decide::aggregate::aggregate;
use crate::decide::change::{ChangeError, RequestInfo};
use crate::decide::deletion::DeletionError;
use crate::decide::mapping::{Mapper, MappingError};
use crate::decide::report::ReportError;
use crate::decide::rules::RuleError;
use crate::decide::transitions;
use crate::entity::{Descriptor, Registry};
use crate::excerpt::excerpt;
use crate::render;
use crate::resource::Resource;
use crate::sealed::{Keyring, Refused, Unopened};
use crate::spec_schema::{SpecError, SpecSchemas};
use crate::store::{Change, ChangeKind, Lock, Object, Store, StoreError, Stored, Write};

pub use report::Reported;

/// How often a transaction that met another one is begun again.
const MOST_ATTEMPTS: usize = 8;

/// The API, apart from HTTP. Clones share everything.
#[derive(Clone, Debug)]
pub struct Service {
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    store: Store,
    registry: Registry,
    mappers: BTreeMap<String, Mapper>,
    schemas: SpecSchemas,
    keyring: Option<Keyring>,
}

/// Who calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Whose name is written to what is changed.
    pub identity: String,
    /// Whose resources it creates, by tenancy dimension.
    pub tenancy: BTreeMap<String, String>,
    /// Whether it may read pull secrets.
    pub reads_pull_secrets: bool,
}

/// An operation that was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No such resource exists.
    #[error("{kind} with id='{}' not found", excerpt(.id))]
    NotFound {
        /// The kind that the address names.
        kind: String,
        /// The id that the address names.
        id: String,
    },
    /// The resource to delete does not exist.
    #[error("{kind} not found")]
    Absent {
        /// The kind that the address names.
        kind: String,
    },
    /// A creation or a change is not allowed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// A name, labels or references break a rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A report breaks a rule.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A deletion is not allowed.
    #[error(transparent)]
    Deletion(#[from] DeletionError),
    /// The spec does not match its schema.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The inline pull secret cannot be stored or returned.
    #[error(transparent)]
    PullSecret(#[from] PullSecretError),
    /// Another resource has the id.
    #[error("the id '{id}' is already in use")]
    IdTaken {
        /// The id.
        id: String,
    },
    /// Another resource has the name.
    #[error("This {kind} already exists")]
    NameTaken {
        /// The kind.
        kind: String,
    },
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A condition mapping of the configuration cannot be evaluated on the reports.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// A defect: a deletion without a resource.
    #[error("an empty tree was deleted")]
    EmptyTree,
}

/// An inline pull secret that cannot be stored or returned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PullSecretError {
    /// The caller may not read pull secrets.
    #[error("reading a pull secret needs an identity that is configured in pull_secret.readers")]
    Forbidden,
    /// The server has no key to encrypt with.
    #[error(
        "inline pull secrets are not taken, as this server has no key to encrypt them with (pull_secret.keys); use \
         spec.pullSecret.secretRef"
    )]
    NoKey,
    /// The document is not a pull secret.
    #[error(transparent)]
    Invalid(#[from] Refused),
    /// The request has the redacted placeholder, but no pull secret is stored.
    #[error("is the mark of a stored pull secret, but none is stored: give the pull secret itself")]
    NothingToKeep,
    /// Encryption failed.
    #[error("the pull secret could not be encrypted")]
    NotEncrypted,
    /// The stored pull secret cannot be decrypted.
    #[error("the pull secret cannot be opened: {0}")]
    NotOpened(#[from] Unopened),
    /// A pull secret is stored, but the server has no keys any more.
    #[error("the pull secret cannot be opened: no key is configured (pull_secret.keys)")]
    KeyMissing,
}

/// A resource that was asked for by its path.
#[derive(Clone, Debug)]
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
    /// A service on that store. Fails with what is wrong with the registry's condition mappings.
    pub fn new(
        store: Store,
        registry: Registry,
        schemas: SpecSchemas,
        keyring: Option<Keyring>,
    ) -> Result<Self, String> {
        let mappers = registry.descriptors().iter().filter(|descriptor| !descriptor.conditions.is_empty());
        let mappers = mappers.map(|descriptor| {
            let mapper = Mapper::compile(&descriptor.conditions);
            mapper
                .map(|mapper| (descriptor.kind.clone(), mapper))
                .map_err(|fault| format!("{}: {fault}", descriptor.kind))
        });
        let mappers = mappers.collect::<Result<_, _>>()?;
        Ok(Self { parts: Arc::new(Parts { store, registry, mappers, schemas, keyring }) })
    }

    /// The kinds that are served.
    pub fn registry(&self) -> &Registry {
        &self.parts.registry
    }

    /// Where everything rests.
    pub fn store(&self) -> &Store {
        &self.parts.store
    }

    /// The descriptor of a stored resource. A kind that is no longer configured has none and is not served.
    fn descriptor(&self, resource: &Resource) -> Result<&Descriptor, Failure> {
        let missing = || Failure::NotFound { kind: resource.kind.clone(), id: resource.id.clone() };
        self.registry().kind(&resource.kind).ok_or_else(missing)
    }

    /// Draws the conclusions from a resource's reports after a change of what is wanted. A mapping that cannot be evaluated
    /// is the configuration's fault, not that of whoever changes something: its condition is left out.
    fn conclude(&self, resource: &mut Resource, has_active_children: bool) -> Result<(), Failure> {
        match self.conclude_strictly(resource, has_active_children) {
            Err(Failure::Mapping(error)) => {
                let (kind, id) = (&resource.kind, &resource.id);
                tracing::warn!(
                    operation = "map-conditions",
                    kind,
                    id,
                    cause = error.to_string(),
                    "left out a condition"
                );
                let adapters = &self.descriptor(resource)?.required_adapters;
                resource.state.conditions =
                    aggregate(adapters, resource, has_active_children, None).map_err(Failure::Mapping)?;
                Ok(())
            }
            concluded => concluded,
        }
    }

    /// Draws the conclusions from a resource's reports; fails where a mapping cannot be evaluated.
    fn conclude_strictly(&self, resource: &mut Resource, has_active_children: bool) -> Result<(), Failure> {
        let adapters = &self.descriptor(resource)?.required_adapters;
        let mapper = self.parts.mappers.get(&resource.kind);
        resource.state.conditions =
            aggregate(adapters, resource, has_active_children, mapper).map_err(Failure::Mapping)?;
        Ok(())
    }

    /// Stores what has become of a resource, and lets everybody know.
    async fn save(&self, write: &mut Write, before: &Resource, after: &Stored, at: Timestamp) -> Result<(), Failure> {
        write.update(before, after).await?;
        write.add_transitions(&after.resource.id, &transitions::of_conclusions(Some(before), &after.resource)).await?;
        write.tell(change(ChangeKind::Modified, &after.resource, at));
        Ok(())
    }

    /// Makes a write last, and only then lets readers of the change stream know.
    async fn commit(&self, write: Write) -> Result<(), Failure> {
        if let Some(version) = write.commit().await? {
            self.store().announce(version);
        }
        Ok(())
    }
}

/// What readers of the change stream are told.
fn change(kind: ChangeKind, resource: &Resource, time: Timestamp) -> Change {
    Change {
        kind,
        resource_kind: resource.kind.clone(),
        resource_id: resource.id.clone(),
        time,
        object: render::text(resource),
    }
}

/// The resource under that address, locked for a write.
async fn lock(write: &mut Write, address: &Address<'_>, lock: Lock) -> Result<Stored, Failure> {
    let found = write.lock(address.id, lock).await?.filter(|stored| address.fits(&stored.resource));
    found.ok_or_else(|| address.not_found())
}

/// Waits a moment, longer each time and never quite the same: whoever was in the way must not be met again.
async fn pause(attempts: usize) {
    let longest = Duration::from_millis(10).saturating_mul(u32::try_from(attempts).unwrap_or(u32::MAX));
    tokio::time::sleep(longest.mul_f64(rand::random())).await;
}

/// Carries out a transaction; again from its beginning when it met another one.
macro_rules! transact {
    ($service:expr, $write:ident => $work:expr) => {{
        let mut attempts = 0;
        loop {
            attempts += 1;
            let done: Result<_, Failure> = async {
                let mut $write = $service.store().write().await?;
                let done = $work;
                $service.commit($write).await?;
                Ok(done)
            }
            .await;
            match done {
                Err(Failure::Store(error)) if error.is_contended() && attempts < MOST_ATTEMPTS => {
                    super::pause(attempts).await;
                }
                done => break done,
            }
        }
    }};
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
    /// Returns the information of a request of that caller at that time.
    pub fn now(caller: &Caller, now: Timestamp) -> Self {
        // The store keeps microseconds; what is answered must be what is stored.
        let time = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        Self { caller: caller.identity.clone(), tenancy: caller.tenancy.clone(), time }
    }
}
