//! Harbor's documents.

use jiff::Timestamp;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

use super::settings::ProjectName;
use crate::contract::{Account, ListedAccount};
use crate::description::Described;
use crate::name::{AccountName, CredentialId};

/// The level of a robot of one project, and the kind of its permissions.
const PROJECT: &str = "project";
/// The number of days of a robot that does not expire.
const NEVER: i64 = -1;

/// A robot as Harbor lists it.
#[derive(Deserialize)]
pub(super) struct Robot {
    pub(super) id: u64,
    /// Prefix, project, `+` and name.
    pub(super) name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    creation_time: Option<String>,
    #[serde(default)]
    expires_at: Option<i64>,
    #[serde(default)]
    duration: Option<i64>,
    #[serde(default)]
    pub(super) disable: bool,
    #[serde(default)]
    permissions: Option<Vec<Permission>>,
}

#[derive(Deserialize)]
struct Permission {
    kind: String,
    namespace: String,
    #[serde(default)]
    access: Option<Vec<Access>>,
}

#[derive(Deserialize)]
struct Access {
    resource: String,
    action: String,
    #[serde(default)]
    effect: Option<String>,
}

/// The answer to a creation: the only one with the password that Harbor has made.
#[derive(Deserialize)]
pub(super) struct Created {
    pub(super) id: u64,
    #[serde(default)]
    pub(super) secret: Option<SecretString>,
}

/// The answer to the order of another password.
#[derive(Deserialize)]
pub(super) struct Refreshed {
    #[serde(default)]
    pub(super) secret: Option<SecretString>,
}

/// A project.
#[derive(Deserialize)]
pub(super) struct Project {
    pub(super) project_id: u64,
}

/// Returns the document of a robot to be created.
pub(super) fn new_robot(name: &AccountName, description: &str, project: &ProjectName) -> Value {
    json!({
        "name": name.as_str(), "description": description, "level": PROJECT, "duration": NEVER, "disable": false,
        "permissions": permissions(project),
    })
}

/// The permission to pull from one project.
fn permissions(project: &ProjectName) -> Value {
    let access = json!([{"resource": "repository", "action": "pull"}]);
    json!([{"kind": PROJECT, "namespace": project.as_str(), "access": access}])
}

// === impl Robot ===

impl Robot {
    /// Returns the name without prefix and project.
    pub(super) fn short(&self) -> Option<&str> {
        self.name.rsplit_once('+').map(|(_project, name)| name)
    }

    /// Returns our id of its credential.
    pub(super) fn credential(&self) -> Option<CredentialId> {
        Described::read(&self.description).credential
    }

    /// Returns true if it may pull from a project.
    pub(super) fn pulls(&self, project: &ProjectName) -> bool {
        let permits = |access: &Access| {
            let allows = access.effect.as_deref().is_none_or(|effect| effect.is_empty() || effect == "allow");
            access.resource == "repository" && access.action == "pull" && allows
        };
        self.permissions.iter().flatten().any(|permission| {
            let is_meant = permission.kind == PROJECT && permission.namespace == project.as_str();
            is_meant && permission.access.iter().flatten().any(permits)
        })
    }

    /// Returns its document as a change expects it, which replaces the description and the permissions, too.
    pub(super) fn changed(&self, project: &ProjectName, disable: bool) -> Value {
        json!({
            "id": self.id, "name": self.name, "description": self.description, "level": PROJECT,
            "duration": self.duration.unwrap_or(NEVER), "disable": disable, "permissions": permissions(project),
        })
    }

    /// Returns the account.
    pub(super) fn into_account(self, name: &AccountName) -> Account {
        let Described { text, credential } = Described::read(&self.description);
        Account {
            name: name.clone(),
            credential,
            description: text.to_owned(),
            created: self.creation_time.as_deref().and_then(time),
            last_access: None,
            expires: self.expires_at.filter(|at| *at > 0).and_then(|at| Timestamp::from_second(at).ok()),
            disabled: self.disable,
            login: self.name,
        }
    }

    /// Returns the robot in a list, if its name could be of this service.
    pub(super) fn listed(&self) -> Option<ListedAccount> {
        let created = self.creation_time.as_deref().and_then(time);
        Some(ListedAccount { name: self.short()?.parse().ok()?, credential: self.credential(), created })
    }
}

/// Returns a time as Harbor writes it.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::own(json!([{"kind": "project", "namespace": "fleet", "access": [{"resource": "repository", "action": "pull"}]}]), true)]
    #[case::allowed(
        json!([{"kind": "project", "namespace": "fleet", "access": [
            {"resource": "log", "action": "list"}, {"resource": "repository", "action": "pull", "effect": "allow"},
        ]}]),
        true
    )]
    #[case::denied(
        json!([{"kind": "project", "namespace": "fleet", "access": [
            {"resource": "repository", "action": "pull", "effect": "deny"},
        ]}]),
        false
    )]
    #[case::another_project(
        json!([{"kind": "project", "namespace": "other", "access": [{"resource": "repository", "action": "pull"}]}]),
        false
    )]
    #[case::another_kind(
        json!([{"kind": "system", "namespace": "fleet", "access": [{"resource": "repository", "action": "pull"}]}]),
        false
    )]
    #[case::push(json!([{"kind": "project", "namespace": "fleet", "access": [{"resource": "repository", "action": "push"}]}]), false)]
    #[case::another_resource(
        json!([{"kind": "project", "namespace": "fleet", "access": [{"resource": "artifact", "action": "pull"}]}]),
        false
    )]
    #[case::no_access(json!([{"kind": "project", "namespace": "fleet", "access": null}]), false)]
    #[case::nothing(json!(null), false)]
    fn a_permission_is_that_of_the_project(#[case] permissions: Value, #[case] pulls: bool) {
        let robot: Robot =
            serde_json::from_value(json!({"id": 1, "name": "robot$fleet+a1", "permissions": permissions})).unwrap();
        assert_eq!(robot.pulls(&"fleet".parse().unwrap()), pulls);
    }
}
