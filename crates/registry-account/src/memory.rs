//! A registry in memory, for tests, with scripted faults and a clock of its own.

mod tokens;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};

use crate::contract::{
    Account, Capabilities, Credential, Disables, Identities, ListedAccount, ListedAccounts, Lists, Login, NewAccount,
    Passwords, Registry, Usage,
};
use crate::error::{AccountError, ErrorKind, Operation};
use crate::name::{AccountName, CredentialId, Image, Repository};
use crate::probe::{Cause, Finding, Place, Verdict};
use tokens::Tokens;

/// The registry's host.
const HOST: &str = "memory.invalid";
/// The largest page of a list of accounts.
const MAX_PAGE: usize = 100;
/// The longest description, in characters.
const MAX_DESCRIPTION: usize = 255;
/// Life of a bearer token.
const TOKEN_LIFE: Duration = Duration::from_hours(1);

/// A [`Registry`] in memory with the capabilities of Quay. Unlike Quay it refuses a name that was used before, so that a
/// test finds a caller that uses one twice.
pub struct MemoryRegistry {
    state: Mutex<State>,
}

/// The next fault of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Fails before anything is done.
    Before(ErrorKind),
    /// Is done, and the answer is lost.
    After(ErrorKind),
    /// Keeps another description than the given one; only for [`Operation::Create`].
    Garbled,
}

/// A pull of a manifest, or an attempt to log in.
#[derive(Clone, Debug)]
pub struct Visit<'a> {
    /// User and password.
    pub login: &'a Login,
    /// The repository to pull from.
    pub repository: &'a Repository,
    /// The address that it comes from.
    pub source: IpAddr,
}

#[derive(Default)]
struct State {
    now: Timestamp,
    accounts: BTreeMap<AccountName, Stored>,
    spent: BTreeSet<AccountName>,
    bearers: BTreeMap<String, Bearer>,
    visits: Vec<Recorded>,
    faults: BTreeMap<Operation, VecDeque<Fault>>,
    findings: VecDeque<Finding>,
    /// The list as it was when lists began to lag.
    lagging: Option<Vec<ListedAccount>>,
    passwords: u64,
    /// The tokens of a registry without accounts.
    tokens: Option<Tokens>,
}

struct Stored {
    account: Account,
    password: SecretString,
    permitted: bool,
}

struct Bearer {
    permits: bool,
    expires: Timestamp,
}

struct Recorded {
    name: AccountName,
    at: Timestamp,
    source: IpAddr,
    /// `None` for a failed login.
    repository: Option<String>,
}

// === impl MemoryRegistry ===

impl MemoryRegistry {
    /// Returns a registry without accounts, at the beginning of 1970.
    pub fn new() -> Self {
        Self { state: Mutex::default() }
    }

    /// Returns a registry without accounts, whose tokens are good for that long, at the beginning of 1970.
    pub fn of_tokens(life: Duration) -> Self {
        Self { state: Mutex::new(State { tokens: Some(Tokens::new(life)), ..State::default() }) }
    }

    /// Lets the registry's time go on.
    pub fn advance(&self, by: Duration) {
        let mut state = self.lock();
        state.now = state.now.checked_add(by).unwrap_or(Timestamp::MAX);
    }

    /// Returns the registry's time.
    pub fn now(&self) -> Timestamp {
        self.lock().now
    }

    /// Adds a fault for the next call of an operation that has none yet.
    pub fn inject(&self, operation: Operation, fault: Fault) {
        self.lock().faults.entry(operation).or_default().push_back(fault);
    }

    /// Adds the finding of the next probe that has none yet.
    pub fn inject_finding(&self, finding: Finding) {
        self.lock().findings.push_back(finding);
    }

    /// Lets lists show the accounts of now until it is called with false.
    pub fn lag_lists(&self, lag: bool) {
        let mut state = self.lock();
        state.lagging = lag.then(|| state.listed());
    }

    /// Adds an account that carries no credential's id.
    pub fn add_stranger(&self, name: &AccountName) {
        let mut state = self.lock();
        state.insert(name, login_of(name), None, String::new());
    }

    /// Issues a bearer token, as to a node; `None` if the login is refused.
    pub fn bearer(&self, login: &Login) -> Option<String> {
        let mut state = self.lock();
        let expires = state.now.checked_add(TOKEN_LIFE).unwrap_or(Timestamp::MAX);
        let permits = state.permits(login)?;
        let token = format!("bearer-{}", state.bearers.len());
        state.bearers.insert(token.clone(), Bearer { permits, expires });
        Some(token)
    }

