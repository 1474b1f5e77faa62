//! The forms that errors have.

/// The form of an error's document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// That of the API: a problem with a type of its own.
    Api,
    /// A message only: what Quay's stored data refuses by itself.
    Short,
    /// An error only, of the exchange of tokens.
    Error,
    /// That of registries: a list of codes.
    Registry,
}
