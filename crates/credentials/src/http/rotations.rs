//! Rotations of a cluster's credentials: started, listed, read.

use http::StatusCode;
use jiff::SignedDuration;
use registry_account::name::CredentialId;
use serde_json::{Value, json};

use super::answer::Answer;
use super::chain::{Chain, chains, is_live, may_be_known};
use super::directory::Directory;
use super::problem::{Code, Problem};
use super::pull_secrets::{About, unless_over};
use super::request::{Cursor, NewRotation, RotationQuery};
use super::reviews::Reviewer;
use super::rotation::{Rotation, RotationOrder, RotationReason, RotationStatus, rotations};
use super::state::Shared;
use crate::credential::{Approval, Credential};
use crate::ledger::{ClusterCredential, Statement};

/// A forced rotation that waits for another person, with what it is to revoke.
struct Requested {
    rotation: Rotation,
    old: Vec<Credential>,
}

// === impl Shared ===

impl<R: Reviewer, D: Directory> Shared<R, D> {
    /// Replaces the credentials of a cluster; with a forced rotation the old ones are revoked at once, whatever uses them. Where
    /// another person has to approve that, the same request approves it.
    pub(crate) async fn rotate(&self, about: &About<'_>, new: NewRotation) -> Result<Answer, Problem> {
        let known = self.known(about.cluster).await?;
        let found = self.of(&known).await?;
        let chains = chains(&found);
        let replaced: Vec<&Chain> = chains.values().filter(|chain| chain.live().next().is_some()).collect();
        if replaced.is_empty() {
            let detail = format!("cluster {} has no credentials to replace: have them made first", about.cluster);
            return Err(Problem::new(Code::NotFound, detail));
        }
        if new.is_forced
            && let Some(requested) = self.requested(about, &replaced, &found).await?
        {
            return self.approve(about, &requested, new.reason).await;
        }
        // A forced one is refused only if everything that may be known to others is revoked already.
        let is_open = replaced.iter().any(|chain| chain.is_replacing());
        if is_open && !(new.is_forced && replaced.iter().any(|chain| chain.may_be_known())) {
            return Err(self.open(about, &found).await);
        }
        let NewRotation { reason, is_forced } = new;
        let order = RotationOrder { id: self.rotation_id()?, reason, is_forced };
        let remark = order.to_string();
        let statement = Statement { actor: about.caller, reason: &remark, now: self.sources.now() };
        // All of them, before the first order.
        let fresh = replaced.into_iter().filter_map(Chain::newest).map(|newest| {
            let offered = self.offered(&newest.registry).ok_or_else(|| {
                Problem::new(Code::State, format!("registry {} is not configured any more", newest.registry))
            })?;
            Ok((newest.id, self.fresh(offered)?))
        });
        for (newest, fresh) in fresh.collect::<Result<Vec<_>, Problem>>()? {
            self.ledger.replace(newest, &fresh, &statement).await?;
        }
        if is_forced {
            for old in found.iter().map(|found| &found.credential).filter(|old| is_revocable(old)) {
                self.revoke(old, &statement).await?;
            }
        }
        let location = format!("/v1/clusters/{}/rotations/{}", about.cluster, order.id);
        // Another caller may have begun one at the same time.
        let started = match self.rotation(about, order.id).await {
            Err(problem) if problem.code == Code::NotFound => {
                return Err(self.open(about, &self.of(&known).await?).await);
            }
            started => started?,
        };
        Ok(Answer { location: Some(location), ..Answer::json(StatusCode::CREATED, self.described(about, &started)) })
    }

    /// Returns the forced rotation that waits for another person, if its new credentials are those of all registries. For the one
    /// that requested it none waits once a new credential may be known to others: that one may be meant.
    async fn requested(
        &self,
        about: &About<'_>,
        replaced: &[&Chain],
        found: &[ClusterCredential],
    ) -> Result<Option<Requested>, Problem> {
        let now = self.sources.now();
        for rotation in self.rotations_of(about).await?.into_iter().filter(|rotation| rotation.order.is_forced) {
            let is_new = |one: &Credential| rotation.replacements.iter().any(|each| each.new.id == one.id);
            let all = found.iter().map(|found| &found.credential);
            let old: Vec<Credential> = all.filter(|old| is_revocable(old) && !is_new(old)).cloned().collect();
            let mut waiting = old.iter().filter_map(|old| old.record.waiting_request(now)).peekable();
            let is_all_new = replaced.iter().all(|chain| chain.newest().is_some_and(|one| is_live(one) && is_new(one)));
            if waiting.peek().is_none() || !is_all_new {
                continue;
            }
            if waiting.any(|request| request.actor != about.caller)
                || !replaced.iter().filter_map(|chain| chain.newest()).any(may_be_known)
            {
                return Ok(Some(Requested { rotation, old }));
            }
        }
        Ok(None)
    }

    /// Revokes what a forced rotation replaces, or requests that, as the policy of each registry has it.
    async fn approve(
        &self,
        about: &About<'_>,
        requested: &Requested,
        reason: RotationReason,
    ) -> Result<Answer, Problem> {
        let Requested { rotation, old } = requested;
        let remark = RotationOrder { reason, ..rotation.order }.to_string();
        let statement = Statement { actor: about.caller, reason: &remark, now: self.sources.now() };
        for old in old {
            self.revoke(old, &statement).await?;
        }
        self.read_rotation(about, rotation.order.id).await
    }

