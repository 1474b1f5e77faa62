//! Creates resources.

use std::sync::Arc;

use uuid::Uuid;

use super::group::Group;
use super::mapped::MappedFacts;
use super::operation::{Creating, Given};
use super::together::{Operation, alone, perform};
use super::{Failure, PullSecretError, Service, attempt};
use crate::decide::body::Creation;
use crate::decide::change::{self, ChangeError, Relations, RequestInfo};
use crate::decide::destination::{self, Content};
use crate::decide::misplaced;
use crate::decide::transitions;
use crate::entity::Descriptor;
use crate::render;
use crate::resource::Resource;
use crate::sealed::{self, Binding, PullSecretInput};
use crate::store::{self, Lock, StoreError, Stored, Write};
use crate::tenancy::Reach;

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
        body.spec.as_ref().map_or(Ok(()), misplaced::check)?;
        self.parts.schemas.check(&descriptor.kind, body.spec.as_ref())?;
        let given = std::mem::take(&mut body.references);
        let id = body.id.take().unwrap_or_else(|| Uuid::now_v7().to_string());
        let input =
            body.spec.as_mut().map_or(Ok(PullSecretInput::Absent), sealed::take).map_err(PullSecretError::from)?;
        let sealed = match input {
            PullSecretInput::Absent => None,
            PullSecretInput::Placeholder => return Err(PullSecretError::NothingToKeep.into()),
            PullSecretInput::New(document) => {
                let spec = body.spec.clone().unwrap_or_default();
                Some(self.seal(&Binding::new(&id, request.time, &spec), &document)?)
            }
        };
        if let (Some(spec), false) = (&body.spec, request.pull_secrets.chooses_destination) {
            destination::check(None, spec, Content::GivenOrNone).map_err(PullSecretError::from)?;
        }
        if let (Some(spec), Some(sealed)) = (body.spec.as_mut(), &sealed) {
            sealed::put(spec, sealed.placeholder.clone());
        }
        let creation = Creation { id: Some(id.clone()), ..body };
        let is_independent = owner_id.is_none() && given.is_empty();
        let of = Arc::new(Given {
            id,
            owner_id: owner_id.map(str::to_owned),
            body: creation,
            references: given,
            sealed: sealed.map(|sealed| sealed.text),
            request: request.clone(),
        });
        let created = attempt!(self, mapped = MappedFacts::default(), {
            let operation = Creating { given: Arc::clone(&of), mapped: mapped.clone() };
            if is_independent { perform(self, operation).await } else { alone(self, &operation).await }
        });
        created.map_err(|failure| taken(failure, &of))
    }

    /// Locks and returns the parent of a new child, so that its deletion cannot begin meanwhile.
    async fn parent(
        &self,
        write: &mut Write,
        descriptor: &Descriptor,
        id: &str,
        reach: &Reach,
    ) -> Result<Resource, Failure> {
        let kind = descriptor.parent_kind.as_deref().unwrap_or_default();
        let found = write.lock(id, Lock::Attach, reach).await?.filter(|stored| stored.resource.kind == kind);
        let Some(Stored { resource, .. }) = found else {
            return Err(Failure::NotFound { kind: kind.to_owned(), id: id.to_owned() });
        };
        if resource.is_terminating() {
            return Err(ChangeError::Terminating { kind: kind.to_owned(), id: id.to_owned() }.into());
        }
        Ok(resource)
    }
}

// === impl Creating ===

impl Operation for Creating {
    type Done = Resource;

    fn group(service: &Service) -> &Group<Self, Resource> {
        &service.parts.creations
    }

    fn locks(&self) -> Option<(&str, &Reach)> {
        None
    }

    async fn perform(&self, service: &Service, write: &mut Write) -> Result<Resource, Failure> {
        let Given { id, owner_id, body, references, sealed, request } = &*self.given;
        let missing = || Failure::NotFound { kind: body.kind.clone(), id: id.clone() };
        let descriptor = service.registry().kind(&body.kind).ok_or_else(missing)?;
        let owner = match owner_id {
            Some(id) => Some(service.parent(write, descriptor, id, &request.reach).await?),
            None => None,
        };
        // A child belongs to the tenant of its parent.
        let tenancy = owner.as_ref().map_or(&request.tenancy, |owner| &owner.state.tenancy).clone();
        let references = service.resolve(write, references, descriptor, &request.reach.of_resource(&tenancy)).await?;
        let href = service.registry().href(&descriptor.kind, id, owner_id.as_deref());
        let relations = Relations { href, owner: owner.as_ref().map(render::target), references, tenancy };
        let mut resource = change::create(body.clone(), id.clone(), relations, request);
        service.conclude(&mut resource, false, &self.mapped, request.time)?;
        let transitions = transitions::of_conditions(None, &resource);
        write.insert(Stored { resource: resource.clone(), sealed: sealed.clone() }, transitions, request.time);
        Ok(resource)
    }
}

fn taken(failure: Failure, given: &Given) -> Failure {
    match failure {
        Failure::Store(StoreError::Duplicate { unique }) if store::is_id(&unique) => {
            Failure::IdTaken { id: given.id.clone() }
        }
        Failure::Store(StoreError::Duplicate { .. }) => Failure::NameTaken { kind: given.body.kind.clone() },
        other => other,
    }
}
