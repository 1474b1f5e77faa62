//! Names the accounts at a registry that the ledger does not know, or counts as over. Deletes nothing.

use std::collections::BTreeMap;

use jiff::Timestamp;
use registry_account::contract::{ListedAccount, Registry};
use registry_account::error::AccountError;
use registry_account::name::{AccountName, CredentialId, NamePrefix};

use crate::credential::RegistryName;
use crate::decide::Grant;
use crate::ledger::{Call, KnownAccount, Ledger, LedgerError};
use crate::state::{Lane, State};

/// An account that should not be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// The name.
    pub account: AccountName,
    /// The time of its creation.
    pub created: Option<Timestamp>,
    /// The id of a credential that the registry has for it.
    pub credential: Option<CredentialId>,
    /// The state of its credential in the ledger; `None` if the ledger does not know the name.
    pub state: Option<State>,
}

/// The progress of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The accounts found so far.
    pub strays: Vec<Stray>,
    /// Number of accounts with the prefix that were checked.
    pub accounts: usize,
    /// The page to go on with.
    page: Option<String>,
}

/// The state of a sweep after a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swept {
    /// Another page follows.
    More,
    /// The rate of the registry is exhausted until then.
    Wait(Timestamp),
    /// That was the last page.
    Done,
}

/// The registry to sweep.
#[derive(Clone, Copy, Debug)]
pub struct Sweeping<'a, R> {
    /// The ledger.
    pub ledger: &'a Ledger,
    /// The registry.
    pub registry: &'a R,
    /// Its name.
    pub name: &'a RegistryName,
    /// The beginning of the names of our accounts.
    pub prefix: &'a NamePrefix,
    /// The rate in calls a minute.
    pub per_minute: u32,
}

/// A failed sweep.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SweepError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The registry.
    #[error(transparent)]
    Registry(#[from] AccountError),
}

// === impl Sweep ===

impl Sweep {
    /// Checks the next page of a registry's accounts.
    pub async fn next<R: Registry>(&mut self, sweeping: &Sweeping<'_, R>, now: Timestamp) -> Result<Swept, SweepError> {
        let Sweeping { ledger, registry, name, prefix, per_minute } = *sweeping;
        let call = Call { lane: Lane::Audit, per_minute };
        if let Grant::Wait(until) = ledger.take_call(name, call, now).await? {
            return Ok(Swept::Wait(until));
        }
        let listed = registry.list(self.page.as_deref()).await?;
        let own: Vec<ListedAccount> =
            listed.accounts.into_iter().filter(|listed| listed.name.has_prefix(prefix)).collect();
        let names: Vec<AccountName> = own.iter().map(|listed| listed.name.clone()).collect();
        // The ledger is read after the list, so that an account of a credential that was reserved meanwhile is known.
        let known: BTreeMap<AccountName, KnownAccount> =
            ledger.known(name, &names).await?.into_iter().map(|known| (known.account.clone(), known)).collect();
        self.accounts += own.len();
        self.strays.extend(own.into_iter().filter_map(|listed| stray(listed, &known)));
        self.page = listed.next;
        Ok(if self.page.is_some() { Swept::More } else { Swept::Done })
    }
}

/// A list may lag behind a deletion, so that a credential that is over is named only if it is so for good.
fn stray(listed: ListedAccount, known: &BTreeMap<AccountName, KnownAccount>) -> Option<Stray> {
    let state = known.get(&listed.name).map(|known| known.state);
    let is_stray = state.is_none_or(State::is_final);
    is_stray.then_some(Stray { account: listed.name, created: listed.created, credential: listed.credential, state })
}
