//! The rows, the tokens, and the answer to each call.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::faults::{Effect, Fault};
use super::ksuid::ksuid;
use super::operation::Operation;
use super::refusal::Refusal;
use super::search::{Attributes, Search};
use super::settings::{Credential, Registry, Settings};
use crate::scripted::Script;

/// The largest page.
const MAX_PAGE: usize = 100;

/// A call: its operation, the id in its path, its query, its body.
pub(super) struct Request {
    pub(super) operation: Operation,
    pub(super) id: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) bearer: Option<String>,
}

/// An answer; null has no body.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// The memory of a server.
#[derive(Debug)]
pub(super) struct State {
    settings: Settings,
    rows: BTreeMap<String, Credential>,
    tokens: BTreeMap<String, Instant>,
    faults: Script<Fault>,
    counts: BTreeMap<&'static str, usize>,
}

// === impl State ===

impl State {
    pub(super) fn new(settings: Settings) -> Self {
        let mut faults = Script::default();
        settings.faults.iter().cloned().for_each(|fault| faults.add(fault));
        Self { settings, rows: BTreeMap::new(), tokens: BTreeMap::new(), faults, counts: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, credential: Credential) -> String {
        let id = ksuid(credential.created, rand::random());
        self.rows.insert(id.clone(), credential);
        id
    }

    pub(super) fn rotate(&mut self, id: &str, token: &str) -> Option<String> {
        let old = self.rows.get_mut(id)?;
        let new =
            Credential { token: token.to_owned(), resource: String::new(), created: old.created + 1, ..old.clone() };
        "rotating".clone_into(&mut old.resource);
        Some(self.add(new))
    }

    pub(super) fn remove(&mut self, id: &str) -> bool {
        self.rows.remove(id).is_some()
    }

    pub(super) fn credentials(&self) -> BTreeMap<String, Credential> {
        self.rows.clone()
    }

    pub(super) fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.counts.clone()
    }

    pub(super) fn withdraw_tokens(&mut self) {
        self.tokens.clear();
    }

    pub(super) fn inject(&mut self, fault: Fault) {
        self.faults.add(fault);
    }

    /// Counts a call, and returns its answer and the fault that happens to it. A call without a good token uses up no fault.
    pub(super) fn call(&mut self, request: &Request) -> (Result<Answer, Refusal>, Option<Effect>) {
        let operation = request.operation;
        *self.counts.entry(operation.name()).or_default() += 1;
        if operation != Operation::Token && !self.is_known(request.bearer.as_deref()) {
            return (Err(Refusal::new(401, "Bearer token is expired")), None);
        }
        let effect = self.faults.strike(&operation);
        if effect == Some(Effect::Insert) {
            self.insert();
        }
        let result = if effect.is_none_or(Effect::commits) {
            self.handle(request)
        } else {
            Ok(Answer { status: 200, body: Value::Null })
        };
        (effect.and_then(Effect::refusal).map_or(result, Err), effect)
    }

    /// Adds a credential of somewhere between the others.
    fn insert(&mut self) {
        let created =
            self.rows.values().map(|row| row.created).max().unwrap_or_default() - i64::from(rand::random::<u8>());
        let registry = self.settings.registries.first().map(|registry| registry.id.clone()).unwrap_or_default();
        let text = format!("inserted{:08x}", rand::random::<u32>());
        self.add(Credential {
            username: format!("ams+{text}"),
            token: format!("token-{text}"),
            registry,
            account: text,
            resource: String::new(),
            created,
        });
    }

    fn is_known(&self, bearer: Option<&str>) -> bool {
        bearer.and_then(|token| self.tokens.get(token)).is_some_and(|until| *until > Instant::now())
    }

    fn handle(&mut self, request: &Request) -> Result<Answer, Refusal> {
        let ok = |body| Ok(Answer { status: 200, body });
        let id = request.id.as_str();
        let missing = || Refusal::not_found("RegistryCredential", id);
        match request.operation {
            Operation::Token => self.token(&request.body),
            Operation::List => self.list(request),
            Operation::Get => ok(shown(id, self.rows.get(id).ok_or_else(missing)?)),
            Operation::Create => self.create(&request.body),
            Operation::Delete if !self.settings.may_delete => Err(Refusal::forbidden()),
            Operation::Delete => match self.rows.remove(id) {
                Some(_) => Ok(Answer { status: 204, body: Value::Null }),
                None => Err(missing()),
            },
            Operation::GetRegistry => {
                let found = self.registry(id).ok_or_else(|| Refusal::not_found("Registry", id))?;
                ok(json!({
                    "id": found.id, "kind": "Registry", "name": found.host, "url": found.host, "type": "Quay",
                    "org_name": "", "team_name": "", "cloud_alias": false,
                }))
            }
        }
    }