    /// Returns true if a bearer token still permits pulls.
    pub fn serves(&self, bearer: &str) -> bool {
        let state = self.lock();
        state.bearers.get(bearer).is_some_and(|bearer| bearer.permits && state.now < bearer.expires)
    }

    /// Pulls a manifest as a node does, and records it. Returns false if it was refused.
    pub fn pull(&self, visit: &Visit<'_>) -> bool {
        let mut state = self.lock();
        let permitted = state.permits(visit.login);
        let repository = match permitted {
            Some(true) => Some(visit.repository.to_string()),
            Some(false) => return false,
            None => None,
        };
        let (at, source) = (state.now, visit.source);
        let name = state.accounts.keys().find(|name| login_of(name) == visit.login.username).cloned();
        if let Some(name) = name {
            state.visits.push(Recorded { name, at, source, repository });
        }
        permitted.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the work of an operation, unless its next fault comes before, and loses the answer if it comes after.
    fn with<T>(
        &self,
        operation: Operation,
        resource: String,
        work: impl FnOnce(&mut State, Option<Fault>) -> Result<T, ErrorKind>,
    ) -> Result<T, AccountError> {
        let mut state = self.lock();
        let fault = state.faults.get_mut(&operation).and_then(VecDeque::pop_front);
        let result = match fault {
            Some(Fault::Before(kind)) => Err(kind),
            Some(Fault::After(kind)) => work(&mut state, fault).and(Err(kind)),
            Some(Fault::Garbled) | None => work(&mut state, fault),
        };
        result.map_err(|kind| AccountError::new(operation, resource, kind))
    }
}

impl Default for MemoryRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryRegistry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryRegistry").finish_non_exhaustive()
    }
}

impl Registry for MemoryRegistry {
    fn capabilities(&self) -> Capabilities {
        let has_tokens = self.lock().tokens.is_some();
        Capabilities {
            identities: if has_tokens { Identities::Minted } else { Identities::Accounts },
            expires: has_tokens,
            new_accounts_pull: has_tokens,
            passwords: if has_tokens { Passwords::ShownOnce } else { Passwords::Kept },
            lists: if has_tokens { Lists::Nothing } else { Lists::All },
            usage_log: !has_tokens,
            disables: if has_tokens { Disables::Never } else { Disables::ForGood },
            token_life: if has_tokens { Duration::ZERO } else { TOKEN_LIFE },
            calls_per_minute: 60,
            max_name_bytes: 49,
            max_description: MAX_DESCRIPTION,
        }
    }

    fn host(&self) -> &str {
        HOST
    }

    fn login(&self, name: &AccountName) -> String {
        login_of(name)
    }

    async fn create(&self, new: &NewAccount) -> Result<Credential, AccountError> {
        self.with(Operation::Create, login_of(&new.name), |state, fault| state.create(new, fault))
    }

    async fn find(&self, name: &AccountName) -> Result<Option<Account>, AccountError> {
        self.with(Operation::Find, login_of(name), |state, _| {
            Ok(state.accounts.get(name).map(|stored| stored.account.clone()))
        })
    }

    async fn permit(&self, name: &AccountName) -> Result<(), AccountError> {
        self.with(Operation::Permit, login_of(name), |state, _| {
            if state.tokens.is_none() {
                state.accounts.get_mut(name).ok_or(ErrorKind::NotFound)?.permitted = true;
            }
            Ok(())
        })
    }

    async fn probe(&self, login: &Login, _image: &Image) -> Finding {
        let mut state = self.lock();
        if let Some(finding) = state.findings.pop_front() {
            return finding;
        }
        let (verdict, cause) = match state.permits(login) {
            Some(true) => (Verdict::Pulls, Cause::Permits),
            Some(false) => (Verdict::NotPermitted, Cause::PermitsNothing),
            None => (Verdict::Refused, Cause::Status(401)),
        };
        Finding { verdict, place: Place::TokenEndpoint, cause }
    }

