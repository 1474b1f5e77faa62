//! The verbs, apart from watching.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::Answer;
use super::ask::{Ask, Form};
use super::engine::Engine;
use super::selectors::Selector;
use super::status::Status;
use super::store::{Manager, Object, Part, State, Writing};
use super::value::{set, text};
use super::{meta, rbac, reviews, tables, views};

mod lists;
mod patches;
mod removals;

pub(crate) use lists::check_revision;

/// Performs a call that may be performed.
pub(crate) fn perform(engine: &Arc<Engine>, ask: &Ask, selector: &Selector) -> Result<Answer, Status> {
    if ask.view.is_review() {
        return reviews::review(engine, ask);
    }
    match (ask.verb, ask.subresource.as_str()) {
        ("get", "log") => log(engine, ask),
        ("create", "token") => reviews::token(engine, ask),
        (_, "log" | "token") => Err(Status::method_not_allowed()),
        ("get", _) => get(engine, ask),
        ("list", _) => lists::list(engine, ask, selector),
        ("create", "") => create(engine, ask),
        ("update", _) => update(engine, ask),
        ("patch", _) => patches::patch(engine, ask),
        ("delete", "") => removals::delete(engine, ask),
        ("deletecollection", "") => removals::delete_collection(engine, ask, selector),
        _ => Err(Status::method_not_allowed()),
    }
}

impl Ask {
    /// The write that this call is.
    fn writing(&self, engine: &Engine) -> Result<Writing<'_>, Status> {
        Ok(Writing {
            resource: &self.resource,
            namespace: &self.namespace,
            name: &self.name,
            whole: self.verb != "patch",
            part: if self.subresource == "status" { Part::Status } else { Part::Main },
            manager: Manager::Update(self.manager.clone()),
            dry_run: self.query.dry_run()?,
            now: engine.store.now(),
        })
    }

    /// The body as an object of the stored kind.
    fn object(&self) -> Result<Value, Status> {
        Ok(views::absorb(&self.view, self.document()?))
    }
}

/// One object in the form that the caller wants.
fn shown(engine: &Engine, ask: &Ask, object: &Object, code: u16) -> Answer {
    let value = match ask.form {
        Form::Whole => views::present(&ask.view, object),
        Form::Metadata => views::metadata_only(object),
        Form::Table => {
            let rows = [Arc::clone(object)];
            tables::table(&ask.view, &rows, ask.query.get("includeObject"), engine.store.now())
        }
    };
    Answer::Document { code, value, warning: None }
}

fn get(engine: &Engine, ask: &Ask) -> Result<Answer, Status> {
    check_revision(engine, ask)?;
    let object = engine.store.read(|state| state.get(&ask.resource, &ask.namespace, &ask.name))?;
    Ok(shown(engine, ask, &object, 200))
}

fn create(engine: &Engine, ask: &Ask) -> Result<Answer, Status> {
    let object = ask.object()?;
    let mut writing = ask.writing(engine)?;
    writing.name = "";
    let object = engine.store.change(|state, _| {
        guard(engine, ask, state, &object)?;
        state.create(&writing, object)
    })?;
    Ok(shown(engine, ask, &object, 201))
}

fn update(engine: &Engine, ask: &Ask) -> Result<Answer, Status> {
    let object = ask.object()?;
    let writing = ask.writing(engine)?;
    let mut code = 200;
    let object = engine.store.change(|state, _| {
        guard(engine, ask, state, &object)?;
        let is_there = state.find(&ask.resource, &ask.namespace, &ask.name).is_some();
        if !is_there && ask.resource.creates_on_update() && ask.subresource.is_empty() {
            code = 201;
            return state.create(&writing, object);
        }
        state.update(&writing, |_| Ok(object))
    })?;
    Ok(shown(engine, ask, &object, code))
}

/// Keeps a caller from granting more than it has.
fn guard(engine: &Engine, ask: &Ask, state: &State, object: &Value) -> Result<(), Status> {
    if !engine.is_authorizing() || ask.resource.group != "rbac.authorization.k8s.io" {
        return Ok(());
    }
    let mut object = object.clone();
    if ask.resource.is_namespaced() {
        set(&mut object, &["metadata", "namespace"], ask.namespace.clone());
    }
    set(&mut object, &["kind"], ask.resource.kind.clone());
    rbac::check_escalation(state, &ask.user, &object)
}

fn log(engine: &Engine, ask: &Ask) -> Result<Answer, Status> {
    let pod = engine.store.read(|state| state.get(&ask.resource, &ask.namespace, &ask.name))?;
    let container = Some(ask.query.get("container")).filter(|name| !name.is_empty());
    let Some(log) = engine.store.read_log(&ask.namespace, &ask.name, container) else {
        let container = container.unwrap_or_else(|| text(&pod, "/spec/containers/0/name"));
        let message = format!("container {container:?} in pod {:?} is waiting to start: no log yet", ask.name);
        return Err(Status::bad_request(message));
    };
    let tail = ask.query.number::<usize>("tailLines")?;
    let log = match tail {
        Some(count) => {
            let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
            lines.iter().skip(lines.len().saturating_sub(count)).flat_map(|line| line.iter().copied()).collect()
        }
        None => log,
    };
    Ok(Answer::Text(log))
}

/// The answer to a deletion that is complete.
fn success(ask: &Ask, object: &Object) -> Value {
    let mut details = json!({"name": meta::name(object), "kind": ask.view.plural, "uid": meta::uid(object)});
    if !ask.view.group.is_empty() {
        set(&mut details, &["group"], ask.view.group.clone());
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
