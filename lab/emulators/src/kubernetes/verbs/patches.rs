//! Patches: what they are applied to, and who manages the fields afterwards.

use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::ask::Ask;
use super::super::engine::Engine;
use super::super::fields::apply::Application;
use super::super::fields::managed::Writer;
use super::super::fields::{Schema, doubled};
use super::super::patch::{json_patch, merge_patch, strategic_patch};
use super::super::status::{About, Cause, Status};
use super::super::store::{Manager, Object, Part, State, Writing};
use super::super::value::{go_kind, set, take, text};
use super::super::{meta, validate, views};
use super::common;

/// The subject of refusals of a patch's parameters.
const OPTIONS: About<'_> = About { group: "meta.k8s.io", kind: "PatchOptions", name: "" };

const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

pub(super) fn patch(engine: &Engine, ask: &Ask) -> Result<Answer, Status> {
    let writing = ask.writing(engine)?;
    check_media_type(ask)?;
    let patch = document(ask)?;
    let mut code = 200;
    let (object, warnings) = match ask.content_type.as_str() {
        APPLY | "application/apply-patch+json" => {
            let configuration = configuration(ask, &writing, patch)?;
            let applied =
                engine.store.change(|state, _| apply(engine, ask, state, &writing, &configuration, &mut code));
            applied.map(|object| (object, Vec::new()))
        }
        _ => change(engine, ask, &writing, &patch),
    }?;
    Ok(common::written(engine, ask, &object, code, warnings))
}

/// Refuses kinds of patches that the resource does not take.
fn check_media_type(ask: &Ask) -> Result<(), Status> {
    match ask.content_type.as_str() {
        STRATEGIC if ask.resource.custom.is_some() => {
            let message = "the body of the request was in an unknown format - accepted media types include: ";
            Err(Status::new(415, format!("{message}{JSON}, {MERGE}, {APPLY}")))
        }
        JSON | MERGE | STRATEGIC | APPLY | "application/apply-patch+json" => Ok(()),
        _ => Err(Status::new(415, "415: Unsupported Media Type")),
    }
}

/// The patch, refused as the real server refuses each kind of patch.
fn document(ask: &Ask) -> Result<Value, Status> {
    let patch = ask.document();
    match ask.content_type.as_str() {
        MERGE | STRATEGIC => {
            let patch = patch.map_err(|_| Status::bad_request("invalid JSON patch"))?;
            if patch.is_object() {
                return Ok(patch);
            }
            Err(Status::bad_request(format!("error decoding patch: json: cannot unmarshal {}", go_kind(&patch))))
        }
        JSON => match patch {
            Ok(patch @ Value::Array(_)) => Ok(patch),
            Ok(other) => {
                Err(Status::bad_request(format!("error decoding patch: json: cannot unmarshal {}", go_kind(&other))))
            }
            Err(_) => Err(Status::bad_request("error decoding patch: it is no JSON")),
        },
        _ => patch.map_err(|_| Status::bad_request("error encoding patch: yaml: it cannot be read")),
    }
}

/// Refuses a patch that makes another kind of the object.
fn check_kind(ask: &Ask, object: &Value) -> Result<(), Status> {
    let is_same =
        text(object, "/kind") == ask.resource.kind && text(object, "/apiVersion") == ask.resource.api_version();
    if is_same { Ok(()) } else { Err(unusable(object, &Status::bad_request("json: cannot unmarshal another kind"))) }
}

/// Refuses a patched object that cannot be read. Like the real server's, the refusal quotes the whole object.
fn unusable(object: &Value, refusal: &Status) -> Status {
    let why = refusal.message.split_once(" cannot be handled as a ").and_then(|(_, rest)| rest.split_once(": "));
    let why = why.map_or(refusal.message.as_str(), |(_, why)| why);
    let cause = Cause::invalid("patch", &object.to_string().into(), why);
    Status::invalid(About { group: "", kind: "", name: "" }, &[cause])
}

/// Patches what is there.
fn change(engine: &Engine, ask: &Ask, writing: &Writing<'_>, patch: &Value) -> Result<(Object, Vec<String>), Status> {
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
        let mut object = views::absorb(&ask.view, shown);
        check_kind(ask, &object)?;
        let read = validate::decode(&ask.resource, &object).and_then(|()| validate::prune(&ask.resource, &mut object));
        let unknown = read.map_err(|refusal| unusable(&object, &refusal))?;
        let faults = unknown.iter().map(|path| common::fault("unknown", path)).collect();
        let warnings = ask.judged(faults, |faults| {
            unusable(patch, &Status::bad_request(format!("strict decoding error: {faults}")))
        })?;
        common::guard(engine, ask, state, &object)?;
        Ok((state.update(writing, |_| Ok(object))?, warnings))
    })
}

/// The configuration to apply, without members that only the server sets.
fn configuration(ask: &Ask, writing: &Writing<'_>, patch: Value) -> Result<Value, Status> {
    if ask.query.get("fieldManager").is_empty() {
        return Err(Status::invalid(OPTIONS, &[Cause::required("fieldManager", "is required for apply patch")]));
    }
    let (version, kind) = (text(&patch, "/apiVersion"), text(&patch, "/kind"));
    if version != ask.view.api_version() || kind != ask.view.kind {
        let slash = if version.contains('/') { "" } else { "/" };
        return Err(Status::bad_request(format!("invalid object type: {slash}{version}, Kind={kind}")));
    }
    if !super::super::value::list(&patch, "/metadata/managedFields").is_empty() {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let mut configuration = views::absorb(&ask.view, patch);
    validate::decode(&ask.resource, &configuration)?;
    if let [path, ..] = validate::prune(&ask.resource, &mut configuration)?.as_slice() {
        return Err(untyped(ask, &configuration, &format!(".{path}: field not declared in schema")));
    }
    if let Some(fault) = doubled(Schema::of(&ask.resource), &configuration) {
        return Err(untyped(ask, &configuration, &fault));
    }
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

/// Refuses a configuration that is not of the kind's schema.
fn untyped(ask: &Ask, configuration: &Value, fault: &str) -> Status {
    let (version, kind) = (ask.view.api_version(), &ask.view.kind);
    let version = if version.contains('/') { version } else { format!("/{version}") };
    let why = format!(
        "failed to create typed patch object ({}/{}; {version}, Kind={kind}): {fault}",
        meta::namespace(configuration),
        meta::name(configuration)
    );
    Status::new(500, why).because("")
}

/// Applies to what is there, or creates it.
fn apply(
    engine: &Engine,
    ask: &Ask,
    state: &mut State,
    writing: &Writing<'_>,
    configuration: &Value,
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
        common::check_creation(engine, ask, state)?;
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
