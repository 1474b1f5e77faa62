//! A registry with a limit and an outage, and clusters whose nodes follow their pull secret after some time, by a virtual clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use credentials::credential::{ClusterRef, Proof};
use credentials::run::{ClusterError, Clusters, Document, Entry, ObserveRequest, Observed};
use fleet_model::Generation;
use jiff::{SignedDuration, Timestamp};
use registry_account::contract::{Capabilities, Disables, Identities, ListedAccounts, Lists, Passwords};
use registry_account::probe::{Cause, Finding, Place, Verdict};
use registry_account::{
    Account, AccountError, AccountName, Credential, ErrorKind, Image, Login, NewAccount, Operation, Registry, Usage,
};
use secrecy::SecretString;

/// The host of the registry.
pub(crate) const HOST: &str = "registry.invalid";
/// Calls in a minute that the registry states.
pub(crate) const PER_MINUTE: u32 = 600;
/// Calls in a minute that the registry really allows, in every third hour.
const TRUE_LIMIT: u32 = 400;
/// Of so many clusters, one never follows its pull secret.
pub(crate) const STRAGGLER: u64 = 100;

/// Everything outside of the service.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) now: Timestamp,
    pub(crate) began: Timestamp,
    accounts: BTreeMap<AccountName, Made>,
    pub(crate) clusters: BTreeMap<ClusterRef, Cluster>,
    /// Number of clusters whose pull secret names an account.
    named: BTreeMap<String, u32>,
    /// The times at which clusters follow their pull secret.
    followers: BinaryHeap<Reverse<(Timestamp, ClusterRef)>>,
    /// Calls by operation, and those that were refused as too many, or in the outage.
    pub(crate) calls: BTreeMap<&'static str, u64>,
    pub(crate) too_many: u64,
    pub(crate) in_outage: u64,
    minute: i64,
    of_minute: u32,
    pub(crate) violations: u64,
}

#[derive(Debug)]
struct Made {
    permitted: bool,
    last_pull: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(crate) struct Cluster {
    generation: Generation,
    pub(crate) user: Option<String>,
    reported: Generation,
}

/// The state, shared by the registry and the clusters.
#[derive(Clone, Debug)]
pub(crate) struct World(Arc<Mutex<State>>);

// === impl World ===

impl World {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(State {
            now,
            began: now,
            accounts: BTreeMap::new(),
            clusters: BTreeMap::new(),
            named: BTreeMap::new(),
            followers: BinaryHeap::new(),
            calls: BTreeMap::new(),
            too_many: 0,
            in_outage: 0,
            minute: 0,
            of_minute: 0,
            violations: 0,
        })))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Adds a cluster that uses an account already.
    pub(crate) fn add(&self, cluster: &ClusterRef, account: &AccountName) {
        let mut state = self.state();
        let last_pull = Some(state.now);
        state.accounts.insert(account.clone(), Made { permitted: true, last_pull });
        *state.named.entry(account.to_string()).or_default() += 1;
        let user = Some(account.to_string());
        let generation = Generation::FIRST;
        state.clusters.insert(cluster.clone(), Cluster { generation, user, reported: generation });
    }

    /// Lets time go on, and clusters follow their pull secret.
    pub(crate) fn advance(&self, by: Duration) {
        let mut state = self.state();
        state.now = later(state.now, by);
        while let Some(Reverse((at, _))) = state.followers.peek() {
            if *at > state.now {
                break;
            }
            let Some(Reverse((at, cluster))) = state.followers.pop() else { break };
            let Some(found) = state.clusters.get_mut(&cluster) else { continue };
            found.reported = found.generation;
            let account = found.user.as_ref().and_then(|user| user.parse::<AccountName>().ok());
            if let Some(made) = account.and_then(|account| state.accounts.get_mut(&account)) {
                made.last_pull = made.last_pull.max(Some(at));
            }
        }
    }

    pub(crate) fn accounts(&self) -> usize {
        self.state().accounts.len()
    }

    fn call(&self, operation: &'static str) -> Result<MutexGuard<'_, State>, ErrorKind> {
        let mut state = self.state();
        *state.calls.entry(operation).or_default() += 1;
        let seconds = state.now.duration_since(state.began).as_secs();
        let (minute, hour) = (seconds / 60, seconds / 3600);
        if minute != state.minute {
            (state.minute, state.of_minute) = (minute, 0);
        }
        state.of_minute += 1;
        // The outage is one hour long.
        if hour == 1 {
            state.in_outage += 1;
            return Err(ErrorKind::Unavailable);
        }
        if hour % 3 == 2 && state.of_minute > TRUE_LIMIT {
            state.too_many += 1;
            return Err(ErrorKind::QuotaExceeded);
        }
        Ok(state)
    }
}

fn error(operation: Operation, name: &AccountName) -> impl Fn(ErrorKind) -> AccountError {
    move |kind| AccountError::new(operation, name, kind)
}

