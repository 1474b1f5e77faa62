//! The verbs, apart from watching.

use std::sync::Arc;

use super::answer::Answer;
use super::ask::Ask;
use super::engine::Engine;
use super::reviews;
use super::selectors::Selector;
use super::status::Status;
use super::value::{list, text};

mod common;
mod lists;
mod patches;
mod removals;

use common::{check_creation, guard, shown, written};

pub(crate) use lists::{check_match, check_revision};

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

fn get(engine: &Engine, ask: &Ask) -> Result<Answer, Status> {
    check_revision(engine, ask)?;
    let object = engine.store.read(|state| state.get(&ask.resource, &ask.namespace, &ask.name))?;
    Ok(shown(engine, ask, &object, 200))
}

fn create(engine: &Engine, ask: &Ask) -> Result<Answer, Status> {
    let (object, warnings) = ask.object()?;
    let mut writing = ask.writing(engine)?;
    writing.name = "";
    let object = engine.store.change(|state, _| {
        guard(engine, ask, state, &object)?;
        state.create(&writing, object)
    })?;
    Ok(written(engine, ask, &object, 201, warnings))
}

fn update(engine: &Engine, ask: &Ask) -> Result<Answer, Status> {
    let (object, warnings) = ask.object()?;
    let writing = ask.writing(engine)?;
    let mut code = 200;
    let object = engine.store.change(|state, _| {
        guard(engine, ask, state, &object)?;
        let is_there = state.find(&ask.resource, &ask.namespace, &ask.name).is_some();
        if !is_there && ask.resource.creates_on_update() && ask.subresource.is_empty() {
            code = 201;
            check_creation(engine, ask, state)?;
            return state.create(&writing, object);
        }
        state.update(&writing, |_| Ok(object))
    })?;
    Ok(written(engine, ask, &object, code, warnings))
}

fn log(engine: &Engine, ask: &Ask) -> Result<Answer, Status> {
    let pod = engine.store.read(|state| state.get(&ask.resource, &ask.namespace, &ask.name))?;
    let container = Some(ask.query.get("container")).filter(|name| !name.is_empty());
    let Some(log) = engine.store.read_log(&ask.namespace, &ask.name, container) else {
        let is_named = |named: &serde_json::Value| Some(text(named, "/name")) == container;
        if let Some(name) = container
            && !list(&pod, "/spec/containers").iter().any(is_named)
        {
            return Err(Status::bad_request(format!("container {name} is not valid for pod {}", ask.name)));
        }
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
