//! The little of a registry that there is: one manifest in each repository, with one tag.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::tokens::unauthorized;
use super::{Moment, State};
use crate::quay::answer::Answer;
use crate::quay::fields::field;
use crate::quay::refusal::Refusal;
use crate::quay::request::Request;
use crate::quay::settings::Pull;

/// The tag of every repository.
const TAG: &str = "latest";

/// The digest of the configuration `{}`.
const EMPTY: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

impl State {
    /// Answers the first question of a registry's client.
    pub(super) fn check_version(&self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let known = request.bearer().and_then(|token| self.claims(at.now, token));
        known.map(|_| Answer::of(json!(true))).ok_or_else(unauthorized)
    }

    /// Goes by the token alone: its robot may be gone.
    pub(super) fn list_tags(&self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let Request { organization, name, .. } = request;
        self.check_access(at, request)?;
        if *organization != self.rules.organization || !self.repositories.contains_key(name) {
            return Err(Refusal::registry(404, "NAME_UNKNOWN", "repository name not known to registry"));
        }
        Ok(Answer::of(json!({"name": format!("{organization}/{name}"), "tags": [TAG]})))
    }

    /// Writes a pull to the usage log, for which the token's robot must be there.
    pub(super) fn get_manifest(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let claims = self.check_access(at, request)?;
        let robot = field(&claims, "sub").as_str().unwrap_or_default().to_owned();
        self.account(&robot)?;
        let Request { organization, name, member: reference, .. } = request;
        let body = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": EMPTY, "size": 2},
            "layers": [],
            "annotations": {"org.opencontainers.image.title": format!("{organization}/{name}")},
        });
        let digest = Sha256::digest(body.to_string())
            .iter()
            .fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"));
        if !self.repositories.contains_key(name) || (reference != TAG && *reference != digest) {
            return Err(Refusal::registry(404, "MANIFEST_UNKNOWN", "manifest unknown"));
        }
        let (address, agent) = (request.address.clone(), request.agent.clone());
        let pull = Pull { robot, repository: name.clone(), reference: reference.clone(), address, agent };
        self.record_pull(at.now, &pull);
        Ok(Answer { digest: Some(digest), ..Answer::of(body) })
    }

    /// The claims of a token that allows to pull from the repository.
    fn check_access(&self, at: Moment<'_>, request: &Request) -> Result<Value, Refusal> {
        let claims = request.bearer().and_then(|token| self.claims(at.now, token)).ok_or_else(unauthorized)?;
        let full = format!("{}/{}", request.organization, request.name);
        let allows = |access: &Value| {
            let actions = field(access, "actions").as_array();
            field(access, "name") == &json!(full) && actions.is_some_and(|actions| actions.contains(&json!("pull")))
        };
        let granted = field(&claims, "access").as_array().is_some_and(|access| access.iter().any(allows));
        if granted { Ok(claims) } else { Err(unauthorized()) }
    }
}
