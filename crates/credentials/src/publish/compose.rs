//! One entry of a credential document, among others that stay as they are.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use docker_config::{Document, Limits, RawEntry, RegistryKey, shown_key};
use registry_account::contract::Login;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use serde::Deserialize;

use crate::entries::{EntryDigests, ObservedEntry, Validity};

/// A pull secret as a cluster has it.
#[derive(Clone)]
pub struct PullSecret {
    pub(super) document: Document,
    /// True if it was given in base64.
    in_base64: bool,
}

/// The entry of a registry.
pub(super) struct Found {
    /// Its user; `None` if it holds no user and password.
    pub(super) user: Option<String>,
    /// True if it is the only entry of the registry, and has this login.
    pub(super) is_same: bool,
}

/// The members of an entry that hold a token in place of user and password.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens {
    identitytoken: Option<SecretString>,
    registrytoken: Option<SecretString>,
}

/// A pull secret that cannot be read as a credential document, or an entry that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

// === impl PullSecret ===

impl PullSecret {
    /// Returns one without entries.
    pub(super) fn empty() -> Self {
        Self { document: Document::default(), in_base64: false }
    }

    /// Returns the text of one with these logins, each under its host.
    pub(crate) fn of(logins: &BTreeMap<&str, Login>) -> Result<SecretString, Unreadable> {
        let mut new = Self::empty();
        for (host, login) in logins {
            new.set(host, login)?;
        }
        new.text()
    }

    /// Parses a pull secret: a JSON text, or the base64 of one.
    pub(super) fn parse(text: &SecretString) -> Result<Self, Unreadable> {
        let text = text.expose_secret();
        let decoded = STANDARD.decode(text.trim()).ok().map(Zeroizing::new);
        let bytes = decoded.as_ref().map_or(text.as_bytes(), |decoded| decoded.as_slice());
        let document = Document::parse(bytes, &Limits::default()).map_err(|_problems| Unreadable)?;
        Ok(Self { document, in_base64: decoded.is_some() })
    }

    /// Returns the entry of a registry; `None` if there is none.
    pub(super) fn find(&self, host: &str, login: &Login) -> Option<Found> {
        let keys = self.keys(host);
        let entry = self.document.entry(keys.first()?)?;
        let basic = entry.basic();
        let pair = basic.as_ref().and_then(|basic| str::from_utf8(basic.expose_secret()).ok()?.split_once(':'));
        let is_login =
            pair.is_some_and(|(user, password)| user == login.username && password == login.password.expose_secret());
        Some(Found { user: pair.map(|(user, _)| user.to_owned()), is_same: is_login && keys.len() == 1 })
    }

    /// Returns its entries without their credentials.
    pub(super) fn entries(&self, digests: &EntryDigests) -> Vec<ObservedEntry> {
        let entry = |key: &str| {
            let (entry, digest) = (self.document.entry(key)?, self.document.entry_digest(key)?);
            let basic = entry.basic();
            let pair = basic.as_ref().and_then(|basic| str::from_utf8(basic.expose_secret()).ok()?.split_once(':'));
            let validity = match pair {
                Some((_user, password)) => Validity::of(password.as_bytes()),
                None => validity_of_token(entry),
            };
            let user = pair.map(|(user, _password)| user.to_owned());
            Some(ObservedEntry { host: shown_key(key), digest: digests.of(&digest), user, validity })
        };
        self.document.keys().filter_map(entry).collect()
    }

    /// Sets the entry of a registry. Other spellings of its key are removed, as it would depend on the reader which of them
    /// counts; entries for parts of the registry stay.
    pub(super) fn set(&mut self, host: &str, login: &Login) -> Result<(), Unreadable> {
        let entry = entry(host, login).ok_or(Unreadable)?;
        for key in self.keys(host) {
            self.document.remove(&key);
        }
        self.document.insert(host, entry);
        Ok(())
    }

    /// Returns its text, in the form in which it was given.
    pub(super) fn text(&self) -> Result<SecretString, Unreadable> {
        let bytes: SecretSlice<u8> = self.document.to_bytes();
        if self.in_base64 {
            return Ok(STANDARD.encode(bytes.expose_secret()).into());
        }
        str::from_utf8(bytes.expose_secret()).map(SecretString::from).map_err(|_quotes| Unreadable)
    }

    /// Returns the keys that mean a registry as a whole.
    fn keys(&self, host: &str) -> Vec<String> {
        let Ok(wanted) = RegistryKey::parse(host) else { return Vec::new() };
        let is_same = |key: &&str| RegistryKey::parse(key).is_ok_and(|key| key.normalized() == wanted.normalized());
        self.document.keys().filter(is_same).map(str::to_owned).collect()
    }
}

