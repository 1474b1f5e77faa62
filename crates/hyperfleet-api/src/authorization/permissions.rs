//! The permissions of one caller: the grants that fit, asked verb by verb.

use std::sync::Arc;

use serde::Serialize;

use super::grant::{ANY, Grant};
use super::verb::{Scope, Verb};
use crate::decide::change::PullSecretRights;
use crate::excerpt::excerpt;

/// The permissions of one caller.
#[derive(Clone, Debug)]
pub struct Permissions {
    basis: Basis,
    /// True if it may read pull secrets whatever the grants are.
    holds_reader_token: bool,
}

#[derive(Clone, Debug)]
enum Basis {
    /// Authentication is off: everything except reading pull secrets.
    Unauthenticated,
    /// Exactly the permissions of these grants.
    Granted { grants: Vec<Arc<Grant>>, kinds: Arc<[String]> },
}

/// A permission that the caller lacks. The text says what a grant would need.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no grant of the caller allows {missing}")]
pub struct Denied {
    /// The missing permission, such as `update on Cluster`.
    pub missing: String,
}

/// The permissions of one caller for one kind.
#[expect(clippy::struct_excessive_bools, reason = "each is a permission of its own, which an operator sets by name")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KindPermissions {
    /// The kind.
    pub kind: String,
    /// The operations.
    pub verbs: Vec<&'static str>,
    /// The adapters in whose name it may report.
    pub reports_as: Vec<String>,
    /// May read pull secrets.
    pub reads_pull_secrets: bool,
    /// May choose the destination of pull secrets.
    pub chooses_destination: bool,
    /// May remove without waiting for adapters.
    pub force_deletes: bool,
    /// May read and sweep tombstones.
    pub sweeps: bool,
    /// Reaches the resources of every tenant.
    pub all_tenants: bool,
    /// The grants that give this.
    pub grants: Vec<String>,
}

// === impl Permissions ===

impl Permissions {
    /// Returns the permissions of every caller where authentication is off. The reader token adds reading pull secrets.
    pub fn unauthenticated(holds_reader_token: bool) -> Self {
        Self { basis: Basis::Unauthenticated, holds_reader_token }
    }

    pub(super) fn granted(grants: Vec<Arc<Grant>>, kinds: Arc<[String]>) -> Self {
        Self { basis: Basis::Granted { grants, kinds }, holds_reader_token: false }
    }

    /// Allows an operation, and returns the grant that does.
    pub fn allow(&self, verb: Verb, scope: Scope<'_>) -> Result<String, Denied> {
        self.find(scope, &format!("{} on {scope}", verb.as_str()), |grant| grant.verbs.contains(&verb))
    }

    /// Allows a report in the name of an adapter.
    pub fn allow_report(&self, adapter: &str, scope: Scope<'_>) -> Result<String, Denied> {
        let missing = format!("reports_as {} on {scope}", excerpt(adapter));
        self.find(scope, &missing, |grant| grant.reports_as.iter().any(|name| name == ANY || name == adapter))
    }

    /// Allows any report at all, whichever adapter it will name.
    pub fn allow_some_report(&self, scope: Scope<'_>) -> Result<String, Denied> {
        self.find(scope, &format!("reports_as on {scope}"), |grant| !grant.reports_as.is_empty())
    }

    /// Allows a removal without waiting for adapters.
    pub fn allow_force_delete(&self, scope: Scope<'_>) -> Result<String, Denied> {
        self.find(scope, &format!("force_deletes on {scope}"), |grant| grant.force_deletes)
    }

    /// Allows reading tombstones, and reporting their copies as deleted.
    pub fn allow_sweep(&self, scope: Scope<'_>) -> Result<String, Denied> {
        self.find(scope, &format!("sweeps on {scope}"), |grant| grant.sweeps)
    }

    /// Allows reading pull secrets in clear.
    pub fn allow_pull_secret(&self, scope: Scope<'_>) -> Result<String, Denied> {
        match &self.basis {
            Basis::Unauthenticated if self.holds_reader_token => Ok("pull_secret.reader_token_file".to_owned()),
            Basis::Unauthenticated => Err(Denied {
                missing: format!("reads_pull_secrets on {scope}: the token of pull_secret.reader_token_file is needed"),
            }),
            Basis::Granted { .. } => {
                self.find(scope, &format!("reads_pull_secrets on {scope}"), |grant| grant.reads_pull_secrets)
            }
        }
    }

    /// Allows reaching the resources of every tenant. Where authentication is off, no caller may.
    pub fn allow_all_tenants(&self, scope: Scope<'_>) -> Result<String, Denied> {
        let missing = format!("all_tenants on {scope}");
        match &self.basis {
            Basis::Unauthenticated => Err(Denied { missing }),
            Basis::Granted { .. } => self.find(scope, &missing, |grant| grant.all_tenants),
        }
    }

    /// Returns the permissions about pull secrets. Where authentication is off all callers are one and the same.
    pub fn pull_secrets(&self, scope: Scope<'_>) -> PullSecretRights {
        PullSecretRights {
            reads: self.find(scope, "", |grant| grant.reads_pull_secrets).is_ok(),
            chooses_destination: self.find(scope, "", |grant| grant.chooses_destination).is_ok(),
        }
    }

    /// Returns what the caller may do, kind by kind; kinds without any permission are left out.
    pub fn by_kind(&self) -> Vec<KindPermissions> {
        let Basis::Granted { grants, kinds } = &self.basis else { return Vec::new() };
        let of_kind = |kind: &String| {
            let fitting: Vec<&Arc<Grant>> = grants.iter().filter(|grant| grant.covers(kind)).collect();
            let any = |test: fn(&Grant) -> bool| fitting.iter().any(|grant| test(grant));
            let verbs = Verb::ALL.iter().filter(|verb| fitting.iter().any(|grant| grant.verbs.contains(verb)));
            let mut reports_as: Vec<String> = fitting.iter().flat_map(|grant| grant.reports_as.clone()).collect();
            reports_as.sort();
            reports_as.dedup();
            (!fitting.is_empty()).then(|| KindPermissions {
                kind: kind.clone(),
                verbs: verbs.map(|verb| verb.as_str()).collect(),
                reports_as,
                reads_pull_secrets: any(|grant| grant.reads_pull_secrets),
                chooses_destination: any(|grant| grant.chooses_destination),
                force_deletes: any(|grant| grant.force_deletes),
                sweeps: any(|grant| grant.sweeps),
                all_tenants: any(|grant| grant.all_tenants),
                grants: fitting.iter().map(|grant| grant.name.clone()).collect(),
            })
        };
        kinds.iter().filter_map(of_kind).collect()
    }

    /// Returns the grant that passes the test for the scope; for every kind, the one of the first kind.
    fn find(&self, scope: Scope<'_>, missing: &str, test: impl Fn(&Grant) -> bool) -> Result<String, Denied> {
        let denied = || Denied { missing: missing.to_owned() };
        let Basis::Granted { grants, kinds } = &self.basis else { return Ok("authentication is off".to_owned()) };
        let of_kind = |kind: &str| grants.iter().find(|grant| grant.covers(kind) && test(grant));
        let found = match scope {
            Scope::Kind(kind) => of_kind(kind),
            Scope::Every if kinds.iter().all(|kind| of_kind(kind).is_some()) => {
                kinds.first().and_then(|kind| of_kind(kind))
            }
            Scope::Every => None,
        };
        found.map(|grant| grant.name.clone()).ok_or_else(denied)
    }
}

impl Default for Permissions {
    fn default() -> Self {
        Self::granted(Vec::new(), Arc::from([]))
    }
}
