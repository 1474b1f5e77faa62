//! The operations on objects, by the names of Kubernetes' authorization.

use std::fmt;

/// An operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Setting up the client.
    Connect,
    /// Read one object.
    Get,
    /// Read several objects.
    List,
    /// Watch one or several objects.
    Watch,
    /// Create an object.
    Create,
    /// Server-side apply, or another patch.
    Apply,
    /// Replace an object as a whole.
    Replace,
    /// Delete an object.
    Delete,
}

impl fmt::Display for Verb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Connect => "set up the client for",
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Apply => "patch",
            Self::Replace => "update",
            Self::Delete => "delete",
        })
    }
}
