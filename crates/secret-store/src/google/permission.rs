//! Permissions by the names of Google's IAM.

use crate::Permission;
use crate::error::Operation;

/// Returns the name of a permission in Google's IAM.
pub(super) fn name(permission: Permission) -> &'static str {
    match permission {
        Permission::Create => "secretmanager.secrets.create",
        Permission::Find => "secretmanager.secrets.get",
        Permission::List => "secretmanager.secrets.list",
        Permission::Update => "secretmanager.secrets.update",
        Permission::Delete => "secretmanager.secrets.delete",
        Permission::AddVersion => "secretmanager.versions.add",
        Permission::ReadVersion => "secretmanager.versions.access",
        Permission::FindVersion => "secretmanager.versions.get",
        Permission::ListVersions => "secretmanager.versions.list",
        Permission::DestroyVersion => "secretmanager.versions.destroy",
    }
}

/// Returns the permission that the operation needs; `None` where it needs none or more than one.
pub(super) fn needed_by(operation: Operation) -> Option<Permission> {
    match operation {
        Operation::Connect | Operation::CheckPermissions => None,
        Operation::Find => Some(Permission::Find),
        Operation::List => Some(Permission::List),
        Operation::Create => Some(Permission::Create),
        Operation::Update => Some(Permission::Update),
        Operation::Delete => Some(Permission::Delete),
        Operation::AddVersion => Some(Permission::AddVersion),
        Operation::ReadVersion => Some(Permission::ReadVersion),
        Operation::FindVersion => Some(Permission::FindVersion),
        Operation::ListVersions => Some(Permission::ListVersions),
        Operation::DestroyVersion => Some(Permission::DestroyVersion),
    }
}