    async fn revoke(&self, old: &Credential, statement: &Statement<'_>) -> Result<(), Problem> {
        // The policy of a registry that is not configured any more is not known.
        let approval = self.offered(&old.registry).map_or(Approval::AnotherPerson, |offered| offered.revocation);
        unless_over(self.ledger.revoke(old.id, approval, statement).await.map(drop))
    }

    /// Lists the rotations of a cluster, newest first.
    pub(crate) async fn list_rotations(&self, about: &About<'_>, query: &RotationQuery) -> Result<Answer, Problem> {
        let mut found = self.rotations_of(about).await?;
        let is_asked = |rotation: &Rotation| {
            query.status.is_none_or(|status| rotation.status() == status)
                && query.since.is_none_or(|since| rotation.created >= since)
        };
        found.retain(is_asked);
        let total = found.len();
        let place = |rotation: &Rotation| Cursor { created: rotation.created, id: rotation.order.id };
        found.retain(|rotation| query.after.is_none_or(|after| place(rotation) < after));
        let has_more = found.len() > query.limit;
        found.truncate(query.limit);
        let next = found.last().filter(|_| has_more).map(|last| place(last).text());
        let rotations: Vec<Value> = found.iter().map(|rotation| self.described(about, rotation)).collect();
        let document = json!({
            "rotations": rotations,
            "pagination": { "next_cursor": next, "has_more": has_more, "total_count": total },
        });
        Ok(Answer::json(StatusCode::OK, document))
    }

    /// Shows one rotation of a cluster.
    pub(crate) async fn read_rotation(&self, about: &About<'_>, id: CredentialId) -> Result<Answer, Problem> {
        let rotation = self.rotation(about, id).await?;
        Ok(Answer::json(StatusCode::OK, self.described(about, &rotation)))
    }

    async fn rotation(&self, about: &About<'_>, id: CredentialId) -> Result<Rotation, Problem> {
        let found = self.rotations_of(about).await?.into_iter().find(|rotation| rotation.order.id == id);
        found.ok_or_else(|| Problem::new(Code::NotFound, format!("cluster {} has no rotation {id}", about.cluster)))
    }

    async fn rotations_of(&self, about: &About<'_>) -> Result<Vec<Rotation>, Problem> {
        let id = about.cluster.as_str();
        Ok(rotations(&self.ledger.of_cluster(id).await?, &self.ledger.assignments(id).await?))
    }

    /// Returns the refusal that names the rotation on its way.
    async fn open(&self, about: &About<'_>, found: &[ClusterCredential]) -> Problem {
        let events = match self.ledger.assignments(about.cluster.as_str()).await {
            Ok(events) => events,
            Err(error) => return error.into(),
        };
        let is_open =
            |rotation: &Rotation| matches!(rotation.status(), RotationStatus::Pending | RotationStatus::InProgress);
        let open = rotations(found, &events).into_iter().find(is_open);
        let open = open.map_or_else(String::new, |rotation| format!(" {}", rotation.order.id));
        let detail = format!(
            "rotation{open} of cluster {} is on its way: wait until the cluster uses its new credentials; what is known to others is \
             revoked at once with the reason compromise",
            about.cluster
        );
        Problem { retry_after: Some(60), ..Problem::new(Code::RotationOpen, detail) }
    }

    fn described(&self, about: &About<'_>, rotation: &Rotation) -> Value {
        let status = rotation.status();
        let within = rotation.replacements.iter().filter_map(|each| self.offered(&each.new.registry));
        let within = within.filter_map(|offered| SignedDuration::try_from(offered.replaced_within).ok()).max();
        let is_open = matches!(status, RotationStatus::Pending | RotationStatus::InProgress);
        let expected = within.filter(|_| is_open).and_then(|within| rotation.created.checked_add(within).ok());
        let now = self.sources.now();
        let revocation = |old: &Credential| {
            let is_ordered = old.record.order.as_ref().is_some_and(|order| order.break_glass);
            let is_requested = old.record.waiting_request(now).is_some();
            if is_ordered { Some("ordered") } else { is_requested.then_some("requested") }
        };
        let replaced = |each: &super::rotation::Replacement| {
            json!({
                "registry_id": each.new.registry.as_str(),
                "old_credential_id": each.old.id.to_string(),
                "old_state": each.old.state.as_str(),
                "old_revocation": revocation(&each.old),
                "new_credential_id": each.new.id.to_string(),
                "new_state": each.new.state.as_str(),
                "reason": each.new.reason.as_str(),
            })
        };
        json!({
            "rotation_id": rotation.order.id.to_string(),
            "cluster_id": about.cluster.as_str(),
            "status": status.as_str(),
            "reason": rotation.order.reason.as_str(),
            "force_immediate": rotation.order.is_forced,
            "created_at": rotation.created,
            "created_by": rotation.actor,
            "estimated_completion": expected,
            "completed_at": rotation.completed(),
            "progress": {
                "phase": rotation.phase(),
                "new_credentials_created": rotation.has_created(),
                "old_credentials_revoked": rotation.has_revoked(),
                "credentials": rotation.replacements.iter().map(replaced).collect::<Vec<_>>(),
            },
        })
    }
}

/// Returns true for a credential that is to be revoked: also one that is being retired.
fn is_revocable(credential: &Credential) -> bool {
    let is_revoked = credential.record.order.as_ref().is_some_and(|order| order.break_glass);
    !is_revoked && !credential.state.is_over()
}
