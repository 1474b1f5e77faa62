//! The contract of registries with accounts.
//!
//! No method retries. After [`Unavailable`](crate::ErrorKind::Unavailable), [`TimedOut`](crate::ErrorKind::TimedOut) or
//! [`Internal`](crate::ErrorKind::Internal) the operation may have been carried out: the same call again is safe, as each
//! leads to the same state.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};

use crate::error::AccountError;
use crate::name::{AccountName, CredentialId, Image};
use crate::probe::{Finding, ProbeRequest};

/// The most repositories, and the most addresses, that [`Usage`] names.
pub const MAX_NAMED: usize = 100;

/// A registry of images that has accounts.
pub trait Registry: Send + Sync {
    /// Returns the capabilities of the registry.
    fn capabilities(&self) -> Capabilities;

    /// Returns the registry's host, with a port where it needs one: its key in `auths`.
    fn host(&self) -> &str;

    /// Returns the name with which an account logs in.
    fn login(&self, name: &AccountName) -> String;

    /// Creates an account and returns its password; see [`Capabilities::new_accounts_pull`] for its permissions. If the account
    /// exists with this credential's id, an earlier answer was lost, and it is returned: as it is, or with another password
    /// where passwords are [`Passwords::ShownOnce`].
    ///
    /// # Errors
    ///
    /// `NameTaken` if the name belongs to another credential; `Corrupt` if the registry has kept another description or
    /// metadata than the given ones; `PasswordLost` if an account that exists cannot get another password.
    fn create(&self, new: &NewAccount) -> impl Future<Output = Result<Credential, AccountError>> + Send;

    /// Reads an account; `None` if it does not exist.
    fn find(&self, name: &AccountName) -> impl Future<Output = Result<Option<Account>, AccountError>> + Send;

    /// Gives an account the permission to pull. It may have it already.
    ///
    /// # Errors
    ///
    /// `NotFound` if the account does not exist; `NotPrepared` if what all accounts share is missing.
    fn permit(&self, name: &AccountName) -> impl Future<Output = Result<(), AccountError>> + Send;

    /// Logs in and asks for the permission to pull an image, as a node would.
    fn probe(&self, login: &Login, image: &Image) -> impl Future<Output = Finding> + Send;

    /// Reads who has used an account since a time, newest first, until a page of the registry's log has a pull or the log ends.
    /// An account that does not exist has no usage.
    ///
    /// # Errors
    ///
    /// `Unsupported` without [`Capabilities::usage_log`].
    fn usage(&self, name: &AccountName, since: Timestamp) -> impl Future<Output = Result<Usage, AccountError>> + Send;

    /// Makes an account's password useless and keeps the account, so that its usage can still be read; see [`Disables`].
    ///
    /// # Errors
    ///
    /// `Unsupported` at a registry that cannot; `NotFound` if the account does not exist.
    fn disable(&self, name: &AccountName) -> impl Future<Output = Result<(), AccountError>> + Send;

    /// Deletes an account. Returns false if it did not exist. Tokens that were issued before are good for up to
    /// [`Capabilities::token_life`].
    fn delete(&self, name: &AccountName) -> impl Future<Output = Result<bool, AccountError>> + Send;

    /// Lists the accounts: one page of the registry's largest size in one call. `page` is [`ListedAccounts::next`] of the
    /// page before; `None` asks for the first. A list may lag behind creations and deletions. Where accounts cannot be listed, see
    /// [`Capabilities::lists`], the identity is proven, and no account returned.
    fn list(&self, page: Option<&str>) -> impl Future<Output = Result<ListedAccounts, AccountError>> + Send;
}

/// The capabilities of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The place of a second credential beside the first.
    pub identities: Identities,
    /// True if the registry lets an account expire.
    pub expires: bool,
    /// True if an account has the permission to pull from its creation on: the registry has none without a permission.
    pub new_accounts_pull: bool,
    /// The times at which a password can be read.
    pub passwords: Passwords,
    /// The accounts that [`Registry::list`] lists.
    pub lists: Lists,
    /// True if the registry shows the usage of an account.
    pub usage_log: bool,
    /// The effect of [`Registry::disable`].
    pub disables: Disables,
    /// Time for which a bearer token may still be good that was issued before a deletion, or before a minted token's end.
    pub token_life: Duration,
    /// Calls that the registry allows in a minute.
    pub calls_per_minute: u32,
    /// The longest name of an account, in bytes.
    pub max_name_bytes: usize,
    /// The longest description of an account, in characters.
    pub max_description: usize,
}

/// The place of a second credential beside the first, so that both are alive during a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identities {
    /// Another account.
    Accounts,
    /// Another password of the same account.
    Passwords,
    /// Another token. There is no account: each call of [`Registry::create`] mints a token, which is good until
    /// [`Account::expires`] and cannot be revoked. All tokens have the same user. Nothing is found, listed or deleted.
    Minted,
}

