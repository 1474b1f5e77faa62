//! Harbor's documents.

use fleet_model::names::DESCRIPTION_CREDENTIAL;
use jiff::Timestamp;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

use super::settings::ProjectName;
use crate::contract::{Account, ListedAccount};
use crate::name::{AccountName, CredentialId};

/// The level of a robot of one project, and the kind of its permissions.
const PROJECT: &str = "project";
/// The number of days of a robot that does not expire.
const NEVER: i64 = -1;

/// Length of what [`description`] adds.
pub(super) const MARK: usize =
    " [ ]".len() + DESCRIPTION_CREDENTIAL.len() + "01932b5c-9f3e-7c2a-8e1d-0123456789ab".len();

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

/// The part of a robot's description that people have written, and our id of its credential.
#[derive(Debug, PartialEq, Eq)]
struct Described<'a> {
    text: &'a str,
    credential: Option<CredentialId>,
}

// === impl Described ===

impl<'a> Described<'a> {
    fn read(description: &'a str) -> Self {
        let marked = description.strip_suffix(']').and_then(|text| text.rsplit_once(" ["));
        let id = |mark: &str| mark.strip_prefix(DESCRIPTION_CREDENTIAL)?.strip_prefix(' ')?.parse().ok();
        match marked.and_then(|(text, mark)| Some((text, id(mark)?))) {
            Some((text, credential)) => Self { text, credential: Some(credential) },
            None => Self { text: description, credential: None },
        }
    }
}

/// Returns the description of a robot, which has no metadata to keep our id of its credential in.
pub(super) fn description(text: &str, credential: CredentialId) -> String {
    format!("{text} [{DESCRIPTION_CREDENTIAL} {credential}]")
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

    /// Returns the robot in a list, if its name could be ours.
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

    const ID: &str = "01932b5c-9f3e-7c2a-8e1d-0123456789ab";

    #[rstest]
    #[case::ours("a text [hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab]", "a text", true)]
    #[case::empty(" [hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab]", "", true)]
    #[case::brackets("a [b] [hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab]", "a [b]", true)]
    #[case::of_a_stranger("a text", "a text", false)]
    #[case::not_at_the_end("[hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab] a", "", false)]
    #[case::no_id("a [hyperfleet credential 5]", "", false)]
    #[case::another_mark("a [other credential 01932b5c-9f3e-7c2a-8e1d-0123456789ab]", "", false)]
    fn a_description_carries_the_id(#[case] description: &str, #[case] text: &str, #[case] is_ours: bool) {
        let found = Described::read(description);
        assert_eq!(found.credential, is_ours.then(|| ID.parse().unwrap()));
        assert_eq!(found.text, if is_ours { text } else { description });
        if is_ours {
            assert_eq!(super::description(text, ID.parse().unwrap()), description);
            assert_eq!(description.chars().count() - text.chars().count(), MARK);
        }
    }

    #[rstest]
    #[case::ours(json!([{"kind": "project", "namespace": "fleet", "access": [{"resource": "repository", "action": "pull"}]}]), true)]
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