    fn registry(&self, id: &str) -> Option<&Registry> {
        self.settings.registries.iter().find(|registry| registry.id == id)
    }

    fn token(&mut self, form: &[u8]) -> Result<Answer, Refusal> {
        let pairs: BTreeMap<_, _> = form_urlencoded::parse(form).into_owned().collect();
        let is = |name: &str, value: &str| pairs.get(name).is_some_and(|found| found == value);
        let known = is("grant_type", "client_credentials")
            && is("client_id", &self.settings.client_id)
            && is("client_secret", &self.settings.client_secret);
        if !known {
            return Err(Refusal::new(401, "Invalid client or Invalid client credentials"));
        }
        let token = format!("access-{:032x}", rand::random::<u128>());
        self.tokens.insert(token.clone(), Instant::now() + self.settings.token_lifetime);
        let seconds = self.settings.token_lifetime.as_secs();
        let body = json!({"access_token": token, "expires_in": seconds, "token_type": "Bearer", "scope": ""});
        Ok(Answer { status: 200, body })
    }

    fn list(&self, request: &Request) -> Result<Answer, Refusal> {
        let parameter =
            |name: &str| request.query.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        let number = |name: &str, default: usize| match parameter(name) {
            Some(text) => text.parse().map_err(|_error| Refusal::new(400, format!("invalid {name}: '{text}'"))),
            None => Ok(default),
        };
        let (page, size) = (number("page", 1)?.max(1), number("size", MAX_PAGE)?.min(MAX_PAGE));
        let text = parameter("search").unwrap_or_default();
        let search =
            Search::parse(text).ok_or_else(|| Refusal::new(400, format!("Failed to parse search query: {text}")))?;
        let attributes = |id, credential: &Credential| {
            let registry = self.registry(&credential.registry);
            search.holds(&Attributes { id, credential, registry })
        };
        let mut found: Vec<_> = self.rows.iter().filter(|(id, row)| attributes(id, row)).collect();
        match parameter("order").map(str::trim) {
            Some("id" | "id asc") => {}
            Some("id desc") => found.reverse(),
            Some(other) => return Err(Refusal::new(400, format!("order '{other}' is not supported"))),
            // Any order: another one at each call.
            None => {
                let calls = self.counts.values().sum::<usize>();
                let middle = if found.is_empty() { 0 } else { calls % found.len() };
                found.rotate_left(middle);
            }
        }
        let total = found.len();
        let items: Vec<Value> =
            found.into_iter().skip((page - 1) * size).take(size).map(|(id, row)| shown(id, row)).collect();
        let body = json!({"kind": "RegistryCredentialList", "page": page, "size": items.len(), "total": total, "items": items});
        Ok(Answer { status: 200, body })
    }

    fn create(&mut self, body: &[u8]) -> Result<Answer, Refusal> {
        let document: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |path: &str| document.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        if self.registry(&text("/registry/id")).is_none() {
            return Err(Refusal::new(400, "registry.id is not valid"));
        }
        let credential = Credential {
            username: text("/username"),
            token: text("/token"),
            registry: text("/registry/id"),
            account: text("/account/id"),
            resource: text("/external_resource_id"),
            created: Timestamp::now().as_second(),
        };
        let id = self.add(credential.clone());
        Ok(Answer { status: 201, body: shown(&id, &credential) })
    }
}

/// A row with its token in clear.
fn shown(id: &str, row: &Credential) -> Value {
    let created = Timestamp::from_second(row.created).unwrap_or_default().to_string();
    json!({
        "id": id, "kind": "RegistryCredential", "href": format!("/api/accounts_mgmt/v1/registry_credentials/{id}"),
        "username": row.username, "token": row.token, "external_resource_id": row.resource,
        "registry": {"kind": "RegistryLink", "id": row.registry}, "account": {"kind": "AccountLink", "id": row.account},
        "created_at": created, "updated_at": created,
    })
}
