//! The paths of the document with their operations.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::examples;
use super::operation::{Access, Operation, SuccessResponse};
use super::parameters::{self, shared};
use super::reference::schema;
use super::scope::Scope;
use super::{causes, tombstones};
use crate::entity::{BASE_PATH, Registry};

/// All paths: the service's own, those of each kind, those below a parent, and those of every kind.
pub(super) fn all(registry: &Registry) -> Map<String, Value> {
    let mut paths = service();
    for descriptor in registry.descriptors() {
        paths.extend(group(&Scope { descriptor: Some(descriptor), parent: None }, registry));
        paths.extend(tombstones::paths(descriptor));
        paths.extend(causes::paths(descriptor));
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
        responses: vec![SuccessResponse {
            status: StatusCode::OK,
            description: "The document.",
            content: vec![(media, schema)],
        }],
        ..Operation::default()
    };
    let (json, html) = ("application/json", "text/html");
    let document = json!({ "type": "object", "required": ["openapi", "info", "paths"] });
    let paths = [
        (
            "/api/hyperfleet".to_owned(),
            operation("getService", "Read the service's name and version", json, schema("Service")),
        ),
        (format!("{BASE_PATH}/openapi"), operation("getOpenApi", "Read this document", json, document)),
        (
            format!("{BASE_PATH}/openapi.html"),
            operation("getOpenApiPage", "Read the list of endpoints as HTML", html, json!({ "type": "string" })),
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
    let mut description = "The list includes resources whose deletion was requested.".to_owned();
    if scope.descriptor.is_none() {
        parameters.push(parameters::kind(&kinds));
        description += " `watch` requires a `kind`.";
    }
    if scope.parent.is_some() {
        problems.push(StatusCode::NOT_FOUND);
    }
    let content = vec![("application/json", scope.list()), ("application/x-ndjson", schema("ChangeEvent"))];
    let description_of_page = "A page of the list; with `watch`, a stream of changes, one per line.";
    Operation {
        id: format!("list{}", scope.word()),
        summary: format!("List or watch {}", scope.all()),
        description,
        parameters,
        responses: vec![SuccessResponse { status: StatusCode::OK, description: description_of_page, content }],
        problems,
        ..of(scope, Access::Reads)
    }
}

fn create(scope: &Scope<'_>, registry: &Registry) -> Operation {
    let mut problems = vec![StatusCode::BAD_REQUEST];
    let refused = "Always refused: the problem names the path at which to create it.";
    let description = if scope.misses_owner() { refused.to_owned() } else { String::new() };
    if scope.misses_owner() || scope.descriptor.is_none() {
        problems.push(StatusCode::UNPROCESSABLE_ENTITY);
    }
    if scope.parent.is_some() {
        problems.push(StatusCode::NOT_FOUND);
    }
    let created = SuccessResponse::json(StatusCode::CREATED, "The resource.", scope.resource());
    let responses = if scope.misses_owner() { Vec::new() } else { vec![created] };
    if !responses.is_empty() {
        problems.push(StatusCode::CONFLICT);
    }
    // A test sends every example, so a path for any kind shows a kind without a parent.
    let shown = scope.descriptor.or_else(|| registry.descriptors().iter().find(|one| one.parent_kind.is_none()));
    let examples = shown.map_or_else(|| json!({}), examples::creation);
    Operation {
        id: format!("create{}", scope.word()),
        summary: format!("Create {}", scope.one()),
        description,
        body: Some((scope.creation(), examples)),
        responses,
        problems,
        ..of(scope, Access::Writes)
    }
}

fn get(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("get{}", scope.word()),
        summary: format!("Read {}", scope.one()),
        parameters: vec![shared("Fields"), shared("Include")],
        responses: vec![SuccessResponse::json(StatusCode::OK, "The resource.", scope.resource())],
        problems: vec![StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND],
        ..of(scope, Access::Reads)
    }
}

fn patch(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("update{}", scope.word()),
        summary: format!("Change the desired state of {}", scope.one()),
        description: "Each given member replaces the stored one. A patch without a difference makes no new generation."
            .to_owned(),
        parameters: vec![shared("IfMatch")],
        body: Some((scope.patch(), examples::patch())),
        responses: vec![SuccessResponse::json(StatusCode::OK, "The resource.", scope.resource())],
        problems: vec![
            StatusCode::BAD_REQUEST,
            StatusCode::NOT_FOUND,
            StatusCode::CONFLICT,
            StatusCode::PRECONDITION_FAILED,
        ],
        ..of(scope, Access::Writes)
    }
}

