//! Permissions as data actions of Azure's roles.

use crate::Permission;

/// The action of a purge, which no permission stands for: only some settings need it.
pub(super) const PURGE: &str = "Microsoft.KeyVault/vaults/secrets/purge/action";

/// Returns the data action that a permission consists of.
pub(super) fn name(permission: Permission) -> &'static str {
    match permission {
        Permission::Create | Permission::AddVersion => "Microsoft.KeyVault/vaults/secrets/setSecret/action",
        Permission::Find | Permission::List | Permission::FindVersion | Permission::ListVersions => {
            "Microsoft.KeyVault/vaults/secrets/readMetadata/action"
        }
        Permission::Update | Permission::DestroyVersion => "Microsoft.KeyVault/vaults/secrets/update/action",
        Permission::Delete => "Microsoft.KeyVault/vaults/secrets/delete",
        Permission::ReadVersion => "Microsoft.KeyVault/vaults/secrets/getSecret/action",
    }
}