    async fn usage(&self, name: &AccountName, since: Timestamp) -> Result<Usage, AccountError> {
        self.with(Operation::Usage, login_of(name), |state, _| {
            if state.tokens.is_some() {
                return Err(ErrorKind::Unsupported);
            }
            let mut usage = Usage::none();
            for visit in state.visits.iter().filter(|visit| visit.name == *name && visit.at >= since) {
                match &visit.repository {
                    Some(repository) => usage.add_pull(visit.at, Some(repository.clone())),
                    None => usage.add_failed_login(visit.at, Some(visit.source)),
                }
            }
            Ok(usage)
        })
    }

    async fn disable(&self, name: &AccountName) -> Result<(), AccountError> {
        self.with(Operation::Disable, login_of(name), |state, _| {
            if state.tokens.is_some() {
                return Err(ErrorKind::Unsupported);
            }
            state.accounts.get_mut(name).ok_or(ErrorKind::NotFound)?.account.disabled = true;
            Ok(())
        })
    }

    async fn delete(&self, name: &AccountName) -> Result<bool, AccountError> {
        self.with(Operation::Delete, login_of(name), |state, _| Ok(state.accounts.remove(name).is_some()))
    }

    async fn list(&self, page: Option<&str>) -> Result<ListedAccounts, AccountError> {
        self.with(Operation::List, HOST.to_owned(), |state, _| {
            let all = state.lagging.clone().unwrap_or_else(|| state.listed());
            let mut rest = all.into_iter().filter(|one| page.is_none_or(|page| one.name.as_str() > page));
            let accounts: Vec<_> = rest.by_ref().take(MAX_PAGE).collect();
            let last = accounts.last().map(|one| one.name.to_string());
            let next = last.filter(|_| rest.next().is_some());
            Ok(ListedAccounts { accounts, next })
        })
    }
}

// === impl State ===

impl State {
    fn create(&mut self, new: &NewAccount, fault: Option<Fault>) -> Result<Credential, ErrorKind> {
        if new.description.chars().count() > MAX_DESCRIPTION {
            return Err(ErrorKind::Invalid);
        }
        if let Some(tokens) = &mut self.tokens {
            return Ok(tokens.mint(new, self.now));
        }
        match self.accounts.get(&new.name) {
            Some(Stored { account, .. }) if account.credential != Some(new.credential) => {
                return Err(ErrorKind::NameTaken);
            }
            Some(_) => {}
            None if self.spent.contains(&new.name) => return Err(ErrorKind::NameTaken),
            None => {
                let is_garbled = fault == Some(Fault::Garbled);
                let description = if is_garbled { String::new() } else { new.description.clone() };
                self.insert(&new.name, login_of(&new.name), Some(new.credential), description);
            }
        }
        match self.accounts.get(&new.name) {
            Some(Stored { account, password, .. }) if account.description == new.description => {
                Ok(Credential { account: account.clone(), password: password.clone() })
            }
            _ => Err(ErrorKind::Corrupt),
        }
    }

    fn insert(&mut self, name: &AccountName, login: String, credential: Option<CredentialId>, description: String) {
        self.passwords += 1;
        self.spent.insert(name.clone());
        let account = Account {
            name: name.clone(),
            login,
            credential,
            description,
            created: Some(self.now),
            last_access: None,
            expires: None,
            disabled: false,
        };
        let password = format!("password-{}-of-{name}", self.passwords).into();
        self.accounts.insert(name.clone(), Stored { account, password, permitted: false });
    }

    /// Returns true if a login may pull; `None` if it is refused.
    fn permits(&mut self, login: &Login) -> Option<bool> {
        match &self.tokens {
            Some(tokens) => tokens.accepts(login, self.now).then_some(true),
            None => self.log_in(login).map(|stored| stored.permitted),
        }
    }

    /// Returns the account of a login that is accepted.
    fn log_in(&mut self, login: &Login) -> Option<&Stored> {
        let now = self.now;
        let stored = self.accounts.values_mut().find(|stored| stored.account.login == login.username)?;
        let is_right = stored.password.expose_secret() == login.password.expose_secret();
        if !is_right || stored.account.disabled {
            return None;
        }
        stored.account.last_access = Some(now);
        Some(stored)
    }

    fn listed(&self) -> Vec<ListedAccount> {
        let listed = |Stored { account, .. }: &Stored| ListedAccount {
            name: account.name.clone(),
            credential: account.credential,
            created: account.created,
        };
        self.accounts.values().map(listed).collect()
    }
}

fn login_of(name: &AccountName) -> String {
    format!("memory+{name}")
}
