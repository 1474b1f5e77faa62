//! A pull secret by its meaning: hosts and logins, whatever their order and spelling.

use std::collections::BTreeSet;
use std::fmt;

use docker_config::RegistryKey;
use registry_account::contract::Login;
use secrecy::ExposeSecret as _;

use super::compose::{PullSecret, Unreadable};

/// An entry of a pull secret.
pub(crate) struct Named {
    /// The key in `auths`.
    pub(crate) key: String,
    /// The user and password; `None` if it holds none.
    pub(crate) login: Option<Login>,
}

// === impl PullSecret ===

impl PullSecret {
    /// Returns the pull secret of a text; `None` if it is no credential document.
    pub fn of_text(text: &secrecy::SecretString) -> Option<Self> {
        Self::parse(text).ok()
    }

    /// Returns the entries.
    pub(crate) fn named(&self) -> Vec<Named> {
        let login = |key: &str| {
            let basic = self.document.entry(key)?.basic()?;
            let (user, password) = str::from_utf8(basic.expose_secret()).ok()?.split_once(':')?;
            Some(Login { username: user.to_owned(), password: password.to_owned().into() })
        };
        self.document.keys().map(|key| Named { key: key.to_owned(), login: login(key) }).collect()
    }

    /// Returns the pull secret that is published for a login at some hosts.
    pub(crate) fn composed(&self, hosts: &[&str], login: &Login) -> Result<Self, Unreadable> {
        let mut composed = self.clone();
        for host in hosts {
            composed.set(host, login)?;
        }
        // What is published is a text.
        Self::parse(&composed.text()?)
    }

    /// Returns the keys whose entries mean something else in another pull secret, in their normal form.
    pub(crate) fn changed(&self, other: &Self) -> BTreeSet<String> {
        let all: BTreeSet<&str> = self.document.keys().chain(other.document.keys()).collect();
        let is_changed = |key: &&str| self.document.entry_digest(key) != other.document.entry_digest(key);
        all.into_iter().filter(is_changed).map(normal).collect()
    }
}

/// Returns a key in its normal form.
pub(crate) fn normal(key: &str) -> String {
    RegistryKey::parse(key).map_or_else(|_problem| key.to_owned(), |key| key.normalized().to_owned())
}

impl fmt::Debug for PullSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PullSecret({} entries)", self.document.len())
    }
}
