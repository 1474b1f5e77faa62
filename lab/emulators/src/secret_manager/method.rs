//! The service's methods: what each is called on each wire, which permission it needs, which quota it uses.

use std::fmt;

/// A method of the Secret Manager service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Pages through the secrets of a project or location.
    ListSecrets,
    /// Makes a secret without content.
    CreateSecret,
    /// Adds content to a secret.
    AddVersion,
    /// Reads a secret's metadata.
    GetSecret,
    /// Changes a secret's metadata.
    UpdateSecret,
    /// Deletes a secret with all its versions.
    DeleteSecret,
    /// Pages through a secret's versions.
    ListVersions,
    /// Reads a version's metadata.
    GetVersion,
    /// Reads a version's content.
    AccessVersion,
    /// Makes a version's content unavailable for now.
    DisableVersion,
    /// Makes a disabled version's content available again.
    EnableVersion,
    /// Wipes a version's content.
    DestroyVersion,
    /// Asks which permissions the caller has.
    TestIamPermissions,
    /// Not served here.
    GetIamPolicy,
    /// Not served here.
    SetIamPolicy,
    /// Not served here.
    EnableManagedRotation,
    /// Not served here.
    RotateSecret,
}

/// The quota that a call uses up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Read,
    Write,
    Access,
}

struct Row {
    method: Method,
    name: &'static str,
    rpc: &'static str,
    permission: &'static str,
    class: Class,
}

const fn row(method: Method, name: &'static str, rpc: &'static str, permission: &'static str, class: Class) -> Row {
    Row { method, name, rpc, permission, class }
}

/// One row a method; those that are served come first.
const ROWS: [Row; 17] = [
    row(Method::ListSecrets, "listSecrets", "ListSecrets", "secrets.list", Class::Read),
    row(Method::CreateSecret, "createSecret", "CreateSecret", "secrets.create", Class::Write),
    row(Method::AddVersion, "addVersion", "AddSecretVersion", "versions.add", Class::Write),
    row(Method::GetSecret, "getSecret", "GetSecret", "secrets.get", Class::Read),
    row(Method::UpdateSecret, "updateSecret", "UpdateSecret", "secrets.update", Class::Write),
    row(Method::DeleteSecret, "deleteSecret", "DeleteSecret", "secrets.delete", Class::Write),
    row(Method::ListVersions, "listVersions", "ListSecretVersions", "versions.list", Class::Read),
    row(Method::GetVersion, "getVersion", "GetSecretVersion", "versions.get", Class::Read),
    row(Method::AccessVersion, "accessVersion", "AccessSecretVersion", "versions.access", Class::Access),
    row(Method::DisableVersion, "disableVersion", "DisableSecretVersion", "versions.disable", Class::Write),
    row(Method::EnableVersion, "enableVersion", "EnableSecretVersion", "versions.enable", Class::Write),
    row(Method::DestroyVersion, "destroyVersion", "DestroySecretVersion", "versions.destroy", Class::Write),
    row(Method::TestIamPermissions, "testIamPermissions", "TestIamPermissions", "", Class::Read),
    row(Method::GetIamPolicy, "getIamPolicy", "GetIamPolicy", "secrets.getIamPolicy", Class::Read),
    row(Method::SetIamPolicy, "setIamPolicy", "SetIamPolicy", "secrets.setIamPolicy", Class::Write),
    row(
        Method::EnableManagedRotation,
        "enableManagedRotation",
        "EnableManagedRotation",
        "secrets.update",
        Class::Write,
    ),
    row(Method::RotateSecret, "rotateSecret", "RotateSecret", "secrets.update", Class::Write),
];

/// Number of [`ROWS`] that are served.
const SERVED: usize = 13;

impl Method {
    /// The name that faults and [`super::settings::Call`] use, such as `addVersion`.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |row| row.name)
    }

    /// The methods that this server serves.
    pub fn served() -> impl Iterator<Item = Self> {
        ROWS.iter().take(SERVED).map(|row| row.method)
    }

    pub(crate) fn by_rpc(rpc: &str) -> Option<Self> {
        ROWS.iter().find(|row| row.rpc == rpc).map(|row| row.method)
    }

    /// The permission that a call needs; none for asking about permissions.
    pub(crate) fn permission(self) -> Option<String> {
        let row = self.row().filter(|row| !row.permission.is_empty())?;
        Some(format!("secretmanager.{}", row.permission))
    }

    pub(crate) fn class(self) -> Class {
        self.row().map_or(Class::Read, |row| row.class)
    }

    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.method == self)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Class {
    /// The quota's words in a refusal: what is counted, and its metric.
    pub(crate) fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Read => ("Read requests", "read_requests", "ReadRequestsPerMinutePerProject"),
            Self::Write => ("Write requests", "write_requests", "WriteRequestsPerMinutePerProject"),
            Self::Access => ("Access requests", "access_requests", "AccessRequestsPerMinutePerProject"),
        }
    }
}
