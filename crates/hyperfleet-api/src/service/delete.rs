//! Deletes resources with their children, and removes them by force.

use uuid::Uuid;

use super::mapped::MappedFacts;
use super::{Address, Failure, Service, lock, save, transact};
use crate::decide::change::RequestInfo;
use crate::decide::deletion::{self, Deletion};
use crate::decide::tombstone;
use crate::resource::Resource;
use crate::store::{Lock, Stored, Write};

impl Service {
    /// Requests a resource's deletion. A repeated request changes nothing, but removes what nothing has to clean up any more:
    /// a parent without adapters whose last child has gone. Returns the resource after it or, if it was removed, before it.
    pub async fn delete(&self, address: &Address<'_>, request: &RequestInfo) -> Result<Resource, Failure> {
        transact!(self, mapped = MappedFacts::default(), write => {
            let root = match lock(&mut write, address, Lock::Remove, &request.reach).await {
                Err(Failure::NotFound { kind, .. }) => return Err(Failure::Absent { kind }),
                root => root?,
            };
            self.delete_tree(&mut write, root, request, &mapped).await?
        })
    }

    /// Removes a terminating resource and all below it without waiting for adapters. Returns the ids of the removed
    /// resources below it. Each leaves a tombstone with the copies that its adapters have reported.
    pub async fn force_delete(
        &self,
        address: &Address<'_>,
        reason: &str,
        request: &RequestInfo,
    ) -> Result<Vec<String>, Failure> {
        transact!(self, _mapped = MappedFacts::default(), write => {
            let root = lock(&mut write, address, Lock::Remove, &request.reach).await?;
            deletion::check_force(&root.resource)?;
            let tree = tree(&mut write, root).await?;
            for stored in tree.iter().rev() {
                self.clear_references_to(&mut write, &stored.resource, &tree, request).await?;
                write.remove(&stored.resource, request.time).await?;
                let id = Uuid::now_v7().to_string();
                write.bury(&tombstone::bury(&stored.resource, id, reason, request)).await?;
            }
            tree.into_iter().skip(1).map(|stored| stored.resource.id).collect()
        })
    }

    /// Marks a resource and all below it for deletion, and removes those that no adapter has to clean up.
    async fn delete_tree(
        &self,
        write: &mut Write,
        root: Stored,
        request: &RequestInfo,
        mapped: &MappedFacts,
    ) -> Result<Resource, Failure> {
        let tree = tree(write, root).await?;
        self.check_tree(write, &tree).await?;
        let marked = self.mark_tree(tree, request, mapped)?;
        let deleted = marked.first().map(|(_, resource)| resource.clone());
        // Outgoing references first, so that nothing refers to a resource that is removed; then from the leaves upwards.
        let mut remaining: Vec<String> = Vec::new();
        let mut removed = Vec::new();
        for (before, resource) in marked.into_iter().rev() {
            let descriptor = self.descriptor(&resource)?;
            let children_remain = remaining.contains(&resource.id);
            let deletion = deletion::deletion(descriptor, children_remain);
            if deletion == Deletion::Finalize {
                remaining.extend(resource.owner.as_ref().map(|owner| owner.id.clone()));
            }
            if resource != before.resource {
                let after = Stored { resource: resource.clone(), sealed: before.sealed.clone() };
                if deletion == Deletion::Finalize {
                    save(write, &before, after, request.time);
                } else {
                    write.update(&before, after);
                }
            }
            if deletion == Deletion::Remove {
                removed.push(resource);
            }
        }
        for resource in removed {
            write.remove(&resource, request.time).await?;
        }
        deleted.ok_or(Failure::EmptyTree)
    }

    /// Marks all resources of a tree for deletion and computes their conditions.
    fn mark_tree(
        &self,
        tree: Vec<Stored>,
        request: &RequestInfo,
        mapped: &MappedFacts,
    ) -> Result<Vec<(Stored, Resource)>, Failure> {
        let (mut marked, mut unevaluated) = (Vec::new(), Vec::new());
        for before in tree {
            let mut resource = deletion::mark_for_deletion(&before.resource, request);
            if resource != before.resource {
                match self.conclude(&mut resource, false, mapped, request.time) {
                    Err(Failure::Unevaluated(resources)) => unevaluated.extend(resources),
                    concluded => concluded?,
                }
            }
            marked.push((before, resource));
        }
        if unevaluated.is_empty() { Ok(marked) } else { Err(Failure::Unevaluated(unevaluated)) }
    }

    /// Fails if a child or a reference forbids the deletion of any part of the tree.
    async fn check_tree(&self, write: &mut Write, tree: &[Stored]) -> Result<(), Failure> {
        for Stored { resource, .. } in tree {
            let parent = resource.owner.as_ref().and_then(|owner| tree.iter().find(|one| one.resource.id == owner.id));
            if let Some(parent) = parent {
                deletion::check_child(&parent.resource, resource, self.descriptor(resource)?)?;
            }
            for referrer in write.referrers(&resource.id, None).await? {
                if tree.iter().all(|inside| inside.resource.id != referrer.resource.id) {
                    return Err(deletion::referenced(resource, &referrer.resource).into());
                }
            }
        }
        Ok(())
    }

    /// Removes the references to a resource that is about to be removed.
    async fn clear_references_to(
        &self,
        write: &mut Write,
        resource: &Resource,
        tree: &[Stored],
        request: &RequestInfo,
    ) -> Result<(), Failure> {
        for before in write.referrers(&resource.id, Some(Lock::Change)).await? {
            let mut after = before.clone();
            for targets in after.resource.state.references.values_mut() {
                targets.retain(|target| target.id != resource.id);
            }
            after.resource.state.references.retain(|_, targets| !targets.is_empty());
            if tree.iter().any(|inside| inside.resource.id == before.resource.id) {
                write.update(&before, after);
            } else {
                save(write, &before, after, request.time);
            }
        }
        Ok(())
    }
}

/// Locks and returns a resource and all below it, parents before their children.
async fn tree(write: &mut Write, root: Stored) -> Result<Vec<Stored>, Failure> {
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(id) = tree.get(next).map(|stored| stored.resource.id.clone()) {
        tree.extend(write.lock_children(&id).await?);
        next += 1;
    }
    Ok(tree)
}
