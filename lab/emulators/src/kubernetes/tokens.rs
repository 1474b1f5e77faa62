//! Authentication: bearer tokens of the settings, and those that the server issues to `ServiceAccounts`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;

use super::value::{list, number, text};
use crate::signed::Signer;

/// A caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Such as `alice`, or `system:serviceaccount:NAMESPACE:NAME`.
    pub name: String,
    /// Such as `system:masters`, whose members may do everything.
    pub groups: Vec<String>,
}

/// The group whose members may do everything.
pub(crate) const MASTERS: &str = "system:masters";

/// The audience of tokens for this server.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc";

/// Signs tokens and reads them.
#[derive(Debug)]
pub(crate) struct Tokens {
    signer: Signer,
}

/// The claims of a token of a `ServiceAccount`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) namespace: String,
    pub(crate) account: String,
    pub(crate) uid: String,
}

impl User {
    pub(crate) fn anonymous() -> Self {
        Self { name: "system:anonymous".to_owned(), groups: vec!["system:unauthenticated".to_owned()] }
    }

    /// A user that may do everything.
    pub fn admin() -> Self {
        Self { name: "admin".to_owned(), groups: vec![MASTERS.to_owned()] }
    }

    /// The user that a server without authorization takes every caller for.
    pub(crate) fn master() -> Self {
        Self { name: "admin".to_owned(), groups: vec![MASTERS.to_owned(), "system:authenticated".to_owned()] }
    }

    pub(crate) fn service_account(claims: &Claims) -> Self {
        let Claims { namespace, account, .. } = claims;
        Self {
            name: format!("system:serviceaccount:{namespace}:{account}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
        }
    }

    /// The user of a configured token.
    pub(crate) fn known(tokens: &BTreeMap<String, Self>, token: &str) -> Option<Self> {
        let mut user = tokens.get(token)?.clone();
        user.groups.push("system:authenticated".to_owned());
        Some(user)
    }
}

impl Tokens {
    /// With a key that is kept, or with one for the lifetime of this server.
    pub(crate) fn new(key: Option<Vec<u8>>) -> Self {
        Self { signer: Signer::new(key) }
    }

    /// A token in the form of a JSON Web Token.
    pub(crate) fn issue(&self, claims: &Claims, audiences: &[String], until: Timestamp) -> String {
        let Claims { namespace, account, uid } = claims;
        self.signer.issue(&json!({
            "iss": "https://kubernetes.default.svc", "aud": audiences, "exp": until.as_second(),
            "sub": format!("system:serviceaccount:{namespace}:{account}"),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": account, "uid": uid}},
        }))
    }

    /// The claims of a token, if this server issued it for itself and it has not expired.
    pub(crate) fn read(&self, token: &str, now: Timestamp) -> Option<Claims> {
        let claims = self.signer.read(token)?;
        if number(&claims, "/exp")? <= now.as_second() || !list(&claims, "/aud").iter().any(|one| one == AUDIENCE) {
            return None;
        }
        let own = |pointer: &str| text(&claims, pointer).to_owned();
        Some(Claims {
            namespace: own("/kubernetes.io/namespace"),
            account: own("/kubernetes.io/serviceaccount/name"),
            uid: own("/kubernetes.io/serviceaccount/uid"),
        })
    }
}
