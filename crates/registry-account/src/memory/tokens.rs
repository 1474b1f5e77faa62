//! The tokens of a registry in memory that has no accounts.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret as _;

use crate::contract::{Account, Credential, Login, NewAccount};

/// The user of every token.
pub(super) const USER: &str = "token";

/// Mints tokens, and knows those that it has minted.
pub(super) struct Tokens {
    life: Duration,
    /// Their ends.
    minted: BTreeMap<String, Timestamp>,
}

// === impl Tokens ===

impl Tokens {
    pub(super) fn new(life: Duration) -> Self {
        Self { life, minted: BTreeMap::new() }
    }

    pub(super) fn mint(&mut self, new: &NewAccount, now: Timestamp) -> Credential {
        let life = SignedDuration::try_from(self.life).unwrap_or(SignedDuration::MAX);
        let expires = now.saturating_add(life).unwrap_or(Timestamp::MAX);
        let password = format!("token-{}", self.minted.len());
        self.minted.insert(password.clone(), expires);
        let account = Account {
            name: new.name.clone(),
            login: USER.to_owned(),
            credential: Some(new.credential),
            description: new.description.clone(),
            created: Some(now),
            last_access: None,
            expires: Some(expires),
            disabled: false,
        };
        Credential { account, password: password.into() }
    }

    /// Returns true if a login is a token that has not expired.
    pub(super) fn accepts(&self, login: &Login, now: Timestamp) -> bool {
        let expires = self.minted.get(login.password.expose_secret());
        login.username == USER && expires.is_some_and(|expires| now < *expires)
    }
}
