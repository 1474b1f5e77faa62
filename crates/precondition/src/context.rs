//! The documents that an expression is evaluated against, and the values in them that are secret.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::syntax::Root;
use crate::value::Traced;

/// Parts of a member's name that make its value a secret.
const SECRET_WORDS: &[&str] =
    &["secret", "password", "passwd", "passphrase", "token", "credential", "apikey", "privatekey", "dockerconfig"];
/// Whole names of secret members.
const SECRET_NAMES: &[&str] = &["auth", "auths", "authorization", "pwd", "jwt"];

/// The documents that an expression refers to, and facts for its explanation.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    document: Option<&'a Value>,
    spec: Option<&'a Value>,
    status: Option<&'a Value>,
    metadata: Option<&'a Value>,
    event: Option<&'a Value>,
    generation: Option<u64>,
    adapters: Option<BTreeMap<&'a str, AdapterFacts>>,
    hidden: Vec<Vec<&'a str>>,
}

/// Facts about an adapter besides the content of its report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdapterFacts {
    /// The generation that its last report was about.
    pub reported_generation: u64,
}

// === impl Context ===

impl<'a> Context<'a> {
    /// The context of a whole resource: `spec`, `status` and `metadata` are its members, `cluster.` is any of them.
    pub fn of(document: &'a Value) -> Self {
        Self { document: Some(document), ..Self::empty() }
    }

    /// An empty context: every member is nil.
    pub fn empty() -> Self {
        Self {
            document: None,
            spec: None,
            status: None,
            metadata: None,
            event: None,
            generation: None,
            adapters: None,
            hidden: vec![vec!["spec", "pullSecret"]],
        }
    }

    /// Replaces the document's own spec.
    #[must_use]
    pub fn with_spec(self, spec: &'a Value) -> Self {
        Self { spec: Some(spec), ..self }
    }

    /// Replaces the document's own status: HyperFleet's API has no `status.adapters`, so the client builds it.
    #[must_use]
    pub fn with_status(self, status: &'a Value) -> Self {
        Self { status: Some(status), ..self }
    }

    /// Replaces the document's own metadata.
    #[must_use]
    pub fn with_metadata(self, metadata: &'a Value) -> Self {
        Self { metadata: Some(metadata), ..self }
    }

    /// Sets the event that triggered the adapter.
    #[must_use]
    pub fn with_event(self, event: &'a Value) -> Self {
        Self { event: Some(event), ..self }
    }

    /// Sets the resource's generation, so that explanations name reports about an older one.
    #[must_use]
    pub fn at_generation(self, generation: u64) -> Self {
        Self { generation: Some(generation), ..self }
    }

    /// Sets the adapters that have reported; all others have not.
    #[must_use]
    pub fn with_adapters(self, adapters: impl IntoIterator<Item = (&'a str, AdapterFacts)>) -> Self {
        Self { adapters: Some(adapters.into_iter().collect()), ..self }
    }

    /// Redacts the values at or below this path, besides `spec.pullSecret` and members with secret names. The path is written
    /// with dots, without elements of lists: `spec.platform.kubeconfig`.
    #[must_use]
    pub fn hiding(mut self, path: &'a str) -> Self {
        self.hidden.push(path.split('.').collect());
        self
    }

    pub(crate) fn root(&self, root: &Root) -> Option<&'a Value> {
        let given = match root {
            Root::Spec => self.spec,
            Root::Status => self.status,
            Root::Metadata => self.metadata,
            Root::Event => return self.event,
            Root::Other(_) => None,
        };
        given.or_else(|| self.document?.get(root.name()))
    }

    /// Returns true if the last member of the path is secret.
    pub(crate) fn hides(&self, path: &[&str]) -> bool {
        // The name of an adapter is not secret: `pullsecret` is one.
        let named = matches!(path, ["status", "adapters", _]);
        let secret = !named && path.last().is_some_and(|name| looks_secret(name));
        let members = || path.iter().filter(|segment| **segment != "[]");
        secret
            || self
                .hidden
                .iter()
                .any(|hidden| hidden.len() <= members().count() && hidden.iter().eq(members().take(hidden.len())))
    }

    /// Returns a note about a value that an adapter has reported.
    pub(crate) fn adapter_note(&self, path: &[&str]) -> Option<String> {
        let (["status", "adapters", name, ..], Some(adapters)) = (path, &self.adapters) else {
            return None;
        };
        if *name == "…" {
            return None;
        }
        let Some(facts) = adapters.get(name) else {
            return Some(format!("{name} adapter has not reported"));
        };
        let generation = self.generation.filter(|generation| *generation != facts.reported_generation)?;
        let reported = facts.reported_generation;
        Some(format!("{name} adapter reported at generation {reported}, cluster is at {generation}"))
    }

    /// Returns the names that may have been meant by a missing member.
    pub(crate) fn siblings<'s>(&'s self, parent: &'s Traced<'a>) -> impl Iterator<Item = &'s str> {
        let members = match &parent.datum {
            crate::value::Datum::Object(members) if !parent.hidden => Some(members.keys()),
            _ => None,
        };
        let adapters = self.adapters.as_ref().filter(|_| parent.path == ["status", "adapters"]);
        let reported = adapters.into_iter().flat_map(|adapters| adapters.keys().copied());
        members.into_iter().flatten().map(String::as_str).chain(reported)
    }
}

/// Returns true if the name suggests a secret. A false alarm is better than a leak.
pub(crate) fn looks_secret(name: &str) -> bool {
    // Most names are short and plain; nothing is allocated for those that cannot match.
    let plain = || name.chars().filter(char::is_ascii_alphanumeric).map(|next| next.to_ascii_lowercase());
    if SECRET_NAMES.iter().any(|secret| plain().eq(secret.chars())) {
        return true;
    }
    let plain = plain().collect::<String>();
    SECRET_WORDS.iter().any(|word| plain.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_recognised_by_their_names() {
        for name in
            ["password", "apiKey", "api_key", "api-key", "clientSecret", ".dockerconfigjson", "auth", "accessToken"]
        {
            assert!(looks_secret(name), "{name}");
        }
        for name in ["provider", "projectId", "author", "available", "data", "phase", "authority"] {
            assert!(!looks_secret(name), "{name}");
        }
    }

    #[test]
    fn an_adapter_may_be_called_secret() {
        let context = Context::empty();
        assert!(!context.hides(&["status", "adapters", "pullsecret"]));
        assert!(context.hides(&["status", "adapters", "pullsecret", "token"]));
        assert!(context.hides(&["spec", "pullSecret", "data"]));
        assert!(context.clone().hiding("spec.a.b").hides(&["spec", "a", "[]", "b", "c"]));
        assert!(!context.hides(&["spec", "a"]));
    }
}
