//! Creates and changes resources.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::mapped::MappedFacts;
use super::{Address, Failure, MAX_ATTEMPTS, MAX_EVALUATIONS, PullSecretError, Service, lock, transact};
use crate::decide::body::{Creation, Patch, References};
use crate::decide::change::{self, ChangeError, Patched, Relations, Replacement, RequestInfo};
use crate::decide::rules::{self, RuleError, TargetState};
use crate::decide::transitions;
use crate::entity::Descriptor;
use crate::render;
use crate::resource::{Resource, Target};
use crate::sealed::{self, Content, Wanted};
use crate::store::{ChangeKind, Lock, StoreError, Stored, Write};

impl Service {
    /// Creates a resource, below an owner if its kind has a parent.
    pub async fn create(
        &self,
        descriptor: &Descriptor,
        owner_id: Option<&str>,
        mut body: Creation,
        request: &RequestInfo,
    ) -> Result<Resource, Failure> {
        change::check_creation(&body, descriptor)?;
        self.parts.schemas.check(&descriptor.kind, body.spec.as_ref())?;
        let sought = std::mem::take(&mut body.references);
        let id = body.id.take().unwrap_or_else(|| Uuid::now_v7().to_string());
        let wanted = body.spec.as_mut().map_or(Ok(Wanted::Absent), sealed::take).map_err(PullSecretError::from)?;
        let sealed = match wanted {
            Wanted::Absent => None,
            Wanted::Kept => return Err(PullSecretError::NothingToKeep.into()),
            Wanted::New(content) => Some(self.seal(&id, &content)?),
        };
        if let (Some(spec), Some(sealed)) = (body.spec.as_mut(), &sealed) {
            sealed::put(spec, sealed.mark.clone());
        }
        transact!(self, mapped = MappedFacts::default(), write => {
            let owner = match owner_id {
                Some(id) => Some(self.parent(&mut write, descriptor, id).await?),
                None => None,
            };
            let references = self.resolve(&mut write, &sought, descriptor).await?;
            let href = self.registry().href(&descriptor.kind, &id, owner_id);
            let relations = Relations { href, owner, references };
            let mut resource = change::create(body.clone(), id.clone(), relations, request);
            self.conclude(&mut resource, false, &mapped)?;
            let stored = Stored { resource, sealed: sealed.as_ref().map(|sealed| sealed.text.clone()) };
            write.insert(&stored).await.map_err(|error| taken(error, &stored.resource))?;
            let resource = stored.resource;
            write.add_transitions(&id, &transitions::of_conclusions(None, &resource)).await?;
            write.record(super::change(ChangeKind::Added, &resource, request.time));
            resource
        })
    }

    /// Changes what is wanted of a resource. `expected` is the generation that the caller has seen, if it says so.
    pub async fn patch(
        &self,
        address: &Address<'_>,
        patch: Patch,
        expected: Option<i64>,
        request: &RequestInfo,
    ) -> Result<Resource, Failure> {
        change::check_patch(&patch)?;
        let Patch { spec: given, labels, references } = patch;
        let mut spec = given.clone();
        let wanted = spec.as_mut().map(sealed::take).transpose().map_err(PullSecretError::from)?;
        transact!(self, mapped = MappedFacts::default(), write => {
            let before = lock(&mut write, address, Lock::Change).await?;
            let descriptor = self.descriptor(&before.resource)?;
            change::check_changeable(&before.resource, expected)?;
            self.parts.schemas.check(&descriptor.kind, given.as_ref())?;
            let mut spec = spec.clone();
            let sealed = self.keep_or_seal(&before, wanted.as_ref(), spec.as_mut())?;
            let references = match &references {
                Some(given) => Some(self.resolve(&mut write, given, descriptor).await?),
                None => None,
            };
            match change::patch(&before.resource, Replacement { spec, labels: labels.clone(), references }, request) {
                Patched::Unchanged => before.resource,
                Patched::Changed(mut resource) => {
                    self.conclude(&mut resource, true, &mapped)?;
                    let after = Stored { resource: *resource, sealed };
                    self.save(&mut write, &before.resource, &after, request.time).await?;
                    after.resource
                }
            }
        })
    }

