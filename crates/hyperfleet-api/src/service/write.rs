//! Changes the desired state of resources.

use std::collections::BTreeMap;

use fleet_model::Generation;
use serde_json::{Map, Value};

use super::mapped::MappedFacts;
use super::{Address, Failure, PullSecretError, Service, lock, save, transact};
use crate::decide::body::{Patch, References};
use crate::decide::change::{self, Patched, Replacement, RequestInfo};
use crate::decide::destination::{self, Content};
use crate::decide::misplaced;
use crate::decide::rules::{self, RuleError, TargetState};
use crate::entity::Descriptor;
use crate::render;
use crate::resource::{Resource, Target};
use crate::sealed::{self, Binding, Document, PullSecretInput};
use crate::store::{Lock, Stored, Write};
use crate::tenancy::Reach;

/// The pull secret after a PATCH.
struct Kept {
    /// The encrypted content, if there is any.
    sealed: Option<String>,
    /// True if the request gave content that is not known to be the stored one.
    is_new: bool,
}

impl Service {
    /// Changes the desired state of a resource. `expected` is the generation that the caller expects, if it names one.
    pub async fn patch(
        &self,
        address: &Address<'_>,
        patch: Patch,
        expected: Option<Generation>,
        request: &RequestInfo,
    ) -> Result<Resource, Failure> {
        change::check_patch(&patch)?;
        let Patch { spec: given, labels, references } = patch;
        given.as_ref().map_or(Ok(()), misplaced::check)?;
        let mut spec = given.clone();
        let input = spec.as_mut().map(sealed::take).transpose().map_err(PullSecretError::from)?;
        transact!(self, mapped = MappedFacts::default(), write => {
            let before = lock(&mut write, address, Lock::Change, &request.reach).await?;
            let descriptor = self.descriptor(&before.resource)?;
            change::check_changeable(&before.resource, expected)?;
            self.parts.schemas.check(&descriptor.kind, given.as_ref())?;
            let mut spec = spec.clone();
            let Kept { sealed, is_new } = self.keep_or_seal(&before, input.as_ref(), spec.as_mut(), request)?;
            let reach = request.reach.of_resource(&before.resource.state.tenancy);
            let references = match &references {
                Some(given) => Some(self.resolve(&mut write, given, descriptor, &reach).await?),
                None => None,
            };
            let replacement = Replacement { spec, labels: labels.clone(), references, replaces_pull_secret: is_new };
            match change::patch(&before.resource, replacement, request) {
                Patched::Unchanged => {
                    if sealed != before.sealed {
                        let resource = before.resource.clone();
                        write.update(&before, Stored { resource, sealed });
                    }
                    before.resource
                }
                Patched::Changed(mut resource) => {
                    self.conclude(&mut resource, true, &mapped, request.time)?;
                    let after = Stored { resource: *resource, sealed };
                    save(&mut write, &before, after.clone(), request.time);
                    after.resource
                }
            }
        })
    }

    /// Locks and returns the targets of references, so that their deletion cannot begin meanwhile.
    pub(super) async fn resolve(
        &self,
        write: &mut Write,
        given: &References,
        descriptor: &Descriptor,
        reach: &Reach,
    ) -> Result<BTreeMap<String, Vec<Target>>, Failure> {
        let mut references: BTreeMap<String, Vec<Target>> = BTreeMap::new();
        for pending in rules::references(given, descriptor).map_err(RuleError::from)? {
            let found = write.lock(&pending.id, Lock::Attach, reach).await?;
            let found = found.filter(|stored| stored.resource.kind == pending.kind);
            let state = match found {
                None => TargetState::Missing,
                Some(stored) if stored.resource.is_terminating() => TargetState::Terminating,
                Some(stored) => TargetState::Active(render::target(&stored.resource)),
            };
            let target = rules::target(&pending, state, descriptor).map_err(RuleError::from)?;
            references.entry(pending.ref_type).or_default().push(target);
        }
        Ok(references)
    }

    /// Returns the encrypted pull secret after a PATCH, and puts its placeholder into the new spec.
    fn keep_or_seal(
        &self,
        before: &Stored,
        input: Option<&PullSecretInput>,
        spec: Option<&mut Map<String, Value>>,
        request: &RequestInfo,
    ) -> Result<Kept, Failure> {
        let (old, rights) = (Binding::of(&before.resource), request.pull_secrets);
        let (Some(input), Some(spec)) = (input, spec) else {
            let sealed = before.sealed.as_ref().map(|sealed| self.keep(&old, sealed, &old)).transpose()?;
            return Ok(Kept { sealed, is_new: false });
        };
        let placeholder = before.resource.spec.get("pullSecret").and_then(|secret| secret.get("data"));
        let stored = before.sealed.as_ref().zip(placeholder);
        // A caller that may not read the content must not learn that it has guessed it.
        let is_stored = |document: &Document, placeholder: &Value| {
            rights.reads && self.placeholder(document).as_ref() == Some(placeholder)
        };
        let is_kept = match (input, stored) {
            (PullSecretInput::Placeholder, None) => return Err(PullSecretError::NothingToKeep.into()),
            (PullSecretInput::Placeholder, Some(_)) => true,
            (PullSecretInput::New(document), Some((_, placeholder))) => is_stored(document, placeholder),
            _ => false,
        };
        let gives = matches!(input, PullSecretInput::New(_)) || !is_kept;
        if !rights.chooses_destination {
            let content = if gives { Content::GivenOrNone } else { Content::Kept };
            destination::check(Some(&before.resource.spec), spec, content).map_err(PullSecretError::from)?;
        }
        let new = Binding::new(&before.resource.id, before.resource.created_time, spec);
        match (input, stored) {
            (_, Some((sealed, placeholder))) if is_kept => {
                sealed::put(spec, placeholder.clone());
                Ok(Kept { sealed: Some(self.keep(&old, sealed, &new)?), is_new: false })
            }
            (PullSecretInput::New(document), _) => {
                let sealed = self.seal(&new, document)?;
                sealed::put(spec, sealed.placeholder);
                Ok(Kept { sealed: Some(sealed.text), is_new: true })
            }
            _ => Ok(Kept { sealed: None, is_new: false }),
        }
    }

    /// Returns stored content for its new binding. It is sealed anew if that differs, or if its key is not the first.
    fn keep(&self, old: &Binding, sealed: &str, new: &Binding) -> Result<String, Failure> {
        let Some(keyring) = self.keyring() else {
            let unchanged = (old == new).then(|| sealed.to_owned());
            return Ok(unchanged.ok_or(PullSecretError::KeyMissing)?);
        };
        if old == new && keyring.is_current(sealed) {
            return Ok(sealed.to_owned());
        }
        match old.reseal(&keyring, sealed, new) {
            // What cannot be opened now stays as it is; reading it says why.
            Err(_unopened) if old == new => Ok(sealed.to_owned()),
            resealed => Ok(resealed.map_err(PullSecretError::from)?),
        }
    }

    fn placeholder(&self, document: &Document) -> Option<Value> {
        self.keyring().map(|keyring| document.placeholder(&keyring))
    }

    pub(super) fn seal(&self, binding: &Binding, document: &Document) -> Result<sealed::Sealed, Failure> {
        let keyring = self.keyring().ok_or(PullSecretError::NoKey)?;
        Ok(binding.seal(&keyring, document).ok_or(PullSecretError::NotEncrypted)?)
    }
}
