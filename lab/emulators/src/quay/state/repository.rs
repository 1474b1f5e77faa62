//! A repository as it is stored, and the rules for new ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::shown::avatar;
use crate::quay::fields::set;

/// A repository: who may do what with it.
#[derive(Debug, Default)]
pub(super) struct Repository {
    /// By the name of a robot with the organization's.
    pub(super) users: BTreeMap<String, Role>,
    pub(super) teams: BTreeMap<String, Role>,
}

/// A right on a repository; each has those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// To pull.
    Read,
    /// To push.
    Write,
    /// To delete.
    Admin,
}

/// A rule for new repositories.
#[derive(Debug)]
pub(super) struct Prototype {
    pub(super) id: String,
    pub(super) delegate: Delegate,
    pub(super) role: Role,
}

/// The holder of a role.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Delegate {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// The kind of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    User,
    Team,
}

// === impl Prototype ===

impl Prototype {
    pub(super) fn is_of_user(&self, name: &str) -> bool {
        self.delegate.kind == Kind::User && self.delegate.name == name
    }

    pub(super) fn is_of_team(&self, name: &str) -> bool {
        self.delegate.kind == Kind::Team && self.delegate.name == name
    }

    pub(super) fn document(&self) -> Value {
        let Delegate { name, kind } = &self.delegate;
        let mut delegate = json!({"name": name, "kind": kind, "avatar": avatar(name, "team")});
        if *kind == Kind::User {
            set(&mut delegate, "is_robot", json!(true));
            set(&mut delegate, "is_org_member", json!(true));
        }
        json!({"activating_user": null, "delegate": delegate, "role": self.role, "id": self.id})
    }
}
