//! The credentials of a cluster: read, created, retired.

use std::collections::BTreeMap;

use fleet_model::ClusterId;
use http::StatusCode;
use registry_account::contract::Login;
use secrecy::ExposeSecret as _;
use serde_json::{Map, Value, json};

use super::answer::Answer;
use super::chain::{Chain, chains, is_live};
use super::directory::{Directory, KnownCluster, Offered, Unread};
use super::problem::{Code, Problem};
use super::reviews::Reviewer;
use super::state::Shared;
use crate::credential::{Credential, RegistryName};
use crate::ledger::{ClusterCredential, LedgerError, Slot, Statement};
use crate::publish::PullSecret;

/// A request about the credentials of a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    /// The cluster.
    pub(crate) cluster: &'a ClusterId,
    /// The caller.
    pub(crate) caller: &'a str,
    /// True if the caller may read passwords.
    pub(crate) reveals: bool,
    /// True if the request, and so its answer, has AMS's form.
    pub(crate) is_of_ams: bool,
}

/// The state of a cluster's credentials as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whole {
    /// Nodes can pull from every registry.
    Ready,
    /// A credential is not made or not tried yet.
    Pending,
    /// All of them are on their way out.
    Retiring,
}

// === impl Shared ===

impl<R: Reviewer, D: Directory> Shared<R, D> {
    /// Shows the credentials of a cluster.
    pub(crate) async fn read(&self, about: &About<'_>) -> Result<Answer, Problem> {
        let found = self.ledger.of_cluster(about.cluster.as_str()).await?;
        let chains = chains(&found);
        let asked: Vec<&RegistryName> =
            chains.iter().filter(|(_, chain)| chain.live().next().is_some()).map(|(registry, _)| registry).collect();
        if found.iter().all(|found| found.credential.state.is_final()) {
            let detail = format!("cluster {} has no credentials: POST has them made", about.cluster);
            return Err(Problem::new(Code::NotFound, detail));
        }
        self.answer(about, &found, &asked).await
    }

    /// Has credentials made where there are none, and shows those that are there.
    pub(crate) async fn ensure(&self, about: &About<'_>, asked: &[RegistryName]) -> Result<Answer, Problem> {
        let known = self.known(about.cluster).await?;
        let asked = self.asked(&known, asked)?;
        let hosts: Vec<&str> = self.registries.iter().map(|offered| offered.host.as_str()).collect();
        if self.ledger.is_of_ams(&known.cluster, &hosts).await? {
            let detail = format!(
                "the credentials of cluster {} are AMS's: `pull-secret credentials ams` moves it away from there first",
                about.cluster
            );
            return Err(Problem::new(Code::State, detail));
        }
        let chains = chains(&self.of(&known).await?);
        if asked.iter().any(|offered| chains.get(&offered.name).is_some_and(Chain::is_ambiguous)) {
            let detail = format!("the credentials of cluster {} are being replaced: ask again later", about.cluster);
            return Err(Problem { retry_after: Some(60), ..Problem::new(Code::Rotating, detail) });
        }
        for offered in &asked {
            self.make(about, &known, offered, chains.get(&offered.name)).await?;
        }
        let found = self.of(&known).await?;
        let names: Vec<&RegistryName> = asked.iter().map(|offered| &offered.name).collect();
        self.answer(about, &found, &names).await
    }

    /// Orders the retirement of all credentials of a cluster, once nothing uses them.
    pub(crate) async fn retire(&self, about: &About<'_>) -> Result<Answer, Problem> {
        let statement = Statement { actor: about.caller, reason: "deleted by the API", now: self.sources.now() };
        for found in self.ledger.of_cluster(about.cluster.as_str()).await? {
            if is_live(&found.credential) {
                unless_over(self.ledger.retire(found.credential.id, &statement).await)?;
            }
        }
        Ok(Answer::empty())
    }

    /// Finds a cluster that credentials may be made for.
    pub(crate) async fn known(&self, cluster: &ClusterId) -> Result<KnownCluster, Problem> {
        let unread =
            |cause: Unread| Problem::unavailable("the HyperFleet API cannot be read: try again", cause.to_string());
        let known = self.directory.find(cluster, &self.registries).await.map_err(unread)?;
        let known = known.ok_or_else(|| {
            Problem::new(Code::NotFound, format!("the HyperFleet API has no cluster {cluster}: create it there first"))
        })?;
        if known.is_deleting {
            return Err(Problem::new(Code::State, format!("cluster {cluster} is being deleted")));
        }
        Ok(known)
    }

    /// Reads the credentials of one incarnation of a cluster.
    pub(crate) async fn of(&self, known: &KnownCluster) -> Result<Vec<ClusterCredential>, Problem> {
        let mut found = self.ledger.of_cluster(&known.cluster.id).await?;
        found.retain(|found| found.credential.cluster.as_ref() == Some(&known.cluster));
        Ok(found)
    }

    /// Returns the registries that are asked for; all of the cluster if none is.
    fn asked(&self, known: &KnownCluster, asked: &[RegistryName]) -> Result<Vec<&Offered>, Problem> {
        let is_of_cluster = |offered: &&Offered| known.registries.contains(&offered.name);
        let offered: Vec<&Offered> = if asked.is_empty() {
            self.registries.iter().filter(is_of_cluster).collect()
        } else {
            let found = |name: &RegistryName| self.offered(name).filter(is_of_cluster);
            let message =
                || "must be registries of the service's configuration whose search finds the cluster".to_owned();
            let found: Option<_> = asked.iter().map(found).collect();
            found.ok_or_else(|| Problem::invalid("registries", "enum", message()))?
        };
        if offered.is_empty() {
            let detail =
                format!("no registry of the service's configuration has a search that finds cluster {}", known.cluster);
            return Err(Problem::new(Code::State, detail));
        }
        Ok(offered)
    }