/// Returns the validity that the token of an entry states.
fn validity_of_token(entry: &RawEntry) -> Validity {
    let tokens: Tokens = serde_json::from_slice(entry.to_bytes().expose_secret()).unwrap_or_default();
    let token = tokens.identitytoken.or(tokens.registrytoken);
    token.map_or_else(Validity::default, |token| Validity::of(token.expose_secret().as_bytes()))
}

/// Returns the entry of a login.
fn entry(host: &str, login: &Login) -> Option<RawEntry> {
    let pair = Zeroizing::new(format!("{}:{}", login.username, login.password.expose_secret()));
    let auth = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
    let host_text = serde_json::to_string(host).ok()?;
    let text = Zeroizing::new(format!(r#"{{"auths":{{{host_text}:{{"auth":"{}"}}}}}}"#, *auth));
    Document::parse(text.as_bytes(), &Limits::default()).ok()?.entry(host).cloned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn login(user: &str, password: &str) -> Login {
        Login { username: user.to_owned(), password: password.to_owned().into() }
    }

    fn set(text: &str) -> String {
        let mut secret = PullSecret::parse(&text.to_owned().into()).unwrap();
        secret.set("quay.io", &login("u", "p")).unwrap();
        let found = secret.find("quay.io", &login("u", "p")).unwrap();
        assert!(found.is_same && found.user.as_deref() == Some("u"));
        secret.text().unwrap().expose_secret().to_owned()
    }

    #[rstest]
    #[case::added(
        r#"{"auths":{"a.example.com":{"auth":"YTpi"}},"credHelpers":{"b":"c"}}"#,
        r#"{"auths":{"a.example.com":{"auth":"YTpi"},"quay.io":{"auth":"dTpw"}},"credHelpers":{"b":"c"}}"#
    )]
    #[case::replaced(
        r#"{"auths":{"quay.io":{"auth":"YTpi","email":"x@example.com"},"quay.io/team":{"auth":"YTpi"}}}"#,
        r#"{"auths":{"quay.io":{"auth":"dTpw"},"quay.io/team":{"auth":"YTpi"}}}"#
    )]
    #[case::spelled_otherwise(
        r#"{"auths":{"https://quay.io/v1/":{"auth":"YTpi"},"QUAY.io":{"auth":"YTpi"},"quay.io:443":{"auth":"YTpi"}}}"#,
        r#"{"auths":{"quay.io":{"auth":"dTpw"},"quay.io:443":{"auth":"YTpi"}}}"#
    )]
    fn only_the_entry_of_the_registry_changes(#[case] before: &str, #[case] after: &str) {
        assert_eq!(set(before), after);
        assert_eq!(set(after), after);
        assert_eq!(set(&STANDARD.encode(before)), STANDARD.encode(after), "in base64 it stays so");
    }

    #[test]
    fn every_other_entry_keeps_its_meaning() {
        let before = r#"{"auths":{"a":{"username":"x","password":"y"},"b":{"auth":"YTpi","unknown":[1,{"c":null}]}}}"#;
        let (old, new) = (PullSecret::parse(&before.to_owned().into()), PullSecret::parse(&set(before).into()));
        let (old, new) = (old.unwrap_or_else(|_| PullSecret::empty()), new.unwrap_or_else(|_| PullSecret::empty()));
        for key in ["a", "b"] {
            assert!(old.document.entry_digest(key).is_some());
            assert_eq!(old.document.entry_digest(key), new.document.entry_digest(key));
        }
    }

    #[rstest]
    #[case::other_user("v", "p", Some("u"), false)]
    #[case::other_password("u", "q", Some("u"), false)]
    #[case::same("u", "p", Some("u"), true)]
    fn an_entry_is_compared_as_a_whole(
        #[case] user: &str,
        #[case] password: &str,
        #[case] found: Option<&str>,
        #[case] same: bool,
    ) {
        let secret = PullSecret::parse(&set(r#"{"auths":{}}"#).into()).unwrap_or_else(|_| PullSecret::empty());
        let entry = secret.find("quay.io", &login(user, password)).unwrap();
        assert_eq!((entry.user.as_deref(), entry.is_same), (found, same));
        assert!(secret.find("registry.example.com", &login(user, password)).is_none());
    }

    #[test]
    fn two_spellings_are_not_the_same() {
        let text = r#"{"auths":{"quay.io":{"auth":"dTpw"},"https://quay.io":{"auth":"YTpi"}}}"#;
        let secret = PullSecret::parse(&text.to_owned().into()).unwrap_or_else(|_| PullSecret::empty());
        assert!(!secret.find("quay.io", &login("u", "p")).unwrap().is_same);
    }

    #[rstest]
    #[case("not json")]
    #[case(r#"{"auths":{"a":{"auth":"YTpi"},"a":{"auth":"YTpi"}}}"#)]
    fn a_document_that_cannot_be_read_is_not_written(#[case] text: &str) {
        assert!(PullSecret::parse(&text.to_owned().into()).is_err());
    }
}
