//! Tenancy: the owner of a resource by dimension, and the resources that a caller reaches.

use std::collections::BTreeMap;

use database::{Parameters, Value};

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

    /// Returns true if it is one tenant's, for whose resources there are indexes. Resources without an owner have none: in a
    /// fleet without tenants each write would have to maintain them.
    pub(crate) fn is_indexed(&self) -> bool {
        matches!(self, Self::Tenant(tenancy) if !tenancy.is_empty())
    }

    /// Returns the SQL condition on a column with the tenancy as JSON. Where there are indexes it has their condition, in its
    /// words.
    pub(crate) fn sql(&self, column: &str, parameters: &mut Parameters) -> String {
        match self {
            Self::Unlimited | Self::AllTenants => "1 = 1".to_owned(),
            Self::Tenant(tenancy) => {
                let equals = format!("{column} = {}", parameters.add(Value::Text(text(tenancy))));
                if self.is_indexed() { format!("{equals} AND {column} <> '{{}}'") } else { equals }
            }
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
