//! The operations that grants allow, and the kinds that a request is about.

/// An operation on resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Read one resource, its reports and its history.
    Get,
    /// Read lists, also with a search.
    List,
    /// Follow the change stream.
    Watch,
    /// Create resources.
    Create,
    /// Change spec, labels and references.
    Update,
    /// Request the deletion.
    Delete,
}

/// The kinds that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// One kind.
    Kind(&'a str),
    /// Every kind that is served: the path does not say which.
    Every,
}

// === impl Verb ===

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 6] = [Self::Get, Self::List, Self::Watch, Self::Create, Self::Update, Self::Delete];

    /// Returns the verb as grants write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == name)
    }
}

// === impl Scope ===

impl<'a> From<Option<&'a str>> for Scope<'a> {
    fn from(kind: Option<&'a str>) -> Self {
        kind.map_or(Self::Every, Self::Kind)
    }
}

impl std::fmt::Display for Scope<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Kind(kind) => kind,
            Self::Every => "every kind",
        })
    }
}
