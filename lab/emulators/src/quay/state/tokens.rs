//! The token service of a registry: who is it, and what may it do?

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::entry::Entry;
use super::repository::Role;
use super::team::TeamRole;
use super::{Moment, State};
use crate::basic::Basic;
use crate::quay::answer::Answer;
use crate::quay::fields::field;
use crate::quay::form::Form;
use crate::quay::refusal::Refusal;
use crate::quay::request::Request;
use crate::quay::signing::{ISSUER, is_jwt};

/// The subject of a token of a client without credentials.
const ANONYMOUS: &str = "(anonymous)";

/// The shortest time between two changes of a robot's last access.
const ACCESS_STEP: SignedDuration = SignedDuration::from_mins(1);

/// A repository and what a client wants to do with it.
struct Scope<'a> {
    /// With the organization's name.
    full: &'a str,
    namespace: &'a str,
    repository: &'a str,
    actions: Vec<&'a str>,
}

// === impl Scope ===

impl<'a> Scope<'a> {
    fn read(text: &'a str) -> Result<Self, Refusal> {
        let wrong =
            || Refusal::registry(400, "INVALID_REQUEST", format!("Unable to decode repository and actions: {text}"));
        let (full, actions) =
            text.strip_prefix("repository:").and_then(|rest| rest.rsplit_once(':')).ok_or_else(wrong)?;
        let actions: Vec<_> = actions.split(',').collect();
        if !actions.iter().all(|action| ["push", "pull", "*"].contains(action)) {
            return Err(wrong());
        }
        let (namespace, repository) = full.split_once('/').unwrap_or(("library", full));
        Ok(Self { full, namespace, repository, actions })
    }
}

// === impl State ===

impl State {
    /// Issues a token for what the client may do; that is nothing rather than a refusal.
    pub(super) fn issue_token(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let robot = request.basic().map(|basic| self.log_in(at, request, &basic)).transpose()?;
        let scopes: Vec<&str> = request.parameters("scope").collect();
        if robot.is_none() && scopes.iter().all(|scope| scope.is_empty()) {
            return Err(unauthorized());
        }
        let mut access = Vec::new();
        for text in scopes.into_iter().filter(|scope| !scope.is_empty()) {
            let scope = Scope::read(text)?;
            let actions = self.allowed(robot.as_deref(), &scope);
            access.push(json!({"type": "repository", "name": scope.full, "actions": actions}));
        }
        let subject = robot.as_deref().unwrap_or(ANONYMOUS);
        let token = self.bearer(at.now, subject, &json!(request.parameter("service")), &json!(access));
        Ok(Answer::of(json!({ "token": token })))
    }

    /// A token for `subject`, with the time of its end.
    pub(super) fn bearer(&self, now: Timestamp, subject: &str, audience: &Value, access: &Value) -> String {
        let until = now.saturating_add(self.rules.bearer_lifetime).unwrap_or(Timestamp::MAX);
        let kind = if subject == ANONYMOUS { "anonymous" } else { "robot" };
        self.signing.issue(&json!({
            "iss": ISSUER, "aud": audience, "sub": subject, "access": access,
            "nbf": now.as_second(), "iat": now.as_second(), "exp": until.as_second(),
            "context": {"version": 2, "entity_kind": kind, "entity_reference": subject},
        }))
    }

    /// The claims of a token of this server that has not expired.
    pub(super) fn claims(&self, now: Timestamp, token: &str) -> Option<Value> {
        let claims = self.signing.read(token)?;
        (field(&claims, "exp").as_i64()? > now.as_second()).then_some(claims)
    }

    /// The name of the robot that the credentials are of; a refusal is logged.
    fn log_in(&mut self, at: Moment<'_>, request: &Request, basic: &Basic) -> Result<String, Refusal> {
        let checked = self.check_password(at.now, basic);
        if let Err(refusal) = &checked
            && refusal.status == 401
            && self.rules.audit_login_failures
            && basic.user.starts_with(&format!("{}+", self.rules.organization))
        {
            let performer = self.robots.contains_key(&basic.user).then(|| basic.user.clone());
            let metadata = json!({
                "type": "v2auth", "kind": "robot", "robot": basic.user, "username": self.rules.organization,
                "useragent": request.agent, "message": refusal.message(),
            });
            let (address, kind) = (request.address.clone(), "login_failure");
            self.logs.push(Entry { at: at.now, kind, performer, address, metadata });
        }
        checked?;
        if let Some(account) = self.robots.get_mut(&basic.user)
            && account.last_accessed.is_none_or(|last| at.now.duration_since(last) >= ACCESS_STEP)
        {
            account.last_accessed = Some(at.now);
        }
        Ok(basic.user.clone())
    }

    /// The password is the robot's own, or one of an hour that was exchanged for a cluster's token.
    fn check_password(&self, now: Timestamp, basic: &Basic) -> Result<(), Refusal> {
        let Basic { user, password } = basic;
        if !user.contains('+') {
            return Err(Refusal::unauthorized("Invalid Username or Password"));
        }
        let Some(account) = self.robots.get(user) else {
            return Err(Refusal::unauthorized("Could not find robot with specified username"));
        };
        if is_jwt(password) {
            // Quay's code fails if it did not sign the token itself.
            let claims = self.claims(now, password).ok_or_else(|| Refusal::internal(Form::Short))?;
            if *field(&claims, "sub") != json!(user) {
                return Err(Refusal::unauthorized("Token does not match robot"));
            }
            if *field(&claims, "aud") != json!(self.rules.service) {
                return Err(Refusal::unauthorized("Invalid audience for robot token"));
            }
            return Ok(());
        }
        if account.password != *password {
            let message = format!("Could not find robot with username: {user} and supplied password.");
            return Err(Refusal::unauthorized(message));
        }
        Ok(())
    }

    /// The actions of a scope that the robot may do; one that may make repositories makes one by pushing to it.
    fn allowed(&mut self, robot: Option<&str>, scope: &Scope<'_>) -> Vec<&'static str> {
        let Some(robot) = robot.filter(|_| scope.namespace == self.rules.organization) else { return Vec::new() };
        let wants = |action: &str| scope.actions.contains(&action);
        let mut allowed = Vec::new();
        let makes = wants("push") && !self.repositories.contains_key(scope.repository);
        if makes && self.has_team_role(robot, |role| role != TeamRole::Member) {
            self.add_repository(scope.repository);
            if let Some(made) = self.repositories.get_mut(scope.repository) {
                made.users.insert(robot.to_owned(), Role::Admin);
            }
        }
        let role = self.role(robot, scope.repository);
        for (action, needed) in [("push", Role::Write), ("pull", Role::Read), ("*", Role::Admin)] {
            if wants(action) && role >= Some(needed) {
                allowed.push(action);
            }
        }
        allowed
    }
}

/// The refusal of a client that shows nothing.
pub(super) fn unauthorized() -> Refusal {
    Refusal::unauthorized("access to the requested resource is not authorized")
}
