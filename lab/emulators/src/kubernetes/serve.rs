//! One request from its arrival to its answer: route, recognise the caller, record, strike, authorize, perform.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use http::request::Parts;
use http::{Method, Request, Response};

use super::answer::{Answer, response};
use super::ask::{Ask, Form, Parameters, content_type, manager, options, token, user_agent};
use super::engine::Engine;
use super::faults::{Aim, Effect};
use super::rbac::Attributes;
use super::resources::Resource;
use super::route::{Place, Route, route, verb};
use super::selectors::Selector;
use super::settings::Call;
use super::status::{About, Cause, Status};
use super::{discovery, verbs, watching};
use crate::connections::Connection;

/// The most that a body may hold: what the real server takes.
const BODY_BYTES_MAXIMUM: usize = 3 * 1024 * 1024;

/// So much of a body that is too large is read all the same, so that its sender sees the answer.
const BODY_BYTES_READ: usize = 8 * BODY_BYTES_MAXIMUM;

/// The cause of an unanswered call.
enum Silence {
    Cut,
    Hang,
}

/// Answers one request.
pub(crate) async fn serve(engine: Arc<Engine>, connection: Connection, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Route::Object(place) = route(head.uri.path()) else {
        return response(about_the_server(&engine, &head));
    };
    let read = to_bytes(body, BODY_BYTES_READ).await.ok().filter(|body| body.len() <= BODY_BYTES_MAXIMUM);
    let body = read.ok_or_else(|| Status::new(413, format!("Request entity too large: limit is {BODY_BYTES_MAXIMUM}")));
    let ask = body.and_then(|body| ask(&engine, &head, place, body));
    let ask = match ask {
        Ok(ask) => ask,
        Err(status) => return response(Err(status)),
    };
    let (index, effect) = record(&engine, &head, &ask);
    match struck(&engine, &connection, &ask, effect).await {
        Ok(answer) => {
            let code = answer.as_ref().map_or_else(|status| status.code, Answer::code);
            engine.answered(index, code);
            response(answer)
        }
        Err(silence) => {
            if matches!(silence, Silence::Hang) {
                tokio::select! {
                    () = engine.store.stopping.cancelled() => {}
                    () = connection.ended() => {}
                }
            }
            // The response is never written: its connection is gone before.
            connection.cut();
            Response::new(Body::empty())
        }
    }
}

/// Performs a call, with what is scripted for it.
async fn struck(
    engine: &Arc<Engine>,
    connection: &Connection,
    ask: &Ask,
    effect: Option<Effect>,
) -> Result<Result<Answer, Status>, Silence> {
    match &effect {
        Some(Effect::Cut) => return Err(Silence::Cut),
        Some(Effect::Hang) => return Err(Silence::Hang),
        Some(Effect::Slow(wait)) => tokio::time::sleep(*wait).await,
        _ => {}
    }
    if let Some(status) = effect.as_ref().and_then(Effect::refusal) {
        return Ok(Err(status));
    }
    let answer = perform(engine, connection, ask, effect.as_ref());
    match effect {
        Some(Effect::CommitThenCut) => Err(Silence::Cut),
        Some(Effect::CommitThenHang) => Err(Silence::Hang),
        Some(Effect::CommitThenTimeout) => {
            let message = "Timeout: request did not complete within the allotted timeout";
            Ok(Err(Status::new(504, message).because("Timeout")))
        }
        _ => Ok(answer),
    }
}

fn perform(
    engine: &Arc<Engine>,
    connection: &Connection,
    ask: &Ask,
    effect: Option<&Effect>,
) -> Result<Answer, Status> {
    let mut selector = Selector::default();
    if matches!(ask.verb, "list" | "watch" | "deletecollection") {
        selector = Selector::parse(&ask.resource, ask.query.get("labelSelector"), ask.query.get("fieldSelector"))?;
        if !ask.name.is_empty() {
            selector = selector.and_name(&ask.name);
        }
    }
    // A name in a field selector counts as the object's name for lists and watches, not for deletions.
    let selected = selector.name().filter(|_| ask.verb != "deletecollection");
    engine.authorize(&ask.user, &ask.attributes(selected))?;
    if ask.verb == "watch" {
        return watching::watch(engine, connection, ask, selector, effect).map(Answer::Stream);
    }
    verbs::perform(engine, ask, &selector)
}

