//! Every path with its operations.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::operation::{Answer, Nature, Operation};
use super::parameters::{self, shared};
use super::scope::Scope;
use super::{examples, schema};
use crate::entity::{BASE_PATH, Registry};

/// All paths: the service's own, each kind's, each kind's below its parent, and those of every kind.
pub(super) fn all(registry: &Registry) -> Map<String, Value> {
    let mut paths = service();
    for descriptor in registry.descriptors() {
        paths.extend(group(&Scope { descriptor: Some(descriptor), parent: None }, registry));
        if let Some(parent) = descriptor.parent_kind.as_deref().and_then(|kind| registry.kind(kind)) {
            paths.extend(group(&Scope { descriptor: Some(descriptor), parent: Some(parent) }, registry));
        }
    }
    paths.extend(group(&Scope { descriptor: None, parent: None }, registry));
    paths
}

fn service() -> Map<String, Value> {
    let operation = |id: &str, summary: &str, media: &'static str, schema: Value| Operation {
        id: id.to_owned(),
        tag: "Service".to_owned(),
        summary: summary.to_owned(),
        answers: vec![Answer { status: StatusCode::OK, description: "It.", content: vec![(media, schema)] }],
        ..Operation::default()
    };
    let (json, html) = ("application/json", "text/html");
    let document = json!({ "type": "object", "required": ["openapi", "info", "paths"] });
    let paths = [
        ("/api/hyperfleet".to_owned(), operation("getService", "What this service is", json, schema("Service"))),
        (format!("{BASE_PATH}/openapi"), operation("getOpenApi", "This document", json, document)),
        (
            format!("{BASE_PATH}/openapi.html"),
            operation("getOpenApiPage", "This document, for people", html, json!({ "type": "string" })),
        ),
    ];
    paths.into_iter().map(|(path, operation)| (path, item(&[], vec![("get", operation)]))).collect()
}

/// The paths of a kind.
fn group(scope: &Scope<'_>, registry: &Registry) -> Map<String, Value> {
    let one = scope.item();
    let item_parameters = scope.item_parameters();
    let collection = vec![("get", list(scope, registry)), ("post", create(scope, registry))];
    let single = vec![("get", get(scope)), ("patch", patch(scope)), ("delete", delete(scope))];
    let statuses = vec![("get", statuses(scope)), ("put", put_status(scope)), ("post", post_status(scope))];
    [
        (scope.collection(), item(&scope.owner_parameters(), collection)),
        (one.clone(), item(&item_parameters, single)),
        (format!("{one}/force-delete"), item(&item_parameters, vec![("post", force_delete(scope))])),
        (format!("{one}/statuses"), item(&item_parameters, statuses)),
        (format!("{one}/statuses/history"), item(&item_parameters, vec![("get", history(scope))])),
    ]
    .into_iter()
    .collect()
}

fn item(parameters: &[Value], operations: Vec<(&str, Operation)>) -> Value {
    let mut item: Map<String, Value> =
        operations.into_iter().map(|(method, operation)| (method.to_owned(), operation.value())).collect();
    if !parameters.is_empty() {
        item.insert("parameters".to_owned(), json!(parameters));
    }
    Value::Object(item)
}

fn list(scope: &Scope<'_>, registry: &Registry) -> Operation {
    let names = ["Page", "Size", "Search", "Order", "Fields", "RefType", "RefTargetId", "Watch", "ResourceVersion"];
    let mut parameters: Vec<Value> = names.into_iter().map(shared).collect();
    let kinds: Vec<&str> = registry.descriptors().iter().map(|descriptor| descriptor.kind.as_str()).collect();
    let mut problems = vec![StatusCode::BAD_REQUEST, StatusCode::GONE];
    let mut description = "Those whose deletion was asked for are among them.".to_owned();
    if scope.descriptor.is_none() {
        parameters.push(parameters::kind(&kinds));
        description += " Watching needs a `kind`.";
    }
    if scope.parent.is_some() {
        problems.push(StatusCode::NOT_FOUND);
    }
    let content = vec![("application/json", scope.list()), ("application/x-ndjson", schema("ChangeEvent"))];
    let told = "A page of them; with `watch`, a stream of changes, one a line.";
    Operation {
        id: format!("list{}", scope.word()),
        summary: format!("List or watch {}", scope.all()),
        description,
        parameters,
        answers: vec![Answer { status: StatusCode::OK, description: told, content }],
        problems,
        ..of(scope, Nature::Reads)
    }
}

