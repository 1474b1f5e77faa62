//! Quay: robots, teams, repositories and the usage log in memory, and the effect of a request at an instant. No clock, no
//! network.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::answer::Answer;
use super::operation::Operation;
use super::refusal::Refusal;
use super::request::Request;
use super::settings::{Pull, Robot, Settings};
use super::signing::Signing;

mod account;
mod binding;
mod entry;
mod federation;
mod logs;
mod permissions;
mod registry;
mod repository;
mod robots;
mod shown;
mod team;
mod teams;
mod tokens;

use account::Account;
use entry::Entry;
use repository::{Prototype, Repository};
use team::Team;

/// Everything that there is.
#[derive(Debug)]
pub(crate) struct State {
    rules: Rules,
    signing: Signing,
    /// By their names with the organization's.
    robots: BTreeMap<String, Account>,
    /// Those that were deleted, for lists that lag.
    deleted: Vec<Account>,
    teams: BTreeMap<String, Team>,
    repositories: BTreeMap<String, Repository>,
    prototypes: Vec<Prototype>,
    /// Oldest first.
    logs: Vec<Entry>,
    /// The number of pulls among them.
    pulled: usize,
}

/// The settings that decide what happens.
#[derive(Debug)]
struct Rules {
    organization: String,
    service: String,
    bearer_lifetime: SignedDuration,
    list_lag: SignedDuration,
    audit_login_failures: bool,
}

/// Time and originator of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    pub(crate) now: Timestamp,
    /// The user of the API's token; empty where none is demanded.
    pub(crate) user: &'a str,
}

impl State {
    pub(crate) fn new(settings: &Settings, signing: Signing) -> Self {
        let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        let rules = Rules {
            organization: settings.organization.clone(),
            service: settings.service.clone(),
            bearer_lifetime: signed(settings.bearer_lifetime),
            list_lag: signed(settings.list_lag),
            audit_login_failures: settings.audit_login_failures,
        };
        let teams = settings.teams.iter().map(|name| (name.clone(), Team::default()));
        let repositories = settings.repositories.iter().map(|name| (name.clone(), Repository::default()));
        Self {
            rules,
            signing,
            robots: BTreeMap::new(),
            deleted: Vec::new(),
            teams: teams.collect(),
            repositories: repositories.collect(),
            prototypes: Vec::new(),
            logs: Vec::new(),
            pulled: 0,
        }
    }

    /// Lets a request happen.
    pub(crate) fn handle(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let in_registry = matches!(request.operation, Operation::ListTags | Operation::GetManifest);
        if !in_registry && !request.organization.is_empty() && request.organization != self.rules.organization {
            return Err(Refusal::forbidden());
        }
        match request.operation {
            Operation::CreateRobot => self.create_robot(at, request),
            Operation::GetRobot => self.get_robot(request),
            Operation::ListRobots => Ok(self.list_robots(at, request)),
            Operation::DeleteRobot => self.delete_robot(at, request),
            Operation::RegenerateRobot => self.regenerate_robot(at, request),
            Operation::ListRobotPermissions => self.list_robot_permissions(request),
            Operation::PutTeam => self.put_team(at, request),
            Operation::DeleteTeam => self.delete_team(at, request),
            Operation::ListMembers => self.list_members(request),
            Operation::AddMember => self.add_member(at, request),
            Operation::RemoveMember => self.remove_member(at, request),
            Operation::PutUserPermission => self.put_user_permission(at, request),
            Operation::GetUserPermission => self.get_user_permission(request),
            Operation::DeleteUserPermission => self.delete_user_permission(at, request),
            Operation::PutTeamPermission => self.put_team_permission(at, request),
            Operation::DeleteTeamPermission => self.delete_team_permission(at, request),
            Operation::CreatePrototype => self.create_prototype(at, request),
            Operation::ListPrototypes => Ok(self.list_prototypes()),
            Operation::DeletePrototype => self.delete_prototype(at, request),
            Operation::ListLogs => self.list_logs(at, request),
            Operation::AggregateLogs => self.aggregate_logs(at, request),
            Operation::PutFederation => self.put_federation(at, request),
            Operation::GetFederation => self.get_federation(request),
            Operation::DeleteFederation => self.delete_federation(at, request),
            Operation::ExchangeToken => self.exchange_token(at, request),
            Operation::IssueToken => self.issue_token(at, request),
            Operation::Challenge => self.check_version(at, request),
            Operation::ListTags => self.list_tags(at, request),
            Operation::GetManifest => self.get_manifest(at, request),
            Operation::ReportEvents => self.report_events(at, request),
        }
    }

    pub(crate) fn authority(&self) -> &str {
        self.signing.authority()
    }

    pub(crate) fn subject_token(&self, claims: &Value) -> String {
        self.signing.subject_token(claims)
    }

    pub(crate) fn robots(&self) -> Vec<Robot> {
        self.robots.values().map(|account| self.seen_by_tests(account)).collect()
    }

    pub(crate) fn pulls(&self) -> Vec<Pull> {
        self.logs.iter().filter_map(Entry::pull).collect()
    }

    pub(crate) fn record_pull(&mut self, now: Timestamp, pull: &Pull) {
        let namespace = &self.rules.organization;
        self.logs.push(Entry::of_pull(now, namespace, pull));
        self.pulled += 1;
    }

    pub(crate) fn pulled(&self) -> usize {
        self.pulled
    }

    /// An account's name from one with the organization's.
    fn short<'a>(&self, robot: &'a str) -> Option<&'a str> {
        robot.strip_prefix(&self.rules.organization)?.strip_prefix('+')
    }

    fn log(&mut self, at: Moment<'_>, request: &Request, kind: &'static str, metadata: Value) {
        let performer = Some(at.user.to_owned());
        self.logs.push(Entry { at: at.now, kind, performer, address: request.address.clone(), metadata });
    }
}
