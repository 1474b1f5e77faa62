//! Robots: accounts of an organization that programs use.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::account::{Account, Shown, check_name, password};
use super::repository::Role;
use super::{Moment, State};
use crate::quay::answer::Answer;
use crate::quay::fields::{field, set};
use crate::quay::refusal::Refusal;
use crate::quay::request::Request;
use crate::quay::settings::Robot;

/// The longest description.
const DESCRIPTION_MAXIMUM: usize = 255;

// === impl State ===

impl State {
    pub(super) fn create_robot(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        // A body that cannot be read counts as none.
        let body = request.lenient();
        check_body(&body)?;
        if let Err(wrong) = check_name(&request.name) {
            return Err(Refusal::invalid(format!("The name for the robot '{}' is invalid: {wrong}", request.name)));
        }
        let name = request.robot();
        if self.robots.contains_key(&name) {
            return Err(Refusal::invalid(format!("Existing robot with name: {name}")));
        }
        let account = Account {
            description: field(&body, "description").as_str().unwrap_or_default().to_owned(),
            metadata: field(&body, "unstructured_metadata").as_object().cloned().unwrap_or_default(),
            ..Account::new(name.clone(), at.now)
        };
        let answer = account.document(Shown { password: true, metadata: true });
        let (description, metadata) = (account.description.clone(), account.metadata.clone());
        self.robots.insert(name, account);
        let logged = json!({"robot": request.name, "description": description, "unstructured_metadata": metadata});
        self.log(at, request, "create_robot", logged);
        Ok(Answer::created(answer))
    }

    /// Adds a robot that may push to a repository, if there is one of that name; returns its password.
    pub(crate) fn add_pusher(&mut self, now: Timestamp, name: &str, repository: &str) -> String {
        let account = Account::new(format!("{}+{name}", self.rules.organization), now);
        let (name, password) = (account.name.clone(), account.password.clone());
        if let Some(repository) = self.repositories.get_mut(repository) {
            repository.users.insert(name.clone(), Role::Write);
        }
        self.robots.insert(name, account);
        password
    }

    pub(super) fn get_robot(&self, request: &Request) -> Result<Answer, Refusal> {
        let account = self.account(&request.robot())?;
        Ok(Answer::of(account.document(Shown { password: true, metadata: true })))
    }

    /// All robots in one answer. A limit cuts by the last access, so that it makes no pages.
    pub(super) fn list_robots(&self, at: Moment<'_>, request: &Request) -> Answer {
        let lag = self.rules.list_lag;
        let young = |time: Timestamp| !lag.is_zero() && at.now.duration_since(time) < lag;
        let living = self.robots.values().filter(|account| !young(account.created));
        let deleted = self.deleted.iter().filter(|account| account.deleted.is_some_and(young));
        let mut accounts: Vec<&Account> = living.chain(deleted).collect();
        accounts.sort_by_key(|account| std::cmp::Reverse(account.last_accessed));
        if let Some(limit) = request.parameter("limit").and_then(|limit| limit.parse().ok()) {
            accounts.truncate(limit);
        }
        let truth = |name: &str, otherwise: bool| {
            let given = request.parameter(name);
            given.map_or(otherwise, |value| value.eq_ignore_ascii_case("true") || value == "1")
        };
        let shown = Shown { password: truth("token", true), metadata: false };
        let permissions = truth("permissions", false);
        let documents = accounts.into_iter().map(|account| {
            let mut document = account.document(shown);
            if permissions {
                let robot = self.seen_by_tests(account);
                set(&mut document, "teams", robot.teams.iter().map(|name| json!({"name": name})).collect());
                set(&mut document, "repositories", json!(robot.repositories));
            }
            document
        });
        Answer::of(json!({"robots": documents.collect::<Vec<_>>()}))
    }

    /// Team memberships and permissions go with it.
    pub(super) fn delete_robot(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let name = request.robot();
        let Some(mut account) = self.robots.remove(&name) else { return Err(Refusal::unknown_robot()) };
        account.deleted = Some(at.now);
        self.deleted.push(account);
        for team in self.teams.values_mut() {
            team.members.remove(&name);
        }
        for repository in self.repositories.values_mut() {
            repository.users.remove(&name);
        }
        self.prototypes.retain(|prototype| !prototype.is_of_user(&name));
        self.forget_performer(&name);
        self.log(at, request, "delete_robot", json!({"robot": request.name}));
        Ok(Answer::empty())
    }

    pub(super) fn regenerate_robot(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let account = self.account_mut(&request.robot())?;
        account.password = password();
        let answer = account.document(Shown { password: true, metadata: false });
        self.log(at, request, "regenerate_robot_token", json!({"robot": request.name}));
        Ok(Answer::of(answer))
    }

    /// A robot by its name with the organization's.
    pub(super) fn account(&self, name: &str) -> Result<&Account, Refusal> {
        self.robots.get(name).ok_or_else(Refusal::unknown_robot)
    }

    pub(super) fn account_mut(&mut self, name: &str) -> Result<&mut Account, Refusal> {
        self.robots.get_mut(name).ok_or_else(Refusal::unknown_robot)
    }

    pub(super) fn seen_by_tests(&self, account: &Account) -> Robot {
        let teams = self.teams.iter().filter(|(_, team)| team.members.contains(&account.name));
        let repositories = self.repositories.iter().filter(|(_, one)| one.users.contains_key(&account.name));
        Robot {
            name: self.short(&account.name).unwrap_or_default().to_owned(),
            password: account.password.clone(),
            description: account.description.clone(),
            metadata: account.metadata.clone(),
            created: account.created,
            last_accessed: account.last_accessed,
            teams: teams.map(|(name, _)| name.clone()).collect(),
            repositories: repositories.map(|(name, _)| name.clone()).collect(),
        }
    }
}

/// Checks a body as Quay's JSON schema does, whose errors quote all of it.
fn check_body(body: &Value) -> Result<(), Refusal> {
    let is_nothing = match body {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    if is_nothing {
        return Ok(());
    }
    let Some(members) = body.as_object() else {
        return Err(Refusal::invalid(quoting(&format!("{body} is not of type 'object'"), "type", body)));
    };
    match members.get("description") {
        Some(Value::String(text)) if text.chars().count() > DESCRIPTION_MAXIMUM => {
            return Err(Refusal::invalid(quoting(&format!("'{text}' is too long"), "maxLength", body)));
        }
        Some(Value::String(_)) | None => {}
        Some(other) => {
            return Err(Refusal::invalid(quoting(&format!("{other} is not of type 'string'"), "type", body)));
        }
    }
    match members.get("unstructured_metadata") {
        Some(Value::Object(_)) | None => Ok(()),
        Some(other) => Err(Refusal::invalid(quoting(&format!("{other} is not of type 'object'"), "type", body))),
    }
}

fn quoting(wrong: &str, rule: &str, body: &Value) -> String {
    format!("{wrong}\n\nFailed validating '{rule}' in schema\n\nOn instance:\n    {body}")
}