impl Registry for World {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            identities: Identities::Accounts,
            expires: false,
            new_accounts_pull: false,
            passwords: Passwords::Kept,
            lists: Lists::All,
            usage_log: true,
            disables: Disables::Never,
            token_life: Duration::from_hours(1),
            calls_per_minute: PER_MINUTE,
            max_name_bytes: 255,
            max_description: 255,
        }
    }

    fn host(&self) -> &str {
        HOST
    }

    fn login(&self, name: &AccountName) -> String {
        name.to_string()
    }

    async fn create(&self, new: &NewAccount) -> Result<Credential, AccountError> {
        let mut state = self.call("create").map_err(error(Operation::Create, &new.name))?;
        let made = Made { permitted: false, last_pull: None };
        state.accounts.insert(new.name.clone(), made);
        let account = Account {
            name: new.name.clone(),
            login: new.name.to_string(),
            credential: Some(new.credential),
            description: new.description.clone(),
            created: Some(state.now),
            last_access: None,
            expires: None,
            disabled: false,
        };
        Ok(Credential { account, password: password(&new.name) })
    }

    async fn find(&self, _name: &AccountName) -> Result<Option<Account>, AccountError> {
        Ok(None)
    }

    async fn permit(&self, name: &AccountName) -> Result<(), AccountError> {
        let mut state = self.call("permit").map_err(error(Operation::Permit, name))?;
        let found = state.accounts.get_mut(name).ok_or(ErrorKind::NotFound);
        found.map(|made| made.permitted = true).map_err(error(Operation::Permit, name))
    }

    async fn probe(&self, login: &Login, _image: &Image) -> Finding {
        let name: AccountName = login.username.parse().unwrap();
        let verdict = match self.call("probe") {
            Err(_away) => Verdict::Inconclusive,
            Ok(state) => match state.accounts.get(&name) {
                Some(Made { permitted: true, .. }) => Verdict::Pulls,
                Some(_) => Verdict::NotPermitted,
                None => Verdict::Refused,
            },
        };
        Finding { verdict, place: Place::TokenEndpoint, cause: Cause::NoProof }
    }

    async fn usage(&self, name: &AccountName, since: Timestamp) -> Result<Usage, AccountError> {
        let state = self.call("usage").map_err(error(Operation::Usage, name))?;
        let mut usage = Usage::none();
        if let Some(pull) = state.accounts.get(name).and_then(|made| made.last_pull).filter(|pull| *pull >= since) {
            usage.add_pull(pull, None);
        }
        Ok(usage)
    }

    async fn disable(&self, name: &AccountName) -> Result<(), AccountError> {
        Err(error(Operation::Disable, name)(ErrorKind::Unsupported))
    }

    async fn delete(&self, name: &AccountName) -> Result<bool, AccountError> {
        let mut state = self.call("delete").map_err(error(Operation::Delete, name))?;
        if state.named.get(name.as_str()).is_some_and(|clusters| *clusters > 0) {
            state.violations += 1;
        }
        Ok(state.accounts.remove(name).is_some())
    }

    async fn list(&self, _page: Option<&str>) -> Result<ListedAccounts, AccountError> {
        Ok(ListedAccounts::default())
    }
}

impl Clusters for World {
    async fn observe(&self, request: &ObserveRequest<'_>) -> Result<Observed, ClusterError> {
        let state = self.state();
        let Some(cluster) = state.clusters.get(request.cluster) else { return Ok(Observed::Gone) };
        let proof = || {
            let source = "a report".to_owned();
            (cluster.reported >= request.generation).then_some(Proof { at: state.now, source })
        };
        Ok(Observed::Found(Document {
            generation: cluster.generation,
            user: cluster.user.clone(),
            is_same: cluster.user.as_ref() == Some(&request.login.username),
            report: proof(),
            nodes: proof(),
        }))
    }

    async fn publish(
        &self,
        cluster: &ClusterRef,
        entry: &Entry<'_>,
        _at: Generation,
    ) -> Result<Generation, ClusterError> {
        let mut state = self.state();
        let now = state.now;
        let user = entry.login.username.clone();
        *state.named.entry(user.clone()).or_default() += 1;
        let found = state.clusters.get_mut(cluster).unwrap();
        found.generation = found.generation.next();
        let (generation, before) = (found.generation, found.user.replace(user));
        if let Some(named) = before.and_then(|user| state.named.get_mut(&user)) {
            *named = named.saturating_sub(1);
        }
        let number: u64 = cluster.id.trim_start_matches("cls-").parse().unwrap();
        if number % STRAGGLER != STRAGGLER - 1 {
            // From two minutes on, most within ten, some within an hour.
            let minutes = if number.is_multiple_of(20) { 60 } else { 2 + number % 8 };
            state.followers.push(Reverse((later(now, Duration::from_mins(minutes)), cluster.clone())));
        }
        Ok(generation)
    }
}

fn password(name: &AccountName) -> SecretString {
    format!("password of {name}").into()
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.saturating_add(SignedDuration::try_from(by).unwrap()).unwrap()
}
