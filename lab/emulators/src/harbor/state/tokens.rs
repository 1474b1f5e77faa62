//! The token service, and the little of a registry that there is: one manifest in each repository of the project.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Answer, State, days};
use crate::basic::Basic;
use crate::harbor::refusal::Refusal;
use crate::harbor::request::Request;
use crate::harbor::settings::{Pull, Robot};

/// The tag of every repository.
const TAG: &str = "latest";

// === impl State ===

impl State {
    /// Issues a token for what the client may do; a wrong password is as good as none.
    pub(super) fn issue_token(&self, now: Timestamp, request: &Request) -> Result<Answer, Refusal> {
        let robot = request.basic().and_then(|basic| self.robot_of(now, &basic));
        let scopes = request.query.iter().filter(|(name, scope)| name == "scope" && !scope.is_empty());
        let scopes: Vec<&str> = scopes.flat_map(|(_, scope)| scope.split(' ')).collect();
        if robot.is_none() && scopes.is_empty() {
            return Err(Refusal::unauthorized());
        }
        let mut access = Vec::new();
        for scope in scopes {
            let parts = scope.strip_prefix("repository:").and_then(|rest| rest.rsplit_once(':'));
            let (repository, _actions) = parts.ok_or_else(|| Refusal::new(500, "internal server error"))?;
            let actions: &[&str] = if self.may_pull(robot, repository) { &["pull"] } else { &[] };
            access.push(json!({"type": "repository", "name": repository, "actions": actions}));
        }
        let lifetime = SignedDuration::try_from(self.settings.bearer_lifetime).unwrap_or(SignedDuration::MAX);
        let until = now.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
        let token = self.signer.issue(&json!({
            "iss": "harbor-token-issuer", "aud": request.parameter("service"), "exp": until.as_second(),
            "sub": robot.map_or("", |robot| robot.name.as_str()), "access": access,
        }));
        Ok(Answer::of(json!({"token": token, "access_token": "", "expires_in": lifetime.as_secs()})))
    }

    /// Answers the first question of a registry's client, and to one with user and password.
    pub(super) fn log_in(&self, now: Timestamp, request: &Request) -> Result<Answer, Refusal> {
        let is_robot = request.basic().is_some_and(|basic| self.robot_of(now, &basic).is_some());
        let is_known = is_robot || self.claims(now, request).is_some();
        if is_known { Ok(Answer::of(json!({}))) } else { Err(Refusal::unauthorized()) }
    }

    /// Goes by the token alone: its robot may be gone.
    pub(super) fn list_tags(&self, now: Timestamp, request: &Request) -> Result<Answer, Refusal> {
        self.subject(now, request)?;
        Ok(Answer::of(json!({"name": request.target, "tags": [TAG]})))
    }

    /// Writes a pull to the audit log; a question for the header is none.
    pub(super) fn get_manifest(&mut self, now: Timestamp, request: &Request) -> Result<Answer, Refusal> {
        let subject = self.subject(now, request)?;
        if request.reference != TAG {
            return Err(Refusal::new(404, "artifact not found"));
        }
        if !request.is_head {
            let username = if subject.is_empty() { "anonymous".to_owned() } else { subject };
            self.record_pull(Pull { username, resource: format!("{}:{TAG}", request.target), at: now });
        }
        Ok(Answer::of(
            json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": []}),
        ))
    }

    /// The robot of a name and a password that is accepted.
    pub(super) fn robot_of(&self, now: Timestamp, basic: &Basic) -> Option<&Robot> {
        let robot = self.robots.values().find(|robot| robot.name == basic.user)?;
        let is_expired =
            robot.duration != -1 && robot.created.saturating_add(days(robot.duration)).is_ok_and(|end| end <= now);
        (robot.secret == basic.password && !robot.disabled && !is_expired).then_some(robot)
    }

    fn may_pull(&self, robot: Option<&Robot>, repository: &str) -> bool {
        let is_here = repository.split_once('/').is_some_and(|(project, _)| project == self.settings.project);
        is_here && (self.settings.is_public || robot.is_some_and(|robot| robot.pulls))
    }

    /// The user who may pull from the repository of a call: by a token, or by user and password.
    fn subject(&self, now: Timestamp, request: &Request) -> Result<String, Refusal> {
        if let Some(basic) = request.basic() {
            let robot = self.robot_of(now, &basic).ok_or_else(Refusal::unauthorized)?;
            let may = self.may_pull(Some(robot), &request.target);
            return may.then(|| robot.name.clone()).ok_or_else(Refusal::unauthorized);
        }
        let claims = self.claims(now, request).ok_or_else(Refusal::unauthorized)?;
        let allows = |access: &Value| {
            access.get("name") == Some(&json!(request.target)) && access.get("actions") == Some(&json!(["pull"]))
        };
        let access = claims.get("access").and_then(Value::as_array);
        if !access.is_some_and(|access| access.iter().any(allows)) {
            return Err(Refusal::unauthorized());
        }
        Ok(claims.get("sub").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// The claims of a token of this server that has not expired.
    fn claims(&self, now: Timestamp, request: &Request) -> Option<Value> {
        let claims = self.signer.read(request.bearer()?)?;
        (claims.get("exp")?.as_i64()? > now.as_second()).then_some(claims)
    }
}
