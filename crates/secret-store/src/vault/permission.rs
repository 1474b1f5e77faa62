//! Permissions as capabilities on paths of a policy.

use crate::Permission;

/// A capability on one of a secret's paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needed {
    /// The part of the path after the mount.
    pub(super) area: &'static str,
    /// The capability.
    pub(super) capability: &'static str,
    name: &'static str,
}

/// Returns the name of a permission, for messages.
pub(super) fn name(permission: Permission) -> &'static str {
    needed(permission).name
}

/// Returns the capability that a permission consists of.
pub(super) fn needed(permission: Permission) -> Needed {
    macro_rules! on {
        ($capability:literal, $area:literal) => {
            Needed { area: $area, capability: $capability, name: concat!("`", $capability, "` on `", $area, "/…`") }
        };
    }
    match permission {
        Permission::Create => on!("create", "metadata"),
        Permission::Update => on!("update", "metadata"),
        Permission::Delete => on!("delete", "metadata"),
        Permission::List => on!("list", "detailed-metadata"),
        Permission::AddVersion => on!("update", "data"),
        Permission::ReadVersion => on!("read", "data"),
        Permission::DestroyVersion => on!("update", "destroy"),
        Permission::Find | Permission::FindVersion | Permission::ListVersions => on!("read", "metadata"),
    }
}