/// The times at which the password of an account can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passwords {
    /// Always.
    Kept,
    /// Only in the answer that makes it. An account whose password did not arrive gets another one.
    ShownOnce,
}

/// The accounts that a registry lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// All.
    All,
    /// None: accounts are found by their names alone, or there are none.
    Nothing,
}

/// The effect of disabling an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disables {
    /// The registry cannot.
    Never,
    /// The account stays and can be enabled again.
    Reversibly,
    /// The account stays, and its password is lost.
    ForGood,
}

/// An account to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAccount {
    /// A name that was never used before.
    pub name: AccountName,
    /// Our id of its credential.
    pub credential: CredentialId,
    /// Description for people.
    pub description: String,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name within its organization.
    pub name: AccountName,
    /// The name with which it logs in.
    pub login: String,
    /// The id of its credential; `None` if the account is not of this service.
    pub credential: Option<CredentialId>,
    /// Description for people.
    pub description: String,
    /// Time of its creation.
    pub created: Option<Timestamp>,
    /// Time of its last use, to the registry's precision; also moved by our own probes.
    pub last_access: Option<Timestamp>,
    /// Time from which it is not accepted.
    pub expires: Option<Timestamp>,
    /// True if it is known to be disabled.
    pub disabled: bool,
}

/// An account with its password.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The account.
    pub account: Account,
    /// Its password.
    pub password: SecretString,
}

/// User and password as they are sent to a registry.
#[derive(Clone, Debug)]
pub struct Login {
    /// The user.
    pub username: String,
    /// The password.
    pub password: SecretString,
}

/// The usage of an account since a time. Our own probes are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Number of pulls of manifests that were read.
    pub pulls: u64,
    /// Time of the first of them; exact if the usage is complete.
    pub first_pull: Option<Timestamp>,
    /// Time of the last one.
    pub last_pull: Option<Timestamp>,
    /// Repositories that were pulled from; at most [`MAX_NAMED`].
    pub repositories: BTreeSet<String>,
    /// Number of logins with a wrong password that were read; 0 at a registry that does not record them.
    pub failed_logins: u64,
    /// Time of the last one.
    pub last_failed_login: Option<Timestamp>,
    /// Addresses that they came from; at most [`MAX_NAMED`].
    pub failed_login_sources: BTreeSet<IpAddr>,
    /// False if there is more than was read; the newest entries were read.
    pub complete: bool,
    /// Number of requests that it took.
    pub requests: u32,
}

/// One page of a list of accounts.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ListedAccounts {
    /// Accounts whose names could be of this service.
    pub accounts: Vec<ListedAccount>,
    /// The token of the next page; `None` on the last one.
    pub next: Option<String>,
}

/// An account in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAccount {
    /// The name.
    pub name: AccountName,
    /// Our id of its credential, where the registry's list shows it; [`Registry::find`] always does.
    pub credential: Option<CredentialId>,
    /// Time of its creation.
    pub created: Option<Timestamp>,
}

// === impl Credential ===

impl Credential {
    /// Returns what a node sends to log in.
    pub fn login(&self) -> Login {
        Login { username: self.account.login.clone(), password: self.password.clone() }
    }
}

// === impl Login ===

impl Login {
    /// Returns a probe of this login at a host's image.
    pub(crate) fn probe(&self, host: &str, image: &Image) -> ProbeRequest {
        let credential = format!("{}:{}", self.username, self.password.expose_secret()).into_bytes().into();
        ProbeRequest { host: host.to_owned(), credential, image: Some(image.clone()) }
    }
}

// === impl Usage ===

impl Usage {
    /// Returns the usage of an account that was not used.
    pub fn none() -> Self {
        Self {
            pulls: 0,
            first_pull: None,
            last_pull: None,
            repositories: BTreeSet::new(),
            failed_logins: 0,
            last_failed_login: None,
            failed_login_sources: BTreeSet::new(),
            complete: true,
            requests: 1,
        }
    }

    /// Adds a pull of a manifest.
    pub fn add_pull(&mut self, at: Timestamp, repository: Option<String>) {
        self.pulls = self.pulls.saturating_add(1);
        self.first_pull = Some(self.first_pull.map_or(at, |first| first.min(at)));
        self.last_pull = self.last_pull.max(Some(at));
        if self.repositories.len() < MAX_NAMED {
            self.repositories.extend(repository);
        }
    }

    /// Adds a login with a wrong password.
    pub fn add_failed_login(&mut self, at: Timestamp, source: Option<IpAddr>) {
        self.failed_logins = self.failed_logins.saturating_add(1);
        self.last_failed_login = self.last_failed_login.max(Some(at));
        if self.failed_login_sources.len() < MAX_NAMED {
            self.failed_login_sources.extend(source);
        }
    }
}
