//! Parts of registries in which only the original has a say.

use std::collections::BTreeSet;
use std::fmt;

use crate::lookup::covers;
use crate::problem::ProblemKind;
use crate::registry_key::RegistryKey;

/// A registry or a part of one, such as `registry.redhat.io` or `quay.io/openshift-release-dev`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// Reads what is written like the key of an entry; a prefix with a glob protects nothing and is refused.
    pub fn parse(text: &str) -> Result<Self, ProblemKind> {
        let key = RegistryKey::parse(text)?;
        if key.has_glob() { Err(ProblemKind::KeyGlob) } else { Ok(Self(key.normalized().to_owned())) }
    }

    /// Whether an entry under `key` would be used for images here, in place of the original's.
    ///
    /// A key in the protected part always would; one above it would where the original has nothing that comes before it.
    pub(crate) fn is_shadowed_by(&self, key: &str, original_keys: &BTreeSet<String>) -> bool {
        let Ok(parsed) = RegistryKey::parse(key) else { return false };
        // For containers/image a key with a scheme is its host, whatever path it has.
        let [_, as_host] = parsed.as_read();
        let forms = [parsed.normalized().to_owned(), as_host.to_ascii_lowercase()];
        // kubelet tries keys in reverse order.
        let first_of_original = original_keys.iter().rev().find(|original| covers(original, &self.0));
        let comes_first = |form: &String| first_of_original.is_some_and(|original| form >= original);
        forms.iter().any(|form| match self.holds(form) {
            Holds::Surely => true,
            Holds::PerhapsByGlob => comes_first(form),
            Holds::No => covers(form, &self.0) && comes_first(form),
        })
    }

    /// Whether a key is this prefix or below it.
    fn holds(&self, key: &str) -> Holds {
        let (host, path) = self.0.split_once('/').unwrap_or((&self.0, ""));
        let (key_host, key_path) = key.split_once('/').unwrap_or((key, ""));
        let rest =
            key_path.strip_prefix(path).filter(|rest| path.is_empty() || rest.is_empty() || rest.starts_with('/'));
        match rest {
            Some(_) if key_host == host => Holds::Surely,
            Some(_) if covers(key_host, host) => Holds::PerhapsByGlob,
            _ => Holds::No,
        }
    }
}

/// Whether a key is in the protected part.
enum Holds {
    Surely,
    /// It is for some registries, of which this is one. kubelet tries such keys after those that name the registry.
    PerhapsByGlob,
    No,
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
