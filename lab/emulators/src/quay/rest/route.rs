//! Routing: the operation and the target of a path.

use crate::quay::operation::Operation;
use crate::quay::paths::EVENTS_PATH;

/// A path that there is, with its parts decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Routed {
    pub(super) operation: Operation,
    pub(super) organization: String,
    pub(super) name: String,
    pub(super) member: String,
}

// === impl Routed ===

impl Routed {
    fn of(operation: Operation, organization: &str) -> Self {
        Self { operation, organization: decode(organization), name: String::new(), member: String::new() }
    }

    fn name(self, name: &str) -> Self {
        Self { name: decode(name), ..self }
    }

    fn member(self, member: &str) -> Self {
        Self { member: decode(member), ..self }
    }

    /// The robot with the organization's name, the team or the repository that a call is about.
    pub(super) fn target(&self) -> String {
        match self.operation {
            Operation::CreateRobot
            | Operation::GetRobot
            | Operation::DeleteRobot
            | Operation::RegenerateRobot
            | Operation::ListRobotPermissions
            | Operation::PutFederation
            | Operation::GetFederation
            | Operation::DeleteFederation => format!("{}+{}", self.organization, self.name),
            Operation::AddMember
            | Operation::RemoveMember
            | Operation::PutUserPermission
            | Operation::GetUserPermission
            | Operation::DeleteUserPermission => self.member.clone(),
            _ => self.name.clone(),
        }
    }
}

/// Finds the operation; none if there is no such path.
pub(super) fn route(method: &http::Method, path: &str) -> Option<Routed> {
    let method = if method == http::Method::HEAD { "GET" } else { method.as_str() };
    if path == EVENTS_PATH && method == "POST" {
        return Some(Routed::of(Operation::ReportEvents, ""));
    }
    if path == "/oauth2/federation/robot/token" && method == "GET" {
        return Some(Routed::of(Operation::ExchangeToken, ""));
    }
    if let Some(rest) = path.strip_prefix("/api/v1/organization/") {
        let segments: Vec<&str> = rest.split('/').collect();
        return organization(method, &segments);
    }
    if let Some(rest) = path.strip_prefix("/api/v1/repository/") {
        return repository(method, rest);
    }
    registry(method, path.strip_prefix("/v2/")?)
}

fn organization(method: &str, segments: &[&str]) -> Option<Routed> {
    let (organization, rest) = segments.split_first()?;
    let of = |operation| Routed::of(operation, organization);
    let routed = match (method, rest) {
        ("GET", ["robots"]) => of(Operation::ListRobots),
        ("PUT", ["robots", name]) => of(Operation::CreateRobot).name(name),
        ("GET", ["robots", name]) => of(Operation::GetRobot).name(name),
        ("DELETE", ["robots", name]) => of(Operation::DeleteRobot).name(name),
        ("POST", ["robots", name, "regenerate"]) => of(Operation::RegenerateRobot).name(name),
        ("GET", ["robots", name, "permissions"]) => of(Operation::ListRobotPermissions).name(name),
        ("POST", ["robots", name, "federation"]) => of(Operation::PutFederation).name(name),
        ("GET", ["robots", name, "federation"]) => of(Operation::GetFederation).name(name),
        ("DELETE", ["robots", name, "federation"]) => of(Operation::DeleteFederation).name(name),
        ("PUT", ["team", team]) => of(Operation::PutTeam).name(team),
        ("DELETE", ["team", team]) => of(Operation::DeleteTeam).name(team),
        ("GET", ["team", team, "members"]) => of(Operation::ListMembers).name(team),
        ("PUT", ["team", team, "members", member]) => of(Operation::AddMember).name(team).member(member),
        ("DELETE", ["team", team, "members", member]) => of(Operation::RemoveMember).name(team).member(member),
        ("POST", ["prototypes"]) => of(Operation::CreatePrototype),
        ("GET", ["prototypes"]) => of(Operation::ListPrototypes),
        ("DELETE", ["prototypes", id]) => of(Operation::DeletePrototype).name(id),
        ("GET", ["logs"]) => of(Operation::ListLogs),
        ("GET", ["aggregatelogs"]) => of(Operation::AggregateLogs),
        _ => return None,
    };
    Some(routed)
}

/// Permissions: behind the repository's name, which may have slashes.
fn repository(method: &str, rest: &str) -> Option<Routed> {
    let (full, holder) = rest.split_once("/permissions/")?;
    let (organization, name) = full.split_once('/')?;
    let (kind, member) = holder.split_once('/')?;
    let operation = match (method, kind) {
        ("PUT", "user") => Operation::PutUserPermission,
        ("GET", "user") => Operation::GetUserPermission,
        ("DELETE", "user") => Operation::DeleteUserPermission,
        ("PUT", "team") => Operation::PutTeamPermission,
        ("DELETE", "team") => Operation::DeleteTeamPermission,
        _ => return None,
    };
    (!member.is_empty()).then(|| Routed::of(operation, organization).name(name).member(member))
}

fn registry(method: &str, rest: &str) -> Option<Routed> {
    if method != "GET" {
        return None;
    }
    match rest {
        "" => return Some(Routed::of(Operation::Challenge, "")),
        "auth" => return Some(Routed::of(Operation::IssueToken, "")),
        _ => {}
    }
    let (organization, rest) = rest.split_once('/')?;
    if let Some(name) = rest.strip_suffix("/tags/list") {
        return Some(Routed::of(Operation::ListTags, organization).name(name));
    }
    let (name, reference) = rest.split_once("/manifests/")?;
    Some(Routed::of(Operation::GetManifest, organization).name(name).member(reference))
}

/// Decodes a part of a path, in which `+` is no space.
fn decode(part: &str) -> String {
    let text = format!("part={}", part.replace('+', "%2B").replace('&', "%26"));
    form_urlencoded::parse(text.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}
