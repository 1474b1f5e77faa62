//! Harbor: robots of one project and its audit log in memory, and the effect of a call at an instant. No clock, no network.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::operation::Operation;
use super::refusal::Refusal;
use super::request::{Conditions, Request};
use super::settings::{Pull, Robot, Settings};
use crate::signed::Signer;

mod robots;
mod tokens;

/// The number of the project.
const PROJECT_ID: u64 = 7;

/// An answer that is no refusal.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
    /// The number of entries of the whole list.
    pub(super) total: Option<usize>,
}

/// The caller of the API.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// An administrator of the project.
    Administrator,
    /// A robot that may make, read and delete robots.
    ServiceRobot,
    /// A robot that may pull.
    Puller,
}

/// Everything that there is.
#[derive(Debug)]
pub(super) struct State {
    settings: Settings,
    signer: Signer,
    /// By their numbers.
    robots: BTreeMap<u64, Robot>,
    last_id: u64,
    /// Oldest first.
    pulls: Vec<Pull>,
}

// === impl Answer ===

impl Answer {
    fn of(body: Value) -> Self {
        Self { status: 200, body, total: None }
    }

    pub(super) fn empty() -> Self {
        Self::of(Value::Null)
    }
}

// === impl State ===

impl State {
    pub(super) fn new(settings: Settings) -> Self {
        Self { settings, signer: Signer::new(None), robots: BTreeMap::new(), last_id: 0, pulls: Vec::new() }
    }

    pub(super) fn robots(&self) -> Vec<Robot> {
        self.robots.values().cloned().collect()
    }

    pub(super) fn pulls(&self) -> Vec<Pull> {
        self.pulls.clone()
    }

    pub(super) fn record_pull(&mut self, pull: Pull) {
        if self.settings.audits_pulls {
            self.pulls.push(pull);
        }
    }

    /// Refuses a call of the API by someone unknown.
    pub(super) fn authenticate(&self, now: Timestamp, request: &Request) -> Result<(), Refusal> {
        if request.operation.is_of_api() { self.caller(now, request).map(drop) } else { Ok(()) }
    }

    /// Lets a call happen.
    pub(super) fn handle(&mut self, now: Timestamp, request: &Request) -> Result<Answer, Refusal> {
        match request.operation {
            Operation::IssueToken => return self.issue_token(now, request),
            Operation::Challenge => return self.log_in(now, request),
            Operation::ListTags => return self.list_tags(now, request),
            Operation::GetManifest => return self.get_manifest(now, request),
            _ => {}
        }
        let caller = self.caller(now, request)?;
        let changes = matches!(request.operation, Operation::UpdateRobot | Operation::RefreshRobot);
        if caller == Caller::Puller || (changes && caller == Caller::ServiceRobot) {
            return Err(Refusal::forbidden());
        }
        match request.operation {
            Operation::CreateRobot => self.create_robot(now, request),
            Operation::ListRobots => self.list_robots(request),
            Operation::GetRobot => self.get_robot(request),
            Operation::UpdateRobot => self.update_robot(request),
            Operation::RefreshRobot => self.refresh_robot(request),
            Operation::DeleteRobot => self.delete_robot(request),
            Operation::GetProject => self.get_project(request),
            _ => self.list_logs(request),
        }
    }

    fn caller(&self, now: Timestamp, request: &Request) -> Result<Caller, Refusal> {
        let basic = request.basic().ok_or_else(Refusal::unauthorized)?;
        if basic.user == self.settings.username && basic.password == self.settings.password {
            return Ok(if self.settings.is_robot { Caller::ServiceRobot } else { Caller::Administrator });
        }
        self.robot_of(now, &basic).map(|_robot| Caller::Puller).ok_or_else(Refusal::unauthorized)
    }

    fn get_project(&self, request: &Request) -> Result<Answer, Refusal> {
        self.check_project(&request.target)?;
        let public = self.settings.is_public.to_string();
        Ok(Answer::of(json!({
            "project_id": PROJECT_ID, "name": self.settings.project, "metadata": {"public": public},
        })))
    }

    fn list_logs(&self, request: &Request) -> Result<Answer, Refusal> {
        self.check_project(&request.target)?;
        let (page, conditions) = (request.page()?, Conditions::read(request)?);
        let is_asked_for =
            |pull: &&Pull| conditions.holds("operation", "pull") && conditions.holds("username", &pull.username);
        // Newest first, also where no order is asked for.
        let found: Vec<&Pull> = self.pulls.iter().rev().filter(is_asked_for).collect();
        let total = Some(found.len());
        let entry = |pull: &Pull| {
            json!({
                "username": pull.username, "resource": pull.resource, "resource_type": "artifact", "operation": "pull",
                "operation_result": true, "op_time": date(pull.at),
            })
        };
        let entries: Vec<Value> = found.into_iter().skip(page.skip).take(page.size).map(entry).collect();
        Ok(Answer { total, ..Answer::of(json!(entries)) })
    }

    /// Another project is hidden from who does not administer it.
    fn check_project(&self, name: &str) -> Result<(), Refusal> {
        if name == self.settings.project { Ok(()) } else { Err(Refusal::forbidden()) }
    }
}

/// A time as Harbor's answers have it.
fn date(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(days.saturating_mul(24).min(i64::from(u32::MAX)))
}
