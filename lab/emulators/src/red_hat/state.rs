//! The accounts of one partner in memory, and the effect of a call at an instant. No clock, no network.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::operation::Operation;
use super::refusal::Refusal;
use super::request::Request;
use super::settings::{Account, Settings};
use crate::signed::Signer;

/// The longest name.
const MAX_NAME: usize = 49;
/// The longest description: a guess.
const MAX_DESCRIPTION: usize = 255;

/// An answer that is no refusal.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// Everything that there is.
#[derive(Debug)]
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) signer: Signer,
    /// By their names.
    accounts: BTreeMap<String, Account>,
    is_damaging: bool,
}

// === impl Answer ===

impl Answer {
    pub(super) fn of(body: Value) -> Self {
        Self { status: 200, body }
    }

    pub(super) fn empty() -> Self {
        Self::of(Value::Null)
    }
}

// === impl State ===

impl State {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, signer: Signer::new(None), accounts: BTreeMap::new(), is_damaging: false }
    }

    pub(super) fn accounts(&self) -> Vec<Account> {
        self.accounts.values().filter(|account| !account.is_deleted).cloned().collect()
    }

    pub(super) fn damage(&mut self) {
        self.is_damaging = true;
    }

    pub(super) fn add_account(&mut self, now: Timestamp, name: &str, description: &str) {
        let account = self.account(now, name, description);
        self.accounts.insert(name.to_owned(), account);
    }

    /// Lets a call happen.
    pub(super) fn handle(&mut self, now: Timestamp, request: &Request) -> Result<Answer, Refusal> {
        let is_of_api = request.partner.is_some();
        if is_of_api && request.partner.as_deref() != Some(self.settings.partner.as_str()) {
            return Err(Refusal::new(403, "403: the certificate is of another partner"));
        }
        match request.operation {
            Operation::CreateAccount => self.create_account(now, request),
            Operation::GetAccount => {
                let account = self.found(&request.target).ok_or_else(Refusal::no_account)?;
                Ok(Answer::of(self.document(account)))
            }
            Operation::DeleteAccount => self.delete_account(request),
            Operation::RecoverAccount => self.recover_account(request),
            Operation::IssueToken => self.issue_token(now, request),
            Operation::Challenge => Err(Refusal::unauthorized()),
            Operation::ListTags => self.list_tags(now, request),
            Operation::GetManifest => self.get_manifest(now, request),
        }
    }

    /// The account that logs in with a name.
    pub(super) fn found(&self, name: &str) -> Option<&Account> {
        self.accounts.get(name).filter(|account| !account.is_deleted)
    }

    fn create_account(&mut self, now: Timestamp, request: &Request) -> Result<Answer, Refusal> {
        let body = request.document()?;
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (name, mut description) = (text("name"), text("description"));
        let is_name = (1..=MAX_NAME).contains(&name.len()) && !name.contains(['|', '/', ' ']);
        if !is_name || description.chars().count() > MAX_DESCRIPTION {
            return Err(Refusal::new(400, "400: the name or the description is invalid"));
        }
        if std::mem::take(&mut self.is_damaging) {
            "damaged".clone_into(&mut description);
        }
        let account = self.account(now, &name, &description);
        let body = self.document(&account);
        match self.accounts.entry(name) {
            Entry::Occupied(_) => Err(Refusal::new(409, "409: Service Account already exists")),
            Entry::Vacant(entry) => {
                entry.insert(account);
                Ok(Answer { status: 201, body })
            }
        }
    }

    fn delete_account(&mut self, request: &Request) -> Result<Answer, Refusal> {
        let account = self.accounts.get_mut(&request.target).filter(|account| !account.is_deleted);
        account.ok_or_else(Refusal::no_account)?.is_deleted = true;
        Ok(Answer { status: 204, body: Value::Null })
    }

    fn recover_account(&mut self, request: &Request) -> Result<Answer, Refusal> {
        if request.document()?.get("recover") != Some(&Value::Bool(true)) {
            return Err(Refusal::new(400, "400: recover is missing"));
        }
        self.accounts.get_mut(&request.target).ok_or_else(Refusal::no_account)?.is_deleted = false;
        let account = self.found(&request.target).ok_or_else(Refusal::no_account)?;
        Ok(Answer::of(self.document(account)))
    }

    fn account(&self, now: Timestamp, name: &str, description: &str) -> Account {
        let lifetime = self.settings.password_lifetime.and_then(|lifetime| SignedDuration::try_from(lifetime).ok());
        let expiry = lifetime.and_then(|lifetime| now.saturating_add(lifetime).ok()).map(Timestamp::as_second);
        let id = format!("{:032x}", rand::random::<u128>());
        let claims = match expiry {
            Some(expiry) => json!({"sub": name, "iat": now.as_second(), "jti": id, "exp": expiry}),
            None => json!({"sub": name, "iat": now.as_second(), "jti": id}),
        };
        Account {
            name: name.to_owned(),
            description: description.to_owned(),
            password: self.signer.issue(&claims),
            created: now,
            is_deleted: false,
        }
    }

    fn document(&self, account: &Account) -> Value {
        let Account { name, description, password, created, .. } = account;
        let date = created.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        json!({
            "name": name, "description": description, "partnerCode": self.settings.partner, "created": date,
            "createdBy": self.settings.partner, "tokenDate": date,
            "credentials": {"username": format!("|{name}"), "password": password},
        })
    }
}