    /// Has a credential made at a registry, unless the cluster has one.
    async fn make(
        &self,
        about: &About<'_>,
        known: &KnownCluster,
        offered: &Offered,
        chain: Option<&Chain>,
    ) -> Result<(), Problem> {
        let (fresh, now) = (self.fresh(offered)?, self.sources.now());
        match chain.and_then(Chain::newest) {
            Some(newest) if is_live(newest) => {}
            Some(newest) => {
                let statement = Statement { actor: about.caller, reason: "asked for by the API", now };
                self.ledger.replace(newest.id, &fresh, &statement).await?;
            }
            None => {
                let (registry, cluster) = (offered.name.clone(), known.cluster.clone());
                self.ledger.assign(&Slot { registry, cluster, replaces: None }, &fresh, about.caller, now).await?;
            }
        }
        Ok(())
    }

    /// Returns the answer about the credentials of a cluster at some registries.
    async fn answer(
        &self,
        about: &About<'_>,
        found: &[ClusterCredential],
        asked: &[&RegistryName],
    ) -> Result<Answer, Problem> {
        let chains = chains(found);
        let usable: Vec<&Credential> =
            asked.iter().filter_map(|registry| chains.get(*registry).and_then(Chain::usable)).collect();
        let whole = match (asked.is_empty(), usable.len() == asked.len()) {
            (true, _) => Whole::Retiring,
            (false, true) => Whole::Ready,
            (false, false) => Whole::Pending,
        };
        let reveals = about.reveals && whole == Whole::Ready;
        let content = if reveals { Some(self.content(&usable).await?) } else { None };
        let revealed = if reveals { usable.iter().map(|credential| credential.id).collect() } else { Vec::new() };
        if about.is_of_ams {
            let document = content.ok_or_else(|| {
                let detail = format!("the credentials of cluster {} are being made: ask again", about.cluster);
                Problem { retry_after: Some(2), ..Problem::new(Code::Unavailable, detail) }
            })?;
            let document = Some(with_emails(document));
            return Ok(Answer { status: StatusCode::CREATED, document, revealed, location: None });
        }
        let mut document = described(about.cluster, found, whole);
        if let (Some(content), Some(members)) = (content, document.as_object_mut()) {
            members.insert("pull_secret".to_owned(), content);
        }
        let status = if whole == Whole::Pending { StatusCode::ACCEPTED } else { StatusCode::OK };
        Ok(Answer { status, document: Some(document), revealed, location: None })
    }

    /// Returns the credential document with these credentials.
    async fn content(&self, usable: &[&Credential]) -> Result<Value, Problem> {
        let unwritable = || Problem::new(Code::Internal, "an internal error; the service's log says more");
        let mut logins: BTreeMap<&str, Login> = BTreeMap::new();
        for credential in usable {
            let offered = self.offered(&credential.registry).ok_or_else(|| {
                let detail = format!("registry {} is not configured any more", credential.registry);
                Problem::new(Code::State, detail)
            })?;
            let password = self.ledger.password(credential).await?.ok_or_else(unwritable)?;
            let username = credential.record.login.clone().ok_or_else(unwritable)?;
            logins.insert(&offered.host, Login { username, password });
        }
        let text = PullSecret::of(&logins).map_err(|_unreadable| unwritable())?;
        serde_json::from_str(text.expose_secret()).map_err(|_quotes| unwritable())
    }
}

/// Takes an order that has come too late for carried out: the credential has ended meanwhile.
pub(crate) fn unless_over(ordered: Result<(), LedgerError>) -> Result<(), Problem> {
    match ordered {
        Err(LedgerError::TooLate(_)) => Ok(()),
        ordered => Ok(ordered?),
    }
}

/// Returns the description of a cluster's credentials, without passwords. Those of which nothing is left are left out.
fn described(cluster: &ClusterId, found: &[ClusterCredential], whole: Whole) -> Value {
    let credentials: Vec<&Credential> =
        found.iter().map(|found| &found.credential).filter(|credential| !credential.state.is_final()).collect();
    let created = credentials.iter().filter_map(|credential| credential.record.created).min();
    let rotated = credentials.iter().filter(|credential| credential.replaces.is_some());
    let rotated = rotated.filter_map(|credential| credential.record.published).max();
    let state = match whole {
        Whole::Ready => "ready",
        Whole::Pending => "pending",
        Whole::Retiring => "retiring",
    };
    let credentials: Vec<Value> = credentials.into_iter().map(describe).collect();
    json!({
        "cluster_id": cluster.as_str(),
        "state": state,
        "credentials": credentials,
        "created_at": created,
        "last_rotated_at": rotated,
    })
}

fn describe(credential: &Credential) -> Value {
    let record = &credential.record;
    let ordered = record.order.as_ref().map(|order| if order.break_glass { "revocation" } else { "retirement" });
    json!({
        "credential_id": credential.id.to_string(),
        "registry_id": credential.registry.as_str(),
        "username": record.login,
        "state": credential.state.as_str(),
        "reason": credential.reason.as_str(),
        "replaces": credential.replaces.map(|id| id.to_string()),
        "ordered": ordered,
        "created_at": record.created,
        "expires_at": record.expires,
        "published_at": record.published,
        "adopted_at": record.adopted,
    })
}

/// Adds the member `email` to each entry, which AMS's clients expect; no person is behind a credential.
fn with_emails(mut document: Value) -> Value {
    let entries = document.get_mut("auths").and_then(Value::as_object_mut).map(Map::values_mut);
    for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.insert("email".to_owned(), Value::from(""));
    }
    document
}
