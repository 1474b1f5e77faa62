//! Tenancy: the owner of a resource by dimension, and the resources that a caller reaches.

use std::collections::BTreeMap;

use crate::store::sql::{Parameters, Value};

/// The owner of a resource, by dimension.
pub type Tenancy = BTreeMap<String, String>;

/// The resources that a caller reaches. All others are, for that caller, resources that do not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Every resource: tenants are not isolated (`server.tenant.enabled`).
    Unlimited,
    /// The resources of every tenant, while tenants are isolated from each other.
    AllTenants,
    /// The resources of exactly this tenancy.
    Tenant(Tenancy),
}

// === impl Reach ===

impl Reach {
    /// Returns true if the caller is limited to one tenancy.
    pub fn is_limited(&self) -> bool {
        matches!(self, Self::Tenant(_))
    }

    /// Returns the reach of a resource of that tenancy: the resources that it may refer to.
    #[must_use]
    pub fn of_resource(&self, tenancy: &Tenancy) -> Self {
        match self {
            Self::Unlimited => Self::Unlimited,
            Self::AllTenants | Self::Tenant(_) => Self::Tenant(tenancy.clone()),
        }
    }

    /// Returns true if a resource of that tenancy is within reach.
    pub fn covers(&self, tenancy: &Tenancy) -> bool {
        match self {
            Self::Unlimited | Self::AllTenants => true,
            Self::Tenant(own) => own == tenancy,
        }
    }

    /// Returns the SQL condition on a column with the tenancy as JSON.
    pub(crate) fn sql(&self, column: &str, parameters: &mut Parameters) -> String {
        match self {
            Self::Unlimited | Self::AllTenants => "1 = 1".to_owned(),
            Self::Tenant(tenancy) => format!("{column} = {}", parameters.add(Value::Text(text(tenancy)))),
        }
    }
}

impl Default for Reach {
    /// The least reach: resources without an owner.
    fn default() -> Self {
        Self::Tenant(Tenancy::new())
    }
}

/// Returns a tenancy as the text in which it is stored and compared.
pub(crate) fn text(tenancy: &Tenancy) -> String {
    // A map of texts always serialises, in the order of its keys.
    serde_json::to_string(tenancy).unwrap_or_default()
}
