//! Patches: what they are applied to, and who manages the fields afterwards.

use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::ask::Ask;
use super::super::engine::Engine;
use super::super::fields::Schema;
use super::super::fields::apply::Application;
use super::super::fields::managed::Writer;
use super::super::patch::{json_patch, merge_patch, strategic_patch};
use super::super::status::{About, Cause, Status};
use super::super::store::{Manager, Object, Part, State, Writing};
use super::super::value::{set, take, text};
use super::super::{meta, views};
use super::common;

/// The subject of refusals of a patch's parameters.
const OPTIONS: About<'_> = About { group: "meta.k8s.io", kind: "PatchOptions", name: "" };

const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

pub(super) fn patch(engine: &Engine, ask: &Ask) -> Result<Answer, Status> {
    let writing = ask.writing(engine)?;
    let patch = ask.document()?;
    let mut code = 200;
    let object = match ask.content_type.as_str() {
        APPLY | "application/apply-patch+json" => {
            let configuration = configuration(ask, &writing, patch)?;
            engine.store.change(|state, _| apply(engine, ask, state, (&writing, &configuration), &mut code))
        }
        MERGE | JSON => change(engine, ask, &writing, &patch),
        STRATEGIC if ask.resource.custom.is_none() => change(engine, ask, &writing, &patch),
        _ => {
            let accepted = [JSON, MERGE, APPLY, STRATEGIC];
            let accepted: Vec<&str> =
                accepted.into_iter().filter(|kind| *kind != STRATEGIC || ask.resource.custom.is_none()).collect();
            let message = format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            );
            return Err(Status::new(415, message));
        }
    }?;
    Ok(common::shown(engine, ask, &object, code))
}

/// Patches what is there.
fn change(engine: &Engine, ask: &Ask, writing: &Writing<'_>, patch: &Value) -> Result<Object, Status> {
    if !ask.query.get("force").is_empty() {
        let cause = Cause::forbidden("force", "may not be specified for non-apply patch");
        return Err(Status::invalid(OPTIONS, &[cause]));
    }
    engine.store.change(|state, _| {
        let live = state.get(&ask.resource, &ask.namespace, &ask.name)?;
        let mut shown = views::present(&ask.view, &live);
        match ask.content_type.as_str() {
            JSON => shown = json_patch(&shown, patch)?,
            MERGE => merge_patch(&mut shown, patch),
            _ => strategic_patch(Schema::of(&ask.resource), &mut shown, patch),
        }
        let object = views::absorb(&ask.view, shown);
        common::guard(engine, ask, state, &object)?;
        state.update(writing, |_| Ok(object))
    })
}

/// The configuration to apply, without members that only the server sets.
fn configuration(ask: &Ask, writing: &Writing<'_>, patch: Value) -> Result<Value, Status> {
    if ask.query.get("fieldManager").is_empty() {
        return Err(Status::invalid(OPTIONS, &[Cause::required("fieldManager", "is required for apply patch")]));
    }
    if text(&patch, "/apiVersion") != ask.view.api_version() {
        let message = format!(
            "Incorrect version specified in apply patch. Specified patch version: {}, expected: {}",
            text(&patch, "/apiVersion"),
            ask.view.api_version()
        );
        return Err(Status::bad_request(message));
    }
    if text(&patch, "/kind").is_empty() {
        return Err(Status::bad_request("error decoding YAML: Object 'Kind' is missing"));
    }
    if !super::super::value::list(&patch, "/metadata/managedFields").is_empty() {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let mut configuration = views::absorb(&ask.view, patch);
    match writing.part {
        Part::Main if ask.resource.has_status() => drop(take(&mut configuration, &["status"])),
        Part::Main => {}
        Part::Status => {
            if let Some(members) = configuration.as_object_mut() {
                members.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
            }
            if let Some(metadata) = configuration.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|name, _| matches!(name.as_str(), "name" | "namespace" | "uid" | "resourceVersion"));
            }
        }
    }
    Ok(configuration)
}

/// Applies to what is there, or creates it.
fn apply(
    engine: &Engine,
    ask: &Ask,
    state: &mut State,
    (writing, configuration): (&Writing<'_>, &Value),
    code: &mut u16,
) -> Result<Object, Status> {
    let live = state.find(&ask.resource, &ask.namespace, &ask.name).cloned();
    let writer = Writer {
        name: ask.manager.clone(),
        apply: true,
        api_version: ask.resource.api_version(),
        subresource: if writing.part == Part::Status { "status" } else { "" },
    };
    let application = Application {
        schema: Schema::of(&ask.resource),
        writer: &writer,
        force: ask.query.flag("force"),
        now: writing.now,
    };
    let writing = Writing { manager: Manager::Applied, ..writing.clone() };
    let Some(live) = live else {
        if writing.part == Part::Status {
            return Err(Status::not_found(ask.resource.about(&ask.name)));
        }
        let uid = meta::uid(configuration);
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Status::conflict(ask.resource.about(&ask.name), &why));
        }
        *code = 201;
        let mut object = application.apply(&json!({}), configuration)?;
        take(&mut object, &["metadata", "resourceVersion"]);
        if meta::name(&object).is_empty() {
            set(&mut object, &["metadata", "name"], ask.name.clone());
        }
        common::guard(engine, ask, state, &object)?;
        return state.create(&writing, object);
    };
    let object = application.apply(&live, configuration)?;
    common::guard(engine, ask, state, &object)?;
    state.update(&writing, |_| Ok(object))
}
