//! Federation: a cluster's tokens stand for a robot.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::binding::Binding;
use super::{Moment, State};
use crate::basic::Basic;
use crate::quay::answer::Answer;
use crate::quay::fields::field;
use crate::quay::form::Form;
use crate::quay::refusal::Refusal;
use crate::quay::request::Request;
use crate::quay::signing::is_jwt;

impl State {
    /// Replaces all bindings of a robot.
    pub(super) fn put_federation(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let bindings = bindings(&request.document()?)?;
        let answer = json!(bindings);
        self.account_mut(&request.robot())?.bindings = bindings;
        self.log(at, request, "create_robot_federation", json!({"config": answer, "robot": request.name}));
        Ok(Answer::of(answer))
    }

    pub(super) fn get_federation(&self, request: &Request) -> Result<Answer, Refusal> {
        Ok(Answer::of(json!(self.account(&request.robot())?.bindings)))
    }

    pub(super) fn delete_federation(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        self.account_mut(&request.robot())?.bindings.clear();
        self.log(at, request, "delete_robot_federation", json!({"robot": request.name}));
        Ok(Answer::empty())
    }

    /// Exchanges a cluster's token, which stands where a password would, for a password with an end.
    pub(super) fn exchange_token(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let Basic { user, password } = request.basic().ok_or_else(Refusal::missing_credentials)?;
        let account = self.account(&user)?;
        if !is_jwt(&password) {
            return Err(Refusal::internal(Form::Short));
        }
        if account.bindings.is_empty() {
            return Err(Refusal::short("Robot does not have federated login configured"));
        }
        let claims = self.signing.read_subject_token(&password).unwrap_or_default();
        let text = |name: &str| field(&claims, name).as_str().unwrap_or_default().to_owned();
        let shown = Binding { issuer: text("iss"), subject: text("sub") };
        if !account.bindings.iter().any(|binding| binding.issuer == shown.issuer) {
            return Err(Refusal::short("Token issuer is not configured for this robot"));
        }
        if !account.bindings.contains(&shown) {
            return Err(Refusal::short("Token subject does not match"));
        }
        if field(&claims, "exp").as_i64().is_none_or(|until| until <= at.now.as_second()) {
            return Err(Refusal::short("Signature has expired"));
        }
        let token = self.bearer(at.now, &user, &json!(self.rules.service), &json!({}));
        let robot = self.short(&user).unwrap_or_default().to_owned();
        let logged = json!({"robot": robot, "issuer": shown.issuer, "subject": shown.subject});
        self.log(Moment { user: &user, ..at }, request, "federated_robot_token_exchange", logged);
        Ok(Answer::of(json!({ "token": token })))
    }
}

fn bindings(body: &Value) -> Result<Vec<Binding>, Refusal> {
    let mut seen = BTreeSet::new();
    let items = body.as_array().ok_or_else(|| Refusal::invalid("the body is not of type 'array'"))?;
    let bindings = items.iter().map(|item| {
        let text = |name: &str| field(item, name).as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let (Some(issuer), Some(subject)) = (text("issuer"), text("subject")) else {
            return Err(Refusal::invalid("Missing one or more required fields (issuer, subject)"));
        };
        if !["http://", "https://"].iter().any(|scheme| issuer.starts_with(scheme)) {
            return Err(Refusal::invalid("Issuer must be a URL (http:// or https://)"));
        }
        let binding = Binding { issuer, subject };
        if !seen.insert(binding.clone()) {
            return Err(Refusal::invalid("Duplicate federation config entry"));
        }
        Ok(binding)
    });
    bindings.collect()
}
