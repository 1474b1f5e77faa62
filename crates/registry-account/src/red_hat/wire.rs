//! Red Hat's documents.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use super::settings::Partner;
use crate::contract::Account;
use crate::description::Described;
use crate::name::{AccountName, CredentialId};

/// A service account as Red Hat shows it, always with its password.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServiceAccount {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    partner_code: Option<String>,
    /// In a form that nothing states.
    #[serde(default)]
    created: Value,
    credentials: Credentials,
}

#[derive(Deserialize)]
struct Credentials {
    username: String,
    password: SecretString,
}

/// The claim of a password that is a JSON Web Token.
#[derive(Deserialize)]
struct Claims {
    #[serde(default)]
    exp: Option<i64>,
}

/// Returns the document of an account to be created.
pub(super) fn new_account(name: &AccountName, description: &str) -> Value {
    json!({"name": name.as_str(), "description": description})
}

// === impl ServiceAccount ===

impl ServiceAccount {
    /// Returns true unless it says that it is another partner's.
    pub(super) fn is_of(&self, partner: &Partner) -> bool {
        self.partner_code.as_deref().is_none_or(|code| code == partner.as_str())
    }

    /// Returns our id of its credential.
    pub(super) fn credential(&self) -> Option<CredentialId> {
        Described::read(self.description.as_deref()?).credential
    }

    /// Returns the account and its password; `None` if it is another one than that of the name.
    pub(super) fn into_account(self, name: &AccountName) -> Option<(Account, SecretString)> {
        if self.name != name.as_str() {
            return None;
        }
        let description = self.description.unwrap_or_default();
        let Described { text, credential } = Described::read(&description);
        let account = Account {
            name: name.clone(),
            login: self.credentials.username,
            credential,
            description: text.to_owned(),
            created: self.created.as_str().and_then(|created| created.parse().ok()),
            last_access: None,
            expires: expiry(self.credentials.password.expose_secret()),
            disabled: false,
        };
        Some((account, self.credentials.password))
    }
}

/// Returns the time at which a password expires, if it is a token that says so.
fn expiry(password: &str) -> Option<Timestamp> {
    let payload = URL_SAFE_NO_PAD.decode(password.split('.').nth(1)?).map(Zeroizing::new).ok()?;
    Timestamp::from_second(serde_json::from_slice::<Claims>(&payload).ok()?.exp?).ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::stated(json!({"exp": 1_900_000_000}).to_string(), Some(1_900_000_000))]
    #[case::none(json!({"sub": "x"}).to_string(), None)]
    #[case::null(json!({"exp": null}).to_string(), None)]
    #[case::another_form(json!({"exp": "soon"}).to_string(), None)]
    #[case::too_far(json!({"exp": i64::MAX}).to_string(), None)]
    #[case::no_claims("[".to_owned(), None)]
    fn the_end_of_a_password_is_read(#[case] claims: String, #[case] expected: Option<i64>) {
        let password = format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(expiry(&password).map(Timestamp::as_second), expected);
        assert_eq!(expiry("no-token"), None);
        assert_eq!(expiry("a.!.b"), None);
    }
}
