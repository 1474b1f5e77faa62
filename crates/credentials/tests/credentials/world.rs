//! A registry and clusters whose calls can be cut off, and that judge every call.

use std::sync::{Arc, Mutex};

use credentials::credential::ClusterRef;
use credentials::run::{ClusterError, ClusterErrorKind, Clusters, Entry, MemoryClusters, ObserveRequest, Observed};
use credentials::state::Action;
use fleet_model::Generation;
use jiff::Timestamp;
use registry_account::contract::{Capabilities, Identities, ListedAccounts};
use registry_account::probe::{Cause, Finding, Place, Verdict};
use registry_account::{
    Account, AccountError, AccountName, Credential, CredentialId, ErrorKind, Image, Login, MemoryRegistry, NewAccount,
    Operation, Registry, Usage,
};
use tokio::sync::Notify;

/// The point at which a call is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The worker dies before the call.
    Before,
    /// The worker dies after the call, before it has recorded the answer.
    After,
    /// The answer is lost after the call was carried out.
    Lost,
    /// The answer is an error, and nothing was done.
    Refused,
}

/// The call that is cut off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script {
    pub(crate) action: Action,
    /// Number of calls of that action before it.
    pub(crate) after: u32,
    pub(crate) cut: Cut,
}

/// All that is outside of the ledger.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) registry: MemoryRegistry,
    pub(crate) clusters: MemoryClusters,
    pub(crate) script: Mutex<Option<Script>>,
    /// A worker has arrived at the cut.
    pub(crate) reached: Notify,
    /// A worker at the cut goes on.
    pub(crate) resumed: Notify,
    pub(crate) created: Mutex<Vec<Made>>,
    pub(crate) violations: Mutex<Vec<String>>,
    pub(crate) may_delete_in_use: Mutex<bool>,
}

/// An account that was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) account: AccountName,
    pub(crate) credential: CredentialId,
}

/// The world as a worker reaches it.
#[derive(Clone, Debug)]
pub(crate) struct Outside(pub(crate) Arc<World>);

// === impl World ===

impl World {
    /// Returns the cut of this call, if it is the one that is scripted.
    fn cut(&self, action: Action) -> Option<Cut> {
        let mut script = self.script.lock().unwrap();
        let found = script.as_mut().filter(|script| script.action == action)?;
        if found.after > 0 {
            found.after -= 1;
            return None;
        }
        script.take().map(|script| script.cut)
    }

    fn has_tokens(&self) -> bool {
        self.registry.capabilities().identities == Identities::Minted
    }

    fn violate(&self, violation: String) {
        self.violations.lock().unwrap().push(violation);
    }

    /// Stops until the test goes on; a test that kills the worker never does.
    async fn stop(&self) {
        self.reached.notify_one();
        self.resumed.notified().await;
    }

    /// Carries a call out as the script demands.
    async fn call<T, E>(
        &self,
        action: Action,
        error: impl FnOnce() -> E,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        match self.cut(action) {
            None => call.await,
            Some(Cut::Before) => {
                self.stop().await;
                call.await
            }
            Some(Cut::After) => {
                let result = call.await;
                self.stop().await;
                result
            }
            Some(Cut::Lost) => {
                drop(call.await);
                Err(error())
            }
            Some(Cut::Refused) => Err(error()),
        }
    }
}

impl Registry for Outside {
    fn capabilities(&self) -> Capabilities {
        self.0.registry.capabilities()
    }

    fn host(&self) -> &str {
        self.0.registry.host()
    }

    fn login(&self, name: &AccountName) -> String {
        self.0.registry.login(name)
    }

    async fn create(&self, new: &NewAccount) -> Result<Credential, AccountError> {
        let error = || AccountError::new(Operation::Create, &new.name, ErrorKind::TimedOut);
        self.0
            .call(Action::Create, error, async {
                let existed = self.0.registry.find(&new.name).await?.is_some();
                let created = self.0.registry.create(new).await?;
                if !existed {
                    let made = Made { account: new.name.clone(), credential: new.credential };
                    self.0.created.lock().unwrap().push(made);
                }
                Ok(created)
            })
            .await
    }

    async fn find(&self, name: &AccountName) -> Result<Option<Account>, AccountError> {
        self.0.registry.find(name).await
    }

    async fn permit(&self, name: &AccountName) -> Result<(), AccountError> {
        let error = || AccountError::new(Operation::Permit, name, ErrorKind::Unavailable);
        self.0.call(Action::Permit, error, self.0.registry.permit(name)).await
    }

    async fn probe(&self, login: &Login, image: &Image) -> Finding {
        let account = login.username.trim_start_matches("memory+").parse().unwrap();
        let exists = self.0.registry.find(&account).await.unwrap().is_some();
        let action = if exists || self.0.has_tokens() { Action::Probe } else { Action::ConfirmRefused };
        let none = Finding { verdict: Verdict::Inconclusive, place: Place::Registry, cause: Cause::NoAnswer };
        let probe = async { Ok::<_, Finding>(self.0.registry.probe(login, image).await) };
        self.0.call(action, || none, probe).await.unwrap_or_else(|finding| finding)
    }

    async fn usage(&self, name: &AccountName, since: Timestamp) -> Result<Usage, AccountError> {
        let error = || AccountError::new(Operation::Usage, name, ErrorKind::TimedOut);
        self.0.call(Action::ObserveUsage, error, self.0.registry.usage(name, since)).await
    }

    async fn disable(&self, name: &AccountName) -> Result<(), AccountError> {
        self.0.registry.disable(name).await
    }

    async fn delete(&self, name: &AccountName) -> Result<bool, AccountError> {
        let error = || AccountError::new(Operation::Delete, name, ErrorKind::TimedOut);
        self.0
            .call(Action::Delete, error, async {
                let naming = self.0.clusters.naming(&self.login(name));
                if !naming.is_empty() && !*self.0.may_delete_in_use.lock().unwrap() {
                    self.0.violate(format!("{name} is deleted while {naming:?} name it"));
                }
                self.0.registry.delete(name).await
            })
            .await
    }

    async fn list(&self, page: Option<&str>) -> Result<ListedAccounts, AccountError> {
        self.0.registry.list(page).await
    }
}

impl Clusters for Outside {
    async fn observe(&self, request: &ObserveRequest<'_>) -> Result<Observed, ClusterError> {
        let is_evidence = request.login.username.is_empty()
            || secrecy::ExposeSecret::expose_secret(&request.login.password).is_empty();
        let action = if is_evidence { Action::ObserveAdoption } else { Action::ObserveDocument };
        self.0.call(action, || broken(ClusterErrorKind::Transient), self.0.clusters.observe(request)).await
    }

    async fn publish(
        &self,
        cluster: &ClusterRef,
        entry: &Entry<'_>,
        at: Generation,
    ) -> Result<Generation, ClusterError> {
        let call = async {
            let naming = self.0.clusters.naming(&entry.login.username);
            // All tokens have the same user.
            if !self.0.has_tokens() && naming.iter().any(|other| other != cluster) {
                self.0.violate(format!("{} is published to {cluster} while {naming:?} name it", entry.login.username));
            }
            self.0.clusters.publish(cluster, entry, at).await
        };
        self.0.call(Action::Publish, || broken(ClusterErrorKind::Ambiguous), call).await
    }
}

fn broken(kind: ClusterErrorKind) -> ClusterError {
    ClusterError { kind, message: "no answer".to_owned(), retry_after: None }
}
