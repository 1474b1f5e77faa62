//! One grant: its settings, the identities that it fits, and its permissions.

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::verb::Verb;

/// Stands for every verb, kind or adapter in a grant.
pub const ANY: &str = "*";

/// A grant, an item of `authorization.grants`. It fits the identities of one issuer that have the subject or the claim.
#[expect(clippy::struct_excessive_bools, reason = "each is a permission of its own, which an operator sets by name")]
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrantSettings {
    /// The name that audit records give as the cause; by default its place in the list.
    #[serde(default)]
    pub name: Option<String>,
    /// The issuer of the token, as in `server.jwt.configs[].issuer_url`.
    pub issuer: String,
    /// The exact identity.
    #[serde(default)]
    pub subject: Option<String>,
    /// A claim of the token instead of the identity.
    #[serde(default)]
    pub claim: Option<ClaimSettings>,
    /// The kinds of resources that it is for; `*` is every kind.
    pub kinds: Vec<String>,
    /// The operations: `get`, `list`, `watch`, `create`, `update`, `delete`; `*` is all of them.
    #[serde(default)]
    pub verbs: Vec<String>,
    /// The adapters in whose name it may report; `*` is every adapter.
    #[serde(default)]
    pub reports_as: Vec<String>,
    /// May read pull secrets in clear, together with the verb `get`.
    #[serde(default)]
    pub reads_pull_secrets: bool,
    /// May choose where a pull secret goes that the request does not contain, together with the verb of the request.
    #[serde(default)]
    pub chooses_destination: bool,
    /// May remove resources without waiting for adapters.
    #[serde(default)]
    pub force_deletes: bool,
    /// May read the tombstones that forced deletions leave, and report their copies as deleted.
    #[serde(default)]
    pub sweeps: bool,
    /// May do all this with the resources of every tenant, where `server.tenant.enabled` isolates tenants.
    #[serde(default)]
    pub all_tenants: bool,
}

/// The claim that a grant demands.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimSettings {
    /// The claim's name, such as `groups`.
    pub name: String,
    /// A regular expression that must match the whole text of the claim, or of one member of a list.
    pub pattern: String,
}

/// An authenticated identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The issuer of its token; empty where authentication is off.
    pub issuer: String,
    /// The identity's name at that issuer.
    pub subject: String,
    /// The claims of its token.
    #[serde(skip)]
    pub claims: Map<String, Value>,
}

/// A checked grant.
#[expect(clippy::struct_excessive_bools, reason = "each is a permission of its own, which an operator sets by name")]
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) name: String,
    issuer: String,
    whom: Whom,
    kinds: Vec<String>,
    pub(super) verbs: Vec<Verb>,
    pub(super) reports_as: Vec<String>,
    pub(super) reads_pull_secrets: bool,
    pub(super) chooses_destination: bool,
    pub(super) force_deletes: bool,
    pub(super) sweeps: bool,
    pub(super) all_tenants: bool,
}

/// The identities of an issuer that a grant fits.
#[derive(Debug)]
enum Whom {
    /// The one with this name.
    Subject(String),
    /// Those with a claim that matches.
    Claim { name: String, pattern: Regex },
}

// === impl Grant ===

impl Grant {
    pub(super) fn new(
        index: usize,
        settings: &GrantSettings,
        kinds: &[String],
        issuers: &[&str],
    ) -> Result<Self, (&'static str, String)> {
        let settings = settings.clone();
        if !issuers.contains(&settings.issuer.as_str()) {
            return Err(("issuer", "is the issuer_url of no item of server.jwt.configs".to_owned()));
        }
        let whom = match (settings.subject, settings.claim) {
            (Some(subject), None) if !subject.is_empty() => Whom::Subject(subject),
            (None, Some(ClaimSettings { name, pattern })) => {
                let pattern = Regex::new(&format!("^(?:{pattern})$"));
                let pattern = pattern.map_err(|_| ("claim.pattern", "is not a regular expression".to_owned()))?;
                Whom::Claim { name, pattern }
            }
            _ => return Err(("subject", "give either it or claim".to_owned())),
        };
        if settings.kinds.is_empty() {
            return Err(("kinds", "name at least one kind, or `*`".to_owned()));
        }
        if let Some(unknown) = settings.kinds.iter().find(|kind| *kind != ANY && !kinds.contains(kind)) {
            return Err(("kinds", format!("`{unknown}` is not a kind that is served here")));
        }
        let verbs = verbs(&settings.verbs)?;
        let grant = Self {
            name: settings.name.unwrap_or_else(|| format!("authorization.grants[{index}]")),
            issuer: settings.issuer,
            whom,
            kinds: settings.kinds,
            verbs,
            reports_as: settings.reports_as,
            reads_pull_secrets: settings.reads_pull_secrets,
            chooses_destination: settings.chooses_destination,
            force_deletes: settings.force_deletes,
            sweeps: settings.sweeps,
            all_tenants: settings.all_tenants,
        };
        grant.check()
    }

    /// Refuses members without effect.
    fn check(self) -> Result<Self, (&'static str, String)> {
        let writes = self.verbs.contains(&Verb::Create) || self.verbs.contains(&Verb::Update);
        if self.verbs.is_empty() && self.reports_as.is_empty() && !self.force_deletes && !self.sweeps {
            let fault = "the grant allows nothing: give verbs, reports_as, force_deletes or sweeps";
            return Err(("verbs", fault.to_owned()));
        }
        if self.reads_pull_secrets && !self.verbs.contains(&Verb::Get) {
            return Err(("reads_pull_secrets", "has no effect without the verb get".to_owned()));
        }
        if self.chooses_destination && !writes {
            return Err(("chooses_destination", "has no effect without the verb create or update".to_owned()));
        }
        Ok(self)
    }

    pub(super) fn fits(&self, identity: &Identity) -> bool {
        self.issuer == identity.issuer
            && match &self.whom {
                Whom::Subject(subject) => *subject == identity.subject,
                Whom::Claim { name, pattern } => match identity.claims.get(name) {
                    Some(Value::String(text)) => pattern.is_match(text),
                    Some(Value::Array(items)) => {
                        items.iter().any(|item| item.as_str().is_some_and(|text| pattern.is_match(text)))
                    }
                    _ => false,
                },
            }
    }

    pub(super) fn covers(&self, kind: &str) -> bool {
        self.kinds.iter().any(|covered| covered == ANY || covered == kind)
    }
}

fn verbs(names: &[String]) -> Result<Vec<Verb>, (&'static str, String)> {
    if names.iter().any(|name| name == ANY) {
        return Ok(Verb::ALL.to_vec());
    }
    let parsed = names.iter().map(|name| Verb::parse(name).ok_or(name));
    parsed.collect::<Result<_, _>>().map_err(|unknown| {
        ("verbs", format!("`{unknown}` is none of get, list, watch, create, update, delete and `*`"))
    })
}

// === impl Identity ===

impl Identity {
    /// Returns the identity with these claims, by name; a value that is JSON is taken as such.
    pub fn with_claims(issuer: &str, subject: &str, claims: impl IntoIterator<Item = (String, String)>) -> Self {
        let value = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
        let claims = claims.into_iter().map(|(name, text)| (name, value(text))).collect();
        Self { issuer: issuer.to_owned(), subject: subject.to_owned(), claims }
    }
}
