//! The service's operations: the names of each, and the permission that it needs.

use std::fmt;

/// An operation of Key Vault on secrets, or of the token endpoint beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Makes a new version, and the secret if there is none.
    SetSecret,
    /// Reads a version with its value.
    GetSecret,
    /// Changes a version's attributes, tags or content type.
    UpdateSecret,
    /// Pages through the secrets.
    GetSecrets,
    /// Pages through a secret's versions.
    GetSecretVersions,
    /// Deletes a secret so that it can be recovered.
    DeleteSecret,
    /// Reads a deleted secret's properties.
    GetDeletedSecret,
    /// Pages through the deleted secrets.
    GetDeletedSecrets,
    /// Makes a deletion final.
    PurgeDeletedSecret,
    /// Takes back a deletion.
    RecoverDeletedSecret,
    /// Issues an access token, as Entra does.
    RequestToken,
}

/// A right of an identity on the vault's secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// To read values and deleted secrets.
    Get,
    /// To page through names and properties.
    List,
    /// To write versions and to change their properties.
    Set,
    /// To delete secrets.
    Delete,
    /// To make deletions final.
    Purge,
    /// To take deletions back.
    Recover,
}

struct Row {
    operation: Operation,
    name: &'static str,
    permission: Option<Permission>,
    action: &'static str,
}

const fn row(operation: Operation, name: &'static str, permission: Option<Permission>, action: &'static str) -> Row {
    Row { operation, name, permission, action }
}

/// One row an operation. The action is what a role of Azure's has to allow.
const ROWS: [Row; 11] = [
    row(Operation::SetSecret, "setSecret", Some(Permission::Set), "setSecret/action"),
    row(Operation::GetSecret, "getSecret", Some(Permission::Get), "getSecret/action"),
    row(Operation::UpdateSecret, "updateSecret", Some(Permission::Set), "update/action"),
    row(Operation::GetSecrets, "getSecrets", Some(Permission::List), "readMetadata/action"),
    row(Operation::GetSecretVersions, "getSecretVersions", Some(Permission::List), "readMetadata/action"),
    row(Operation::DeleteSecret, "deleteSecret", Some(Permission::Delete), "delete"),
    row(Operation::GetDeletedSecret, "getDeletedSecret", Some(Permission::Get), "readMetadata/action"),
    row(Operation::GetDeletedSecrets, "getDeletedSecrets", Some(Permission::List), "readMetadata/action"),
    row(Operation::PurgeDeletedSecret, "purgeDeletedSecret", Some(Permission::Purge), "purge/action"),
    row(Operation::RecoverDeletedSecret, "recoverDeletedSecret", Some(Permission::Recover), "recover/action"),
    row(Operation::RequestToken, "requestToken", None, ""),
];

// === impl Operation ===

impl Operation {
    /// The name that faults and [`super::settings::Call`] use, such as `setSecret`.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// All operations.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.operation)
    }

    /// The permission that a call needs; none to request a token.
    pub(crate) fn permission(self) -> Option<Permission> {
        self.row()?.permission
    }

    /// The data action of Azure's roles, as a refusal names it.
    pub fn action(self) -> String {
        format!("Microsoft.KeyVault/vaults/secrets/{}", self.row().map_or("", |row| row.action))
    }

    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.operation == self)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

// === impl Permission ===

impl Permission {
    /// All permissions.
    pub const ALL: [Self; 6] = [Self::Get, Self::List, Self::Set, Self::Delete, Self::Purge, Self::Recover];
}