fn create(scope: &Scope<'_>, registry: &Registry) -> Operation {
    let mut problems = vec![StatusCode::BAD_REQUEST];
    let refused = "It is always refused, with where to create it.";
    let description = if scope.misses_owner() { refused.to_owned() } else { String::new() };
    if scope.misses_owner() || scope.descriptor.is_none() {
        problems.push(StatusCode::UNPROCESSABLE_ENTITY);
    }
    if scope.parent.is_some() {
        problems.push(StatusCode::NOT_FOUND);
    }
    let created = Answer::json(StatusCode::CREATED, "As it is now.", scope.resource());
    let answers = if scope.misses_owner() { Vec::new() } else { vec![created] };
    if !answers.is_empty() {
        problems.push(StatusCode::CONFLICT);
    }
    // What is shown must be accepted, so that nothing is shown where nothing is; any kind is shown by one that has no
    // parent.
    let shown = scope.descriptor.or_else(|| registry.descriptors().iter().find(|one| one.parent_kind.is_none()));
    let examples = shown.map_or_else(|| json!({}), examples::creation);
    Operation {
        id: format!("create{}", scope.word()),
        summary: format!("Create {}", scope.one()),
        description,
        body: Some((scope.creation(), examples)),
        answers,
        problems,
        ..of(scope, Nature::Writes)
    }
}

fn get(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("get{}", scope.word()),
        summary: format!("Read {}", scope.one()),
        parameters: vec![shared("Fields"), shared("Include")],
        answers: vec![Answer::json(StatusCode::OK, "As it is now.", scope.resource())],
        problems: vec![StatusCode::BAD_REQUEST, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND],
        ..of(scope, Nature::Reads)
    }
}

fn patch(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("update{}", scope.word()),
        summary: format!("Change what is wanted of {}", scope.one()),
        description: "Nothing is merged. What changes nothing makes no new generation.".to_owned(),
        parameters: vec![shared("IfMatch")],
        body: Some((scope.patch(), examples::patch())),
        answers: vec![Answer::json(StatusCode::OK, "As it is now.", scope.resource())],
        problems: vec![
            StatusCode::BAD_REQUEST,
            StatusCode::NOT_FOUND,
            StatusCode::CONFLICT,
            StatusCode::PRECONDITION_FAILED,
        ],
        ..of(scope, Nature::Writes)
    }
}

fn delete(scope: &Scope<'_>) -> Operation {
    let told = "Its deletion is asked for, or was before: as it is now, or was when it went.";
    Operation {
        id: format!("delete{}", scope.word()),
        summary: format!("Ask for the deletion of {}", scope.one()),
        description:
            "It goes when its adapters have reported `Finalized` and nothing is below it any more; at once if it \
                      has no adapters. Asking again changes nothing."
                .to_owned(),
        answers: vec![Answer::json(StatusCode::ACCEPTED, told, scope.resource())],
        problems: vec![StatusCode::NOT_FOUND, StatusCode::CONFLICT],
        ..of(scope, Nature::Writes)
    }
}

fn force_delete(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("forceDelete{}", scope.word()),
        summary: format!("Remove {} without waiting for its adapters", scope.one()),
        description:
            "Only after its deletion was asked for. All below it goes as well, references to it are cleared, and \
                      whatever it has in clouds and clusters stays."
                .to_owned(),
        body: Some((schema("ForceDelete"), examples::force_delete())),
        answers: vec![Answer::empty("It is gone.")],
        problems: vec![StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::CONFLICT],
        ..of(scope, Nature::Writes)
    }
}

fn statuses(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("list{}Statuses", scope.word()),
        summary: format!("Read the adapters' last reports about {}", scope.one()),
        description: "In the order of the adapters' names.".to_owned(),
        parameters: vec![shared("Page"), shared("Size")],
        answers: vec![Answer::json(StatusCode::OK, "A page of them.", schema("AdapterStatusList"))],
        problems: vec![StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND],
        ..of(scope, Nature::Reads)
    }
}

fn put_status(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("put{}Status", scope.word()),
        summary: format!("Report about {}", scope.one()),
        answers: vec![Answer::json(StatusCode::CREATED, "As it is stored.", schema("AdapterStatus")), discarded()],
        ..report(scope)
    }
}

fn post_status(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("post{}Status", scope.word()),
        summary: format!("Report about {}, as in 2025", scope.one()),
        answers: vec![
            Answer::json(StatusCode::OK, "As it is stored, in the place of an earlier one.", schema("AdapterStatus")),
            Answer::json(StatusCode::CREATED, "The adapter's first one, as it is stored.", schema("AdapterStatus")),
            discarded(),
        ],
        ..report(scope)
    }
}

fn report(scope: &Scope<'_>) -> Operation {
    Operation {
        description:
            "Adapters report whenever they have looked, also if nothing has changed. Discarded is a report about a \
                      generation that is not there yet, one that is older than the adapter's last one, and one whose \
                      `Available` is `Unknown` after one that said more."
                .to_owned(),
        body: Some((schema("Report"), examples::report())),
        problems: vec![StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND],
        ..of(scope, Nature::Writes)
    }
}

fn discarded() -> Answer {
    Answer::empty("It is discarded.")
}

fn history(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("list{}History", scope.word()),
        summary: format!("Read how the conditions of {} changed", scope.one()),
        parameters: vec![shared("Page"), shared("Size")],
        answers: vec![Answer::json(StatusCode::OK, "A page of transitions, newest first.", schema("TransitionList"))],
        problems: vec![StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND],
        ..of(scope, Nature::Reads)
    }
}

fn of(scope: &Scope<'_>, nature: Nature) -> Operation {
    Operation { tag: scope.tag(), nature, ..Operation::default() }
}
