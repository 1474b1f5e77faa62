//! The operations that there are, and their names.

use crate::http_faults::Operated;

/// An operation of the API, of the token service, or of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Makes an account.
    CreateAccount,
    /// Reads an account.
    GetAccount,
    /// Deletes an account.
    DeleteAccount,
    /// Brings a deleted account back.
    RecoverAccount,
    /// Issues a token for the registry.
    IssueToken,
    /// States where tokens are issued.
    Challenge,
    /// Lists a repository's tags.
    ListTags,
    /// Reads a manifest: a pull.
    GetManifest,
}

impl Operated for Operation {
    fn name(self) -> &'static str {
        match self {
            Self::CreateAccount => "createServiceAccount",
            Self::GetAccount => "getServiceAccount",
            Self::DeleteAccount => "deleteServiceAccount",
            Self::RecoverAccount => "recoverServiceAccount",
            Self::IssueToken => "issueToken",
            Self::Challenge => "challenge",
            Self::ListTags => "listTags",
            Self::GetManifest => "getManifest",
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        [
            Self::CreateAccount,
            Self::GetAccount,
            Self::DeleteAccount,
            Self::RecoverAccount,
            Self::IssueToken,
            Self::Challenge,
            Self::ListTags,
            Self::GetManifest,
        ]
        .into_iter()
    }
}