/// The resource at a place: as it is stored, and as the caller sees it.
fn served(engine: &Engine, place: &Place) -> Option<(Arc<Resource>, Arc<Resource>)> {
    let Place { group, version, plural, namespace, subresource, .. } = place;
    let (stored, view) = engine.store.read(|state| {
        let view = state.catalog.find(group, version, plural).cloned()?;
        let stored = state.catalog.by_id(&view.storage).cloned().filter(|_| view.custom.is_none());
        Some((stored.unwrap_or_else(|| Arc::clone(&view)), view))
    })?;
    let fits = subresource.is_empty() || view.has_subresource(subresource);
    (fits && (namespace.is_empty() || view.is_namespaced())).then_some((stored, view))
}

/// Reads a request on a resource.
fn ask(engine: &Engine, head: &Parts, place: Place, body: axum::body::Bytes) -> Result<Ask, Status> {
    let query = Parameters::read(head)?;
    let user = engine.user(token(head).as_deref())?;
    let verb = verb(&head.method, &place, query.flag("watch"));
    let Some((resource, view)) = served(engine, &place) else {
        // Callers do not learn what is not served unless they might use it.
        engine.authorize(&user, &Attributes::of(&place, verb.unwrap_or_default()))?;
        return Err(Status::no_route());
    };
    let verb = verb.ok_or_else(Status::method_not_allowed)?;
    let Place { namespace, name, subresource, .. } = place;
    let whole_namespaces = view.storage == "namespaces" && verb == "deletecollection";
    let across = whole_namespaces || namespace.is_empty() && view.is_namespaced() && !matches!(verb, "list" | "watch");
    if across || view.is_review() && verb != "create" {
        return Err(Status::method_not_allowed());
    }
    let options =
        |cause: Cause| Status::invalid(About { group: "meta.k8s.io", kind: options(verb), name: "" }, &[cause]);
    let manager = manager(head, &query).map_err(options)?;
    let (form, content_type) = (Form::read(head)?, content_type(head));
    check_media_type(verb, &content_type)?;
    Ok(Ask { verb, resource, view, namespace, name, subresource, query, form, content_type, manager, user, body })
}

fn record(engine: &Engine, head: &Parts, ask: &Ask) -> (usize, Option<Effect>) {
    let call = Call {
        verb: ask.verb.to_owned(),
        resource: ask.view.plural.clone(),
        subresource: ask.subresource.clone(),
        namespace: ask.namespace.clone(),
        name: ask.name.clone(),
        user: ask.user.name.clone(),
        user_agent: user_agent(head),
        dry_run: ask.query.get("dryRun") == "All",
        content_type: ask.content_type.clone(),
        outcome: None,
    };
    let aim = Aim {
        verb: ask.verb,
        resource: call.resource.clone(),
        subresource: call.subresource.clone(),
        namespace: call.namespace.clone(),
    };
    engine.receive(call, &aim)
}

/// Refuses bodies in a form that is not read. Patches have forms of their own.
fn check_media_type(verb: &str, content_type: &str) -> Result<(), Status> {
    let known =
        matches!(content_type, "" | "application/json" | "application/yaml" | "application/vnd.kubernetes.protobuf");
    if known || !matches!(verb, "create" | "update" | "delete" | "deletecollection") {
        return Ok(());
    }
    let accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let message =
        format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
    Err(Status::new(415, message))
}

/// Answers what is no call on a resource.
fn about_the_server(engine: &Engine, head: &Parts) -> Result<Answer, Status> {
    let path = head.uri.path();
    let route = route(path);
    if matches!(route, Route::Health | Route::Version) {
        return Ok(discovery::answer(engine, &route).unwrap_or_else(|| Answer::Text(Vec::new())));
    }
    let user = engine.user(token(head).as_deref())?;
    let attributes =
        Attributes { verb: head.method.as_str().to_lowercase(), path: path.to_owned(), ..Attributes::default() };
    engine.authorize(&user, &attributes)?;
    if head.method != Method::GET {
        return Err(Status::method_not_allowed());
    }
    let answer = discovery::answer(engine, &route);
    answer.or_else(|| is_outside(&route, path).then_some(Answer::NoPath)).ok_or_else(Status::no_route)
}

/// True for paths on which no API is looked for; they are answered with a text.
fn is_outside(route: &Route, path: &str) -> bool {
    matches!(route, Route::Group(_)) || !path.starts_with("/api")
}
