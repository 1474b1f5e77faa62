//! Registries without accounts: a token is minted, names its own end, and nothing revokes it before.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::SecretString;

use crate::contract::{
    Account, Capabilities, Credential, Disables, Identities, ListedAccounts, Lists, Login, NewAccount, Passwords,
    Registry, Usage,
};
use crate::error::{AccountError, ErrorKind, Operation};
use crate::name::{AccountName, Image};
use crate::probe::{Finding, Prober};

/// Mints tokens of one registry.
pub trait Mint: fmt::Debug + Send + Sync {
    /// The user of every token.
    const USER: &'static str;

    /// Returns the key in `auths`.
    fn host(&self) -> &str;

    /// Returns the life of the bearer tokens that the registry gives for a token.
    fn bearer_life(&self) -> Duration;

    /// Returns the calls that are made in a minute at most.
    fn calls_per_minute(&self) -> u32;

    /// Mints a token.
    fn mint(&self, operation: Operation) -> impl Future<Output = Result<Minted, AccountError>> + Send;
}

/// A token that was minted.
#[derive(Debug)]
pub struct Minted {
    /// The token.
    pub token: SecretString,
    /// Its end.
    pub expires: Timestamp,
}

/// A [`Registry`] whose tokens are minted.
#[derive(Debug)]
pub struct TokenRegistry<M> {
    mint: M,
    prober: Prober,
}

// === impl TokenRegistry ===

impl<M: Mint> TokenRegistry<M> {
    pub(crate) fn new(mint: M, prober: Prober) -> Self {
        Self { mint, prober }
    }

    fn unsupported(&self, operation: Operation) -> AccountError {
        AccountError::new(operation, self.host(), ErrorKind::Unsupported)
    }
}

impl<M: Mint> Registry for TokenRegistry<M> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            identities: Identities::Minted,
            expires: true,
            new_accounts_pull: true,
            passwords: Passwords::ShownOnce,
            lists: Lists::Nothing,
            usage_log: false,
            disables: Disables::Never,
            token_life: self.mint.bearer_life(),
            calls_per_minute: self.mint.calls_per_minute(),
            max_name_bytes: usize::MAX,
            max_description: usize::MAX,
        }
    }

    fn host(&self) -> &str {
        self.mint.host()
    }

    /// Returns the user of every token.
    fn login(&self, _name: &AccountName) -> String {
        M::USER.to_owned()
    }

    async fn create(&self, new: &NewAccount) -> Result<Credential, AccountError> {
        let Minted { token, expires } = self.mint.mint(Operation::Create).await?;
        let account = Account {
            name: new.name.clone(),
            login: M::USER.to_owned(),
            credential: Some(new.credential),
            description: new.description.clone(),
            created: None,
            last_access: None,
            expires: Some(expires),
            disabled: false,
        };
        Ok(Credential { account, password: token })
    }

    async fn find(&self, _name: &AccountName) -> Result<Option<Account>, AccountError> {
        Ok(None)
    }

    async fn permit(&self, _name: &AccountName) -> Result<(), AccountError> {
        Ok(())
    }

    async fn probe(&self, login: &Login, image: &Image) -> Finding {
        self.prober.probe(&login.probe(self.host(), image)).await
    }

    async fn usage(&self, _name: &AccountName, _since: Timestamp) -> Result<Usage, AccountError> {
        Err(self.unsupported(Operation::Usage))
    }

    async fn disable(&self, _name: &AccountName) -> Result<(), AccountError> {
        Err(self.unsupported(Operation::Disable))
    }

    async fn delete(&self, _name: &AccountName) -> Result<bool, AccountError> {
        Ok(false)
    }

    /// Lists nothing, and proves the identity: a token is minted, and dropped.
    async fn list(&self, _page: Option<&str>) -> Result<ListedAccounts, AccountError> {
        self.mint.mint(Operation::List).await.map(|_minted| ListedAccounts::default())
    }
}