fn delete(scope: &Scope<'_>) -> Operation {
    let deleted = "The resource, whose deletion is requested now or was before; or its last state, if it is removed.";
    Operation {
        id: format!("delete{}", scope.word()),
        summary: format!("Request the deletion of {}", scope.one()),
        description:
            "It is removed once its adapters have reported `Finalized` and it has no children; at once if it has no \
             adapters. Requesting it again has no effect."
                .to_owned(),
        responses: vec![SuccessResponse::json(StatusCode::ACCEPTED, deleted, scope.resource())],
        problems: vec![StatusCode::NOT_FOUND, StatusCode::CONFLICT],
        ..of(scope, Access::Writes)
    }
}

fn force_delete(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("forceDelete{}", scope.word()),
        summary: format!("Remove {} without waiting for its adapters", scope.one()),
        description:
            "Only after its deletion was requested. Its descendants are removed as well and references to it are cleared. \
             Objects in clouds and clusters remain: `/tombstones` lists what its adapters have reported of them."
                .to_owned(),
        body: Some((schema("ForceDelete"), examples::force_delete())),
        responses: vec![SuccessResponse::empty("The resource is removed.")],
        problems: vec![StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::CONFLICT],
        ..of(scope, Access::Writes)
    }
}

fn statuses(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("list{}Statuses", scope.word()),
        summary: format!("Read the adapters' latest reports about {}", scope.one()),
        description: "Ordered by the adapters' names.".to_owned(),
        parameters: vec![shared("Page"), shared("Size")],
        responses: vec![SuccessResponse::json(StatusCode::OK, "A page of reports.", schema("AdapterStatusList"))],
        problems: vec![StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND],
        ..of(scope, Access::Reads)
    }
}

fn put_status(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("put{}Status", scope.word()),
        summary: format!("Report about {}", scope.one()),
        responses: vec![
            SuccessResponse::json(StatusCode::CREATED, "The stored report.", schema("AdapterStatus")),
            discarded(),
        ],
        ..report(scope)
    }
}

fn post_status(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("post{}Status", scope.word()),
        summary: format!("Report about {} with the method of 2025", scope.one()),
        responses: vec![
            SuccessResponse::json(
                StatusCode::OK,
                "The stored report, which replaces an earlier one.",
                schema("AdapterStatus"),
            ),
            SuccessResponse::json(
                StatusCode::CREATED,
                "The stored report, the adapter's first one.",
                schema("AdapterStatus"),
            ),
            discarded(),
        ],
        is_beyond: true,
        ..report(scope)
    }
}

fn report(scope: &Scope<'_>) -> Operation {
    Operation {
        description:
            "Adapters report after every reconcile, also if nothing has changed. A report is discarded if its generation \
             is in the future, if it is older than the adapter's latest one, or if its `Available` is `Unknown` and an \
             earlier report exists."
                .to_owned(),
        body: Some((schema("Report"), examples::report())),
        problems: vec![StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND],
        ..of(scope, Access::Writes)
    }
}

fn discarded() -> SuccessResponse {
    SuccessResponse::empty("The report is discarded.")
}

fn history(scope: &Scope<'_>) -> Operation {
    Operation {
        id: format!("list{}History", scope.word()),
        summary: format!("Read the transitions of the conditions of {}", scope.one()),
        parameters: vec![shared("Page"), shared("Size")],
        responses: vec![SuccessResponse::json(
            StatusCode::OK,
            "A page of transitions, newest first.",
            schema("TransitionList"),
        )],
        is_beyond: true,
        problems: vec![StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND],
        ..of(scope, Access::Reads)
    }
}

fn of(scope: &Scope<'_>, access: Access) -> Operation {
    Operation { tag: scope.tag(), access, ..Operation::default() }
}
