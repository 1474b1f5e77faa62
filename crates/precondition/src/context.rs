//! What an expression is evaluated against, and what of it may be told.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::syntax::Root;
use crate::value::Traced;

/// Words in a member's name that make its value a secret.
const SECRET_WORDS: &[&str] =
    &["secret", "password", "passwd", "passphrase", "token", "credential", "apikey", "privatekey", "dockerconfig"];
/// Names that are secret only if they are nothing else.
const SECRET_NAMES: &[&str] = &["auth", "auths", "authorization", "pwd", "jwt"];

/// The documents an expression asks, and facts that make its explanation useful.
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

/// What is known of an adapter besides its report's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdapterFacts {
    /// The generation that its last report was about.
    pub reported_generation: u64,
}

// === impl Context ===

impl<'a> Context<'a> {
    /// Of a whole resource: `spec`, `status` and `metadata` are its members, `cluster.` is any of them.
    pub fn of(document: &'a Value) -> Self {
        Self { document: Some(document), ..Self::empty() }
    }

    /// Knows nothing: every member is nil.
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

    /// In the place of the document's own.
    #[must_use]
    pub fn with_spec(self, spec: &'a Value) -> Self {
        Self { spec: Some(spec), ..self }
    }

    /// In the place of the document's own: the API of today has no `status.adapters`, so its reader makes it up.
    #[must_use]
    pub fn with_status(self, status: &'a Value) -> Self {
        Self { status: Some(status), ..self }
    }

    /// In the place of the document's own.
    #[must_use]
    pub fn with_metadata(self, metadata: &'a Value) -> Self {
        Self { metadata: Some(metadata), ..self }
    }

    /// The event that an adapter was woken by.
    #[must_use]
    pub fn with_event(self, event: &'a Value) -> Self {
        Self { event: Some(event), ..self }
    }

    /// The resource's generation, for saying that a report is about an older one.
    #[must_use]
    pub fn at_generation(self, generation: u64) -> Self {
        Self { generation: Some(generation), ..self }
    }

    /// Which adapters have reported. Who is not among them has not.
    #[must_use]
    pub fn with_adapters(self, adapters: impl IntoIterator<Item = (&'a str, AdapterFacts)>) -> Self {
        Self { adapters: Some(adapters.into_iter().collect()), ..self }
    }

    /// Besides `spec.pullSecret` and members whose names say that they are secret: never show what is at or below this
    /// path, which is written with dots: `spec.platform.kubeconfig`. Elements of lists are not counted in it.
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

    /// Whether what was just stepped to, by the last name of the path, must not be shown.
    pub(crate) fn hides(&self, path: &[&str]) -> bool {
        // Adapters' names are names: `pullsecret` is one of them.
        let named = matches!(path, ["status", "adapters", _]);
        let secret = !named && path.last().is_some_and(|name| looks_secret(name));
        let members = || path.iter().filter(|segment| **segment != "[]");
        secret
            || self
                .hidden
                .iter()
                .any(|hidden| hidden.len() <= members().count() && hidden.iter().eq(members().take(hidden.len())))
    }

    /// What to know about a value that an adapter has reported.
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

    /// The names that could have been meant where a member is missing.
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

/// Whether a member of this name holds a secret, going by the name alone. Too often is better than too seldom.
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
    fn secrets_are_known_by_their_names() {
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
