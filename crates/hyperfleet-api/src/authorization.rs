//! Authorization: grants by issuer and identity, and what a caller may do. Whatever no grant allows is denied.

mod grant;
mod permissions;
#[cfg(test)]
mod tests;
mod verb;

use std::sync::Arc;

use crate::entity::Registry;
use grant::Grant;

pub use grant::{ANY, ClaimSettings, GrantSettings, Identity};
pub use permissions::{Denied, KindPermissions, Permissions};
pub use verb::{Scope, Verb};

/// The identity of every caller while authentication is off, and of the operator at the command line.
pub const SYSTEM_IDENTITY: &str = "system@hyperfleet.local";

/// The grants of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    grants: Vec<Arc<Grant>>,
    /// The kinds that are served.
    kinds: Arc<[String]>,
}

// === impl Grants ===

impl Grants {
    /// Returns the grants, or every fault of their settings. `issuers` are those whose tokens are accepted.
    pub fn new(settings: &[GrantSettings], registry: &Registry, issuers: &[&str]) -> Result<Self, Vec<String>> {
        let kinds = registry.descriptors().iter().map(|descriptor| descriptor.kind.clone()).collect::<Vec<_>>();
        let (mut grants, mut faults) = (Vec::new(), Vec::new());
        for (index, settings) in settings.iter().enumerate() {
            match Grant::new(index, settings, &kinds, issuers) {
                Ok(grant) => grants.push(Arc::new(grant)),
                Err((member, fault)) => faults.push(format!("authorization.grants[{index}].{member}: {fault}")),
            }
        }
        if faults.is_empty() { Ok(Self { grants, kinds: kinds.into() }) } else { Err(faults) }
    }

    /// Returns the permissions of an identity.
    pub fn of(&self, identity: &Identity) -> Permissions {
        let fitting = self.grants.iter().filter(|grant| grant.fits(identity)).cloned();
        Permissions::granted(fitting.collect(), Arc::clone(&self.kinds))
    }
}
