//! A store in memory whose calls are recorded, fail, or never end.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use secret_store::{
    Capabilities, ErrorKind, ListedSecrets, Metadata, NewSecret, NewVersion, Operation, Permission, Permissions,
    RecordingMemoryStore, Replication, Secret, SecretId, SecretStore, StoreError, Version, VersionNumber,
    VersionSummary,
};

/// Effect of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The calls from that one on fail.
    Fails(ErrorKind),
    /// That call is done, and its answer lost.
    Loses,
    /// That call is done and never answered.
    HangsAfter,
    /// That call is never done.
    HangsBefore,
}

/// A fault in the call of this number, from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) call: usize,
    pub(super) effect: Effect,
}

/// A store; its clones are the same one.
#[derive(Clone)]
pub(super) struct Double {
    pub(super) name: &'static str,
    pub(super) memory: Arc<RecordingMemoryStore>,
    pub(super) limit: usize,
    /// The calls of this store and of the other one.
    pub(super) calls: Arc<Mutex<Vec<String>>>,
    pub(super) fault: Arc<Mutex<Option<Fault>>>,
    /// The replications of the secrets that were created.
    pub(super) replications: Arc<Mutex<Vec<Replication>>>,
}

impl Double {
    pub(super) fn new(name: &'static str, calls: &Arc<Mutex<Vec<String>>>) -> Self {
        let (memory, fault) = (Arc::new(RecordingMemoryStore::new()), Arc::default());
        Self { name, memory, limit: 64 * 1024, calls: Arc::clone(calls), fault, replications: Arc::default() }
    }

    /// Number of calls so far.
    pub(super) fn count(&self) -> usize {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|call| call.starts_with(self.name)).count()
    }

    async fn call<T>(
        &self,
        operation: Operation,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        self.calls.lock().unwrap().push(format!("{} {operation:?}", self.name));
        let (call, fault) = (self.count(), *self.fault.lock().unwrap());
        let error = |kind| StoreError::new(operation, self.name, kind);
        match fault.filter(|fault| fault.call <= call) {
            Some(Fault { effect: Effect::Fails(kind), .. }) => return Err(error(kind)),
            Some(Fault { effect: Effect::HangsBefore, .. }) => std::future::pending().await,
            _ => {}
        }
        let answer = answer.await;
        match fault.filter(|fault| fault.call == call).map(|fault| fault.effect) {
            Some(Effect::Loses) => Err(error(ErrorKind::Unavailable)),
            Some(Effect::HangsAfter) => std::future::pending().await,
            _ => answer,
        }
    }
}

impl SecretStore for Double {
    fn capabilities(&self) -> Capabilities {
        Capabilities { max_content_bytes: self.limit, ..self.memory.capabilities() }
    }

    fn path(&self, secret: &SecretId) -> String {
        format!("{}/{secret}", self.name)
    }

    fn latest_path(&self, secret: &SecretId) -> String {
        self.path(secret)
    }

    fn permission_name(&self, permission: Permission) -> &'static str {
        self.memory.permission_name(permission)
    }

    async fn find(&self, secret: &SecretId) -> Result<Option<Secret>, StoreError> {
        self.call(Operation::Find, self.memory.find(secret)).await
    }

    async fn list(&self, labels: &[(&str, &str)], page: Option<&str>) -> Result<ListedSecrets, StoreError> {
        self.call(Operation::List, self.memory.list(labels, page)).await
    }

    async fn create(&self, secret: &SecretId, new: &NewSecret) -> Result<(), StoreError> {
        self.replications.lock().unwrap().push(new.replication.clone());
        self.call(Operation::Create, self.memory.create(secret, new)).await
    }

    async fn update(&self, secret: &SecretId, metadata: &Metadata) -> Result<String, StoreError> {
        self.call(Operation::Update, self.memory.update(secret, metadata)).await
    }

    async fn delete(&self, secret: &SecretId, etag: &str) -> Result<bool, StoreError> {
        self.call(Operation::Delete, self.memory.delete(secret, etag)).await
    }

    async fn add_version(&self, secret: &SecretId, new: &NewVersion<'_>) -> Result<VersionNumber, StoreError> {
        self.call(Operation::AddVersion, self.memory.add_version(secret, new)).await
    }

    async fn read_version(&self, secret: &SecretId, number: VersionNumber) -> Result<Version, StoreError> {
        self.call(Operation::ReadVersion, self.memory.read_version(secret, number)).await
    }

    async fn newest_version(&self, secret: &SecretId) -> Result<Option<VersionSummary>, StoreError> {
        self.call(Operation::FindVersion, self.memory.newest_version(secret)).await
    }

    async fn list_versions(&self, secret: &SecretId) -> Result<Vec<VersionSummary>, StoreError> {
        self.call(Operation::ListVersions, self.memory.list_versions(secret)).await
    }

    async fn destroy_version(&self, secret: &SecretId, number: VersionNumber) -> Result<(), StoreError> {
        self.call(Operation::DestroyVersion, self.memory.destroy_version(secret, number)).await
    }

    async fn permissions(&self, secret: &SecretId, wanted: &BTreeSet<Permission>) -> Result<Permissions, StoreError> {
        self.call(Operation::CheckPermissions, self.memory.permissions(secret, wanted)).await
    }
}
