//! The operations of Quay that there are: the name of each, and the form of its errors.

use std::fmt;

use super::form::Form;
use crate::http_faults::Operated;

/// An operation of Quay's API, of its token service, or of its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Makes a robot.
    CreateRobot,
    /// Reads a robot with its password.
    GetRobot,
    /// Lists all robots.
    ListRobots,
    /// Deletes a robot.
    DeleteRobot,
    /// Gives a robot a new password.
    RegenerateRobot,
    /// Lists the permissions that a robot itself has.
    ListRobotPermissions,
    /// Makes a team, or changes its role.
    PutTeam,
    /// Deletes a team.
    DeleteTeam,
    /// Lists a team's members.
    ListMembers,
    /// Adds a member to a team.
    AddMember,
    /// Takes a member from a team.
    RemoveMember,
    /// Gives a user or robot a role on a repository.
    PutUserPermission,
    /// Reads the role of a user or robot on a repository.
    GetUserPermission,
    /// Takes the role of a user or robot on a repository.
    DeleteUserPermission,
    /// Gives a team a role on a repository.
    PutTeamPermission,
    /// Takes the role of a team on a repository.
    DeleteTeamPermission,
    /// Makes a rule that gives a role on new repositories.
    CreatePrototype,
    /// Lists these rules.
    ListPrototypes,
    /// Deletes such a rule.
    DeletePrototype,
    /// Pages through the usage log.
    ListLogs,
    /// Counts the usage log's entries by kind and day.
    AggregateLogs,
    /// Sets the issuers and subjects whose tokens stand for a robot.
    PutFederation,
    /// Reads these.
    GetFederation,
    /// Deletes these.
    DeleteFederation,
    /// Exchanges a cluster's token for a robot's password of an hour.
    ExchangeToken,
    /// Issues a token for a registry.
    IssueToken,
    /// Tells a registry's client where tokens are issued.
    Challenge,
    /// Lists a repository's tags.
    ListTags,
    /// Reads a manifest: a pull.
    GetManifest,
    /// Takes the report of another registry about its pulls.
    ReportEvents,
}

struct Row {
    operation: Operation,
    name: &'static str,
    form: Form,
}

const fn row(operation: Operation, name: &'static str, form: Form) -> Row {
    Row { operation, name, form }
}

/// One row an operation. The names of the API's are those of its own description, where that has one.
const ROWS: [Row; 30] = [
    row(Operation::CreateRobot, "createOrgRobot", Form::Api),
    row(Operation::GetRobot, "getOrgRobot", Form::Api),
    row(Operation::ListRobots, "getOrgRobots", Form::Api),
    row(Operation::DeleteRobot, "deleteOrgRobot", Form::Api),
    row(Operation::RegenerateRobot, "regenerateOrgRobotToken", Form::Api),
    row(Operation::ListRobotPermissions, "getOrgRobotPermissions", Form::Api),
    row(Operation::PutTeam, "updateOrganizationTeam", Form::Api),
    row(Operation::DeleteTeam, "deleteOrganizationTeam", Form::Api),
    row(Operation::ListMembers, "getOrganizationTeamMembers", Form::Api),
    row(Operation::AddMember, "updateOrganizationTeamMember", Form::Api),
    row(Operation::RemoveMember, "deleteOrganizationTeamMember", Form::Api),
    row(Operation::PutUserPermission, "changeUserPermissions", Form::Api),
    row(Operation::GetUserPermission, "getUserPermissions", Form::Api),
    row(Operation::DeleteUserPermission, "deleteUserPermissions", Form::Api),
    row(Operation::PutTeamPermission, "changeTeamPermissions", Form::Api),
    row(Operation::DeleteTeamPermission, "deleteTeamPermissions", Form::Api),
    row(Operation::CreatePrototype, "createOrganizationPrototypePermission", Form::Api),
    row(Operation::ListPrototypes, "getOrganizationPrototypePermissions", Form::Api),
    row(Operation::DeletePrototype, "deleteOrganizationPrototypePermission", Form::Api),
    row(Operation::ListLogs, "listOrgLogs", Form::Api),
    row(Operation::AggregateLogs, "getAggregateOrgLogs", Form::Api),
    row(Operation::PutFederation, "createOrgRobotFederation", Form::Api),
    row(Operation::GetFederation, "getOrgRobotFederation", Form::Api),
    row(Operation::DeleteFederation, "deleteOrgRobotFederation", Form::Api),
    row(Operation::ExchangeToken, "exchangeToken", Form::Short),
    row(Operation::IssueToken, "issueToken", Form::Registry),
    row(Operation::Challenge, "challenge", Form::Registry),
    row(Operation::ListTags, "listTags", Form::Registry),
    row(Operation::GetManifest, "getManifest", Form::Registry),
    row(Operation::ReportEvents, "reportEvents", Form::Api),
];

// === impl Operation ===

impl Operation {
    /// The name that faults and [`super::Quay::counts`] use, such as `createOrgRobot`.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// All operations.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.operation)
    }

    /// The form of its errors; operations of the API demand one of its tokens.
    pub(crate) fn form(self) -> Form {
        self.row().map_or(Form::Api, |row| row.form)
    }

    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.operation == self)
    }
}

impl Operated for Operation {
    fn name(self) -> &'static str {
        Self::name(self)
    }

    fn all() -> impl Iterator<Item = Self> {
        Self::all()
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
