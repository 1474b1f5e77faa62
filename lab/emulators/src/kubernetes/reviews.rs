//! Questions that are asked by creating something: who am I, may I, give me a token.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::answer::Answer;
use super::ask::Ask;
use super::engine::Engine;
use super::meta::stamp;
use super::rbac::{Attributes, granting};
use super::status::Status;
use super::tokens::{AUDIENCE, MASTERS};
use super::value::{list, number, set, set_default, text};

/// Validity of a token for which none is requested.
const TOKEN_SECONDS: i64 = 3600;

/// The shortest life of a token.
const TOKEN_SECONDS_MINIMUM: i64 = 600;

pub(crate) fn review(engine: &Arc<Engine>, ask: &Ask) -> Result<Answer, Status> {
    let mut review = if ask.body.is_empty() { json!({}) } else { ask.document()? };
    set(&mut review, &["apiVersion"], ask.view.api_version());
    set(&mut review, &["kind"], ask.view.kind.clone());
    let status = match ask.view.plural.as_str() {
        "selfsubjectaccessreviews" => access(engine, ask, &review)?,
        "selfsubjectrulesreviews" => rules(engine, ask, &review),
        _ => json!({"userInfo": {"username": ask.user.name, "groups": ask.user.groups}}),
    };
    set(&mut review, &["status"], status);
    set(&mut review, &["metadata", "creationTimestamp"], Value::Null);
    Ok(Answer::Document { code: 201, value: review, warnings: Vec::new() })
}

fn access(engine: &Engine, ask: &Ask, review: &Value) -> Result<Value, Status> {
    let own = |pointer: &str| text(review, pointer).to_owned();
    let attributes = if review.pointer("/spec/resourceAttributes").is_some() {
        let attribute = |name: &str| own(&format!("/spec/resourceAttributes/{name}"));
        Attributes {
            verb: attribute("verb"),
            group: attribute("group"),
            resource: attribute("resource"),
            subresource: attribute("subresource"),
            namespace: attribute("namespace"),
            name: attribute("name"),
            path: String::new(),
        }
    } else if review.pointer("/spec/nonResourceAttributes").is_some() {
        Attributes {
            verb: own("/spec/nonResourceAttributes/verb"),
            path: own("/spec/nonResourceAttributes/path"),
            ..Attributes::default()
        }
    } else {
        let cause = super::status::Cause::invalid(
            "spec",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        );
        let about = super::status::About { group: &ask.view.group, kind: "", name: "" };
        return Err(Status::invalid(about, &[cause]));
    };
    Ok(match engine.allowed(&ask.user, &attributes) {
        Some(reason) if reason.is_empty() => json!({"allowed": true}),
        Some(reason) => json!({"allowed": true, "reason": reason}),
        None => json!({"allowed": false}),
    })
}

fn rules(engine: &Engine, ask: &Ask, review: &Value) -> Value {
    let namespace = text(review, "/spec/namespace");
    let master = !engine.is_authorizing() || ask.user.groups.iter().any(|group| group == MASTERS);
    let rules = if master {
        vec![
            json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
            json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
        ]
    } else {
        engine
            .store
            .read(|state| granting(state, &ask.user, namespace).into_iter().flat_map(|(_, rules)| rules).collect())
    };
    let (paths, resources): (Vec<Value>, Vec<Value>) =
        rules.into_iter().partition(|rule| !list(rule, "/nonResourceURLs").is_empty());
    json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
}

/// A token for a `ServiceAccount`.
pub(crate) fn token(engine: &Arc<Engine>, ask: &Ask) -> Result<Answer, Status> {
    let mut request = if ask.body.is_empty() { json!({}) } else { ask.document()? };
    let seconds = number(&request, "/spec/expirationSeconds").unwrap_or(TOKEN_SECONDS);
    if seconds < TOKEN_SECONDS_MINIMUM {
        let about = super::status::About { group: "authentication.k8s.io", kind: "TokenRequest", name: "" };
        let message = "may not specify a duration less than 10 minutes";
        let cause = super::status::Cause::invalid("spec.expirationSeconds", &json!(seconds), message);
        return Err(Status::invalid(about, &[cause]));
    }
    let life = Duration::from_secs(seconds.unsigned_abs());
    let until = engine.store.now().checked_add(life).unwrap_or(jiff::Timestamp::MAX);
    let audiences: Vec<String> =
        list(&request, "/spec/audiences").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let audiences = if audiences.is_empty() { vec![AUDIENCE.to_owned()] } else { audiences };
    let token = engine.store.issue_token(&ask.namespace, &ask.name, &audiences, until)?;
    set(&mut request, &["spec", "audiences"], audiences);
    set_default(&mut request, &["spec", "boundObjectRef"], Value::Null);
    set(&mut request, &["apiVersion"], "authentication.k8s.io/v1");
    set(&mut request, &["kind"], "TokenRequest");
    set(&mut request, &["metadata", "name"], ask.name.clone());
    set(&mut request, &["metadata", "namespace"], ask.namespace.clone());
    set(&mut request, &["spec", "expirationSeconds"], seconds);
    set(&mut request, &["status"], json!({"token": token, "expirationTimestamp": stamp(until)}));
    Ok(Answer::Document { code: 201, value: request, warnings: Vec::new() })
}