    /// The parent of a new child, locked so that it cannot begin to go away meanwhile.
    async fn parent(&self, write: &mut Write, descriptor: &Descriptor, id: &str) -> Result<Target, Failure> {
        let kind = descriptor.parent_kind.as_deref().unwrap_or_default();
        let found = write.lock(id, Lock::Attach).await?.filter(|stored| stored.resource.kind == kind);
        let Some(Stored { resource, .. }) = found else {
            return Err(Failure::NotFound { kind: kind.to_owned(), id: id.to_owned() });
        };
        if resource.is_terminating() {
            return Err(ChangeError::Terminating { kind: kind.to_owned(), id: id.to_owned() }.into());
        }
        Ok(render::target(&resource))
    }

    /// The targets of references, locked so that they cannot begin to go away meanwhile.
    async fn resolve(
        &self,
        write: &mut Write,
        given: &References,
        descriptor: &Descriptor,
    ) -> Result<BTreeMap<String, Vec<Target>>, Failure> {
        let mut references: BTreeMap<String, Vec<Target>> = BTreeMap::new();
        for sought in rules::references(given, descriptor).map_err(RuleError::from)? {
            let found =
                write.lock(&sought.id, Lock::Attach).await?.filter(|stored| stored.resource.kind == sought.kind);
            let found = match found {
                None => TargetState::Missing,
                Some(stored) if stored.resource.is_terminating() => TargetState::Terminating,
                Some(stored) => TargetState::Active(render::target(&stored.resource)),
            };
            let target = rules::target(&sought, found, descriptor).map_err(RuleError::from)?;
            references.entry(sought.ref_type).or_default().push(target);
        }
        Ok(references)
    }

    /// The sealed pull secret after a PATCH; puts its mark into the new spec.
    fn keep_or_seal(
        &self,
        before: &Stored,
        wanted: Option<&Wanted>,
        spec: Option<&mut Map<String, Value>>,
    ) -> Result<Option<String>, Failure> {
        let (Some(wanted), Some(spec)) = (wanted, spec) else { return Ok(before.sealed.clone()) };
        let kept = before.resource.spec.get("pullSecret").and_then(|secret| secret.get("data"));
        match (wanted, &before.sealed, kept) {
            (Wanted::Absent, ..) => Ok(None),
            (Wanted::Kept, Some(sealed), Some(mark)) => {
                sealed::put(spec, mark.clone());
                Ok(Some(sealed.clone()))
            }
            (Wanted::Kept, ..) => Err(PullSecretError::NothingToKeep.into()),
            (Wanted::New(content), Some(sealed), Some(mark)) if self.mark(content).as_ref() == Some(mark) => {
                sealed::put(spec, mark.clone());
                Ok(Some(sealed.clone()))
            }
            (Wanted::New(content), ..) => {
                let sealed = self.seal(&before.resource.id, content)?;
                sealed::put(spec, sealed.mark);
                Ok(Some(sealed.text))
            }
        }
    }

    fn mark(&self, content: &Content) -> Option<Value> {
        self.parts.keyring.as_ref().map(|keyring| keyring.mark(content))
    }

    fn seal(&self, id: &str, content: &Content) -> Result<sealed::Sealed, Failure> {
        let keyring = self.parts.keyring.as_ref().ok_or(PullSecretError::NoKey)?;
        Ok(keyring.seal(id, content).ok_or(PullSecretError::NotEncrypted)?)
    }
}

fn taken(error: StoreError, resource: &Resource) -> Failure {
    match error {
        StoreError::Duplicate { id: true } => Failure::IdTaken { id: resource.id.clone() },
        StoreError::Duplicate { id: false } => Failure::NameTaken { kind: resource.kind.clone() },
        other => Failure::Store(other),
    }
}
