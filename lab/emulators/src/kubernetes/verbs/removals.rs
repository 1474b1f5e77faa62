//! Deletions of one object and of many.

use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::ask::Ask;
use super::super::engine::Engine;
use super::super::meta;
use super::super::selectors::Selector;
use super::super::status::{About, Cause, Status};
use super::super::store::{Deletion, Object, Propagation, Writing};
use super::super::value::{number, text};
use super::common::{shown, success};
use super::lists;

/// The warning of a real server that a Job's Pods stay by default.
const ORPHANED: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
                        them or set propagationPolicy=Orphan to suppress this warning";

pub(super) fn delete(engine: &Engine, ask: &Ask) -> Result<Answer, Status> {
    let options = options(ask)?;
    let (deletion, warnings) = deletion(ask, &options)?;
    let mut writing = ask.writing(engine)?;
    writing.dry_run |= text(&options, "/dryRun/0") == "All";
    let object = engine.store.change(|state, _| state.delete(&writing, &deletion))?;
    let goes_on = meta::is_deleting(&object);
    let answer = if goes_on || ask.resource.returns_deleted() {
        shown(engine, ask, &object, 200)
    } else {
        Answer::ok(success(ask, &object))
    };
    Ok(match answer {
        Answer::Document { code, value, .. } => Answer::Document { code, value, warnings },
        other => other,
    })
}

pub(super) fn delete_collection(engine: &Engine, ask: &Ask, selector: &Selector) -> Result<Answer, Status> {
    let options = options(ask)?;
    let (deletion, warnings) = deletion(ask, &options)?;
    let dry_run = ask.query.dry_run()?;
    let deleted = engine.store.change(|state, now| {
        let fitting = state.list(&ask.resource, Some(&ask.namespace)).filter(|object| selector.matches(object));
        let objects: Vec<Object> = fitting.cloned().collect();
        for object in &objects {
            let writing =
                Writing { dry_run, ..Writing::internal(&ask.resource, &ask.namespace, meta::name(object), now) };
            state.delete(&writing, &deletion)?;
        }
        Ok(objects)
    })?;
    let revision = engine.store.read(super::super::store::State::revision);
    let value = lists::document(engine, ask, &deleted, &json!({"resourceVersion": revision.to_string()}));
    Ok(Answer::Document { code: 200, value, warnings })
}

/// The `DeleteOptions` in the body; none is as good as empty ones.
fn options(ask: &Ask) -> Result<Value, Status> {
    if ask.body.is_empty() { Ok(json!({})) } else { ask.document() }
}

fn deletion(ask: &Ask, options: &Value) -> Result<(Deletion, Vec<String>), Status> {
    let invalid =
        |cause: Cause| Status::invalid(About { group: "meta.k8s.io", kind: "DeleteOptions", name: "" }, &[cause]);
    let policy = match ask.query.get("propagationPolicy") {
        "" => text(options, "/propagationPolicy"),
        given => given,
    };
    let orphans = ask.query.flag("orphanDependents") || options.get("orphanDependents") == Some(&json!(true));
    if !policy.is_empty() && (orphans || options.get("orphanDependents").is_some()) {
        let message = "orphanDependents and deletionPropagation cannot be both set";
        return Err(invalid(Cause::invalid("propagationPolicy", &json!(policy), message)));
    }
    let (propagation, warning) = match policy {
        "Foreground" => (Propagation::Foreground, None),
        "Orphan" => (Propagation::Orphan, None),
        "" if orphans => (Propagation::Orphan, None),
        "" if ask.resource.storage == "jobs.batch" && options.get("orphanDependents").is_none() => {
            (Propagation::Orphan, Some(ORPHANED))
        }
        "Background" | "" => (Propagation::Background, None),
        other => {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            return Err(invalid(Cause::unsupported("propagationPolicy", other, &supported)));
        }
    };
    let grace_seconds = match ask.query.number::<i64>("gracePeriodSeconds")? {
        None => number(options, "/gracePeriodSeconds"),
        given => given,
    };
    let given = |pointer: &str| Some(text(options, pointer).to_owned()).filter(|text| !text.is_empty());
    let deletion = Deletion {
        uid: given("/preconditions/uid"),
        resource_version: given("/preconditions/resourceVersion"),
        propagation,
        grace_seconds,
    };
    Ok((deletion, warning.map(str::to_owned).into_iter().collect()))
}
