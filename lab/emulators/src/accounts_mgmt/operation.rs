//! The operations of AMS that there are, and their names.

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Gives an access token.
    Token,
    /// Lists credentials.
    List,
    /// Reads a credential.
    Get,
    /// Makes a credential.
    Create,
    /// Deletes a credential.
    Delete,
    /// Reads a registry.
    GetRegistry,
}

// === impl Operation ===

impl Operation {
    /// All operations.
    pub const ALL: [Self; 6] = [Self::Token, Self::List, Self::Get, Self::Create, Self::Delete, Self::GetRegistry];

    /// The name that faults and [`super::AccountsMgmt::counts`] use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::List => "listCredentials",
            Self::Get => "getCredential",
            Self::Create => "createCredential",
            Self::Delete => "deleteCredential",
            Self::GetRegistry => "getRegistry",
        }
    }
}
