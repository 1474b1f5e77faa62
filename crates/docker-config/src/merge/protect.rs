//! Protected prefixes: parts of registries that additional documents cannot change.

use std::collections::BTreeSet;
use std::fmt;

use crate::lookup::covers;
use crate::problem::ProblemKind;
use crate::registry_key::RegistryKey;

/// A registry or a part of one, such as `registry.redhat.io` or `quay.io/openshift-release-dev`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// Parses a prefix, written like the key of an entry. A prefix with a glob would protect nothing and is refused.
    pub fn parse(text: &str) -> Result<Self, ProblemKind> {
        let key = RegistryKey::parse(text)?;
        if key.has_glob() { Err(ProblemKind::KeyGlob) } else { Ok(Self(key.normalized().to_owned())) }
    }

    /// Returns true if an entry under `key` would be used for images with this prefix, instead of the original's.
    ///
    /// A key in the protected part always is; one above it is if the original has no key that takes precedence.
    pub(crate) fn is_shadowed_by(&self, key: &str, original_keys: &BTreeSet<String>) -> bool {
        let Ok(parsed) = RegistryKey::parse(key) else { return false };
        // For containers/image a key with a scheme is its host, whatever path it has.
        let [_, as_host] = parsed.as_read();
        let forms = [parsed.normalized().to_owned(), as_host.to_ascii_lowercase()];
        // kubelet tries keys in reverse order.
        let first_of_original = original_keys.iter().rev().find(|original| covers(original, &self.0));
        let comes_first = |form: &String| first_of_original.is_some_and(|original| form >= original);
        forms.iter().any(|form| match self.relation(form) {
            Relation::Within => true,
            Relation::ByGlob => comes_first(form),
            Relation::Outside => covers(form, &self.0) && comes_first(form),
        })
    }

    /// Compares a key with this prefix.
    fn relation(&self, key: &str) -> Relation {
        let (host, path) = self.0.split_once('/').unwrap_or((&self.0, ""));
        let (key_host, key_path) = key.split_once('/').unwrap_or((key, ""));
        let rest =
            key_path.strip_prefix(path).filter(|rest| path.is_empty() || rest.is_empty() || rest.starts_with('/'));
        match rest {
            Some(_) if key_host == host => Relation::Within,
            Some(_) if covers(key_host, host) => Relation::ByGlob,
            _ => Relation::Outside,
        }
    }
}

/// The relation of a key to the protected part.
enum Relation {
    Within,
    /// Its glob matches this registry. kubelet tries such keys after those that name the registry.
    ByGlob,
    Outside,
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
