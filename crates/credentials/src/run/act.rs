//! The outward actions, one call each.

use jiff::{SignedDuration, Timestamp};
use registry_account::contract::{Identities, Login, NewAccount, Registry, Usage};
use registry_account::error::ErrorKind;
use registry_account::probe::Verdict;

use super::clusters::{ClusterError, ClusterErrorKind, Clusters, Document, Entry, ObserveRequest, Observed};
use super::outcome::{ActionError, Effect, of_cluster, of_probe, of_refusal, of_registry, user_only};
use super::served::{Served, later};
use crate::credential::{ClusterRef, Credential, Evidence, MAX_CHAIN, Naming, ObservedDocument, ObservedUsage, Proof};
use crate::ledger::{Ledger, Password};
use crate::reason::Reason;
use crate::state::{Action, State};

/// The means of an action.
pub(super) struct Act<'a, R, C> {
    pub(super) ledger: &'a Ledger,
    pub(super) served: &'a Served<R>,
    pub(super) clusters: &'a C,
    pub(super) credential: &'a Credential,
    /// The time at which the action began.
    pub(super) now: Timestamp,
}

// === impl Act ===

impl<R: Registry, C: Clusters> Act<'_, R, C> {
    /// Carries an action out and returns its effect.
    pub(super) async fn carry_out(&self, action: Action) -> Result<Effect, ActionError> {
        match action {
            Action::Create => self.create().await,
            Action::Permit => self.permit().await,
            Action::Probe => self.probe().await,
            Action::Publish => self.publish().await,
            Action::ObserveUsage => self.usage().await,
            Action::ObserveAdoption | Action::ObserveDocument => self.observe().await,
            Action::Disable => self.disable().await,
            Action::Delete => self.delete().await,
            Action::ConfirmRefused => self.confirm_refused().await,
        }
    }

    fn effect(&self) -> Effect {
        Effect { record: self.credential.record.clone(), password: Password::Keep }
    }

    async fn login(&self) -> Result<Login, ActionError> {
        let password = self.ledger.password(self.credential).await?;
        let username = self.credential.record.login.clone();
        let login = username.zip(password).map(|(username, password)| Login { username, password });
        // Without a password there is nothing to try or to publish.
        login.ok_or(ActionError::GiveUp(Reason::PasswordLost))
    }

    async fn create(&self) -> Result<Effect, ActionError> {
        let new = NewAccount {
            name: self.credential.account.clone(),
            credential: self.credential.id,
            description: self.served.description.clone(),
        };
        let created = self.served.registry.create(&new).await.map_err(|error| of_registry(Action::Create, &error))?;
        let expires = created.account.expires;
        if let Some(expired) = expires.filter(|expires| *expires <= self.now) {
            let registry = &self.credential.registry;
            tracing::warn!(%registry, "a token that was minted now has expired at {expired}: check the clock of this host");
            return Err(ActionError::slowly(Reason::Denied));
        }
        let mut effect = self.effect();
        let record = &mut effect.record;
        if record.created.is_some() {
            // A token is renewed: the new one has to be proven as the first one had. A cluster that has not adopted one yet is
            // late by its first.
            if self.credential.state == State::Adopted {
                record.published = None;
            }
            (record.probed, record.evidence) = (None, Evidence::default());
        }
        (record.created, record.expires) = (Some(self.now), expires);
        record.login = Some(created.account.login);
        effect.password = Password::Set(created.password);
        Ok(effect)
    }

    async fn permit(&self) -> Result<Effect, ActionError> {
        let permitted = self.served.registry.permit(&self.credential.account).await;
        permitted.map_err(|error| of_registry(Action::Permit, &error))?;
        Ok(self.effect())
    }

    async fn probe(&self) -> Result<Effect, ActionError> {
        let login = self.login().await?;
        let finding = self.served.registry.probe(&login, &self.served.image).await;
        if finding.verdict != Verdict::Pulls {
            let (credential, registry) = (self.credential.id, &self.credential.registry);
            tracing::warn!(%credential, %registry, "a probe was not served: {finding}; retrying");
        }
        let has_ended = self.credential.record.expires.is_some_and(|end| end <= self.now) && !self.is_token();
        of_probe(finding, self.credential.record.attempts, has_ended)?;
        let mut effect = self.effect();
        effect.record.probed = Some(self.now);
        Ok(effect)
    }

    /// Writes the entry, over nothing, over an entry that is not of the ledger, or over one that this credential replaces.
    async fn publish(&self) -> Result<Effect, ActionError> {
        let cluster = self.cluster()?;
        let (host, login) = (self.served.registry.host(), self.login().await?);
        let generation = self.credential.record.generation;
        let request = ObserveRequest { cluster, host, login: &login, generation };
        let observed = self.clusters.observe(&request).await.map_err(|error| self.of_cluster(&error))?;
        let Observed::Found(document) = observed else { return Err(ActionError::ClusterGone) };
        let generation = if document.is_same {
            // An earlier answer was lost.
            document.generation
        } else {
            let was_published = self.credential.record.generation.known().is_some();
            if self.is_token() && was_published && document.user.as_ref() != Some(&login.username) {
                // The entry was removed or replaced since: that is a person's decision, and a renewal does not undo it.
                return Err(ActionError::slowly(Reason::Displaced));
            }
            let may_replace = match &document.user {
                _ if self.is_token() => self.is_newest_token().await?,
                Some(user) => self.may_replace(user).await?,
                None => true,
            };
            if !may_replace {
                return Err(ActionError::slowly(Reason::NewerPublished));
            }
            let entry = Entry { host, login: &login };
            let published = self.clusters.publish(cluster, &entry, document.generation).await;
            published.map_err(|error| self.of_cluster(&error))?
        };
        let mut effect = self.effect();
        effect.record.generation = generation;
        effect.record.published.get_or_insert(self.now);
        effect.record.evidence.document = Some(ObservedDocument { at: self.now, naming: Naming::Named });
        Ok(effect)
    }

    /// Returns true for a user that the ledger does not know, for the account of another cluster or incarnation, whose pull
    /// secret was copied, for one that is given up, and for one that this credential replaces, directly or not.
    async fn may_replace(&self, user: &str) -> Result<bool, ActionError> {
        let Some(found) = self.ledger.of_login(&self.credential.registry, user).await? else { return Ok(true) };
        // A credential that was put back replaces the newer one.
        if found.cluster != self.credential.cluster || found.record.given_up.is_some() {
            return Ok(true);
        }
        let mut before = self.credential.replaces;
        for _each in 0..MAX_CHAIN {
            let Some(id) = before else { return Ok(false) };
            if id == found.id {
                return Ok(true);
            }
            before = self.ledger.get(id).await?.and_then(|credential| credential.replaces);
        }
        Ok(false)
    }

    /// Returns true if a token was not minted again, and no pull secret can name a credential that replaces it. All tokens of a
    /// registry have the same user, so the pull secret does not show it. Read after the pull secret, whose generation the write
    /// names: what is published later makes the write fail.
    async fn is_newest_token(&self) -> Result<bool, ActionError> {
        let Credential { id, record, .. } = self.credential;
        let own = self.ledger.get(*id).await?;
        let newer = match self.ledger.successor(*id).await? {
            Some(successor) => self.ledger.get(successor.id).await?,
            None => None,
        };
        let is_same = own.is_some_and(|own| own.record.created == record.created);
        Ok(is_same && !newer.is_some_and(|newer| newer.may_be_named()))
    }

    /// Returns true for a token of a registry without accounts.
    fn is_token(&self) -> bool {
        self.served.registry.capabilities().identities == Identities::Minted
    }

    /// Classifies a failed call about the cluster, and logs it.
    fn of_cluster(&self, error: &ClusterError) -> ActionError {
        let (credential, cluster) = (self.credential.id, self.credential.cluster.as_ref().map(ToString::to_string));
        if error.kind == ClusterErrorKind::Changed {
            tracing::debug!(%credential, cluster, "{}; reading it again", error.message);
        } else {
            tracing::warn!(%credential, cluster, "{}; retrying", error.message);
        }
        of_cluster(error)
    }

    fn cluster(&self) -> Result<&ClusterRef, ActionError> {
        self.credential.cluster.as_ref().ok_or(ActionError::slowly(Reason::Denied))
    }

    async fn observe(&self) -> Result<Effect, ActionError> {
        let cluster = self.cluster()?;
        let record = &self.credential.record;
        let is_token = self.is_token();
        let login = if is_token { self.login().await? } else { user_only(record.login.clone().unwrap_or_default()) };
        let request =
            ObserveRequest { cluster, host: self.served.registry.host(), login: &login, generation: record.generation };
        let observed = self.clusters.observe(&request).await.map_err(|error| self.of_cluster(&error))?;
        let mut effect = self.effect();
        let evidence = &mut effect.record.evidence;
        evidence.observed = Some(self.now);
        let naming = match observed {
            Observed::Gone => Naming::ClusterGone,
            Observed::Found(Document { user, is_same, report, nodes, .. }) => {
                let is_named = if is_token { is_same } else { user.as_ref() == Some(&login.username) };
                if is_named && record.published.is_some() {
                    evidence.report = evidence.report.take().or(report);
                    evidence.nodes = evidence.nodes.take().or(nodes);
                }
                if is_named { Naming::Named } else { Naming::NotNamed }
            }
        };
        evidence.document = Some(ObservedDocument { at: self.now, naming });
        Ok(effect)
    }

    async fn usage(&self) -> Result<Effect, ActionError> {
        let record = &self.credential.record;
        let quiet = SignedDuration::try_from(self.served.policy.quiet).unwrap_or(SignedDuration::MAX);
        let window = self.now.saturating_sub(quiet).unwrap_or(Timestamp::MIN);
        // Without a pull so far, all pulls count; later, those of the quiet time.
        let since =
            record.probed.filter(|_| record.evidence.first_pull.is_none()).map_or(window, |probed| probed.min(window));
        let usage = self.served.registry.usage(&self.credential.account, since).await;
        let usage = usage.map_err(|error| of_registry(Action::ObserveUsage, &error))?;
        let Usage { first_pull, last_pull, complete, requests, .. } = usage;
        if let Some(more) = requests.checked_sub(1).filter(|more| *more > 0) {
            self.ledger.pay(&self.credential.registry, more, self.served.rate()).await?;
        }
        let mut effect = self.effect();
        let evidence = &mut effect.record.evidence;
        if let Some(first) = first_pull.filter(|_| evidence.first_pull.is_none()) {
            let source = format!("usage log of registry {}: pull at {first}", self.credential.registry);
            evidence.first_pull = Some(Proof { at: self.now, source });
        }
        let last_pull = last_pull.max(evidence.usage.as_ref().and_then(|usage| usage.last_pull));
        evidence.usage = Some(ObservedUsage { at: self.now, last_pull, complete });
        Ok(effect)
    }

    async fn disable(&self) -> Result<Effect, ActionError> {
        match self.served.registry.disable(&self.credential.account).await {
            Err(error) if error.kind != ErrorKind::NotFound => return Err(of_registry(Action::Disable, &error)),
            _ => {}
        }
        let mut effect = self.effect();
        effect.record.disabled = Some(self.now);
        Ok(effect)
    }

    /// Deletes the account. The answer is final once no request that creates it can be on its way.
    async fn delete(&self) -> Result<Effect, ActionError> {
        let deleted = self.served.registry.delete(&self.credential.account).await;
        let _existed = deleted.map_err(|error| of_registry(Action::Delete, &error))?;
        let mut effect = self.effect();
        let late_until = effect.record.last_create.map(|created| later(created, self.served.policy.late));
        effect.record.last_delete = Some(self.now);
        effect.record.deleted = late_until.is_none_or(|late_until| late_until <= self.now).then_some(self.now);
        Ok(effect)
    }

    async fn confirm_refused(&self) -> Result<Effect, ActionError> {
        let login = self.login().await?;
        let finding = self.served.registry.probe(&login, &self.served.image).await;
        of_refusal(finding, self.credential.record.probed.is_some())?;
        let mut effect = self.effect();
        effect.record.dead = Some(self.now);
        Ok(effect)
    }
}
