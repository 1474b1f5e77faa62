//! The token service, and the little of a registry that there is: one manifest in each repository.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::request::Request;
use super::settings::Account;
use super::state::{Answer, State};

/// The tag of every repository.
const TAG: &str = "latest";

// === impl State ===

impl State {
    /// Issues a token: each account may pull from each repository.
    pub(super) fn issue_token(&self, now: Timestamp, request: &Request) -> Result<Answer, Refusal> {
        let account = self.account_of(now, request).ok_or_else(Refusal::unauthorized)?;
        let scope = request.parameter("scope").and_then(|scope| scope.strip_prefix("repository:"));
        let repository = scope.and_then(|scope| scope.strip_suffix(":pull"));
        let access: Vec<Value> = repository
            .map(|repository| json!({"type": "repository", "name": repository, "actions": ["pull"]}))
            .into_iter()
            .collect();
        let lifetime = SignedDuration::try_from(self.settings.bearer_lifetime).unwrap_or(SignedDuration::MAX);
        let until = now.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
        let claims = json!({"sub": account.name, "exp": until.as_second(), "access": access});
        let token = self.signer.issue(&claims);
        Ok(Answer::of(json!({"token": token, "access_token": token, "expires_in": lifetime.as_secs()})))
    }

    pub(super) fn list_tags(&self, now: Timestamp, request: &Request) -> Result<Answer, Refusal> {
        self.check_bearer(now, request)?;
        Ok(Answer::of(json!({"name": request.target, "tags": [TAG]})))
    }

    pub(super) fn get_manifest(&self, now: Timestamp, request: &Request) -> Result<Answer, Refusal> {
        self.check_bearer(now, request)?;
        if request.reference != TAG {
            return Err(Refusal::new(404, "manifest unknown"));
        }
        Ok(Answer::of(
            json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": []}),
        ))
    }

    /// The account of a login whose password has not expired.
    fn account_of(&self, now: Timestamp, request: &Request) -> Option<&Account> {
        let basic = request.basic()?;
        let account = self.found(basic.user.strip_prefix('|')?)?;
        let expiry = self.signer.read(&account.password)?.get("exp").and_then(Value::as_i64);
        let is_over = expiry.is_some_and(|expiry| expiry <= now.as_second());
        (account.password == basic.password && !is_over).then_some(account)
    }

    /// Goes by the token alone: its account may be gone.
    fn check_bearer(&self, now: Timestamp, request: &Request) -> Result<(), Refusal> {
        let claims = request.bearer().and_then(|token| self.signer.read(token)).ok_or_else(Refusal::unauthorized)?;
        let is_over = claims.get("exp").and_then(Value::as_i64).is_none_or(|expiry| expiry <= now.as_second());
        let access = claims.get("access").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let allows = access.iter().any(|access| access.get("name") == Some(&json!(request.target)));
        if allows && !is_over { Ok(()) } else { Err(Refusal::unauthorized()) }
    }
}
