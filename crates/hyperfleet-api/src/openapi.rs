//! The `OpenAPI` document of what is served.

mod examples;
mod operation;
mod parameters;
mod paths;
mod problems;
mod requests;
mod schemas;
mod scope;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use crate::entity::Registry;

/// The version of the document that is committed; a build may call itself more precisely.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

const ABOUT: &str = "What is wanted of a fleet, and what adapters report about it: clusters, node pools and whatever else the \
configuration registers.

**Resources.** `spec`, `labels` and `references` say what is wanted; each change of them makes a new `generation`. The \
server concludes from the adapters' reports whether a generation is reached: `status.conditions`, with a reason.

**Deletion** is asked for: the resource stays, with `deleted_time`, until its adapters have reported `Finalized`. Lists \
hold such resources, too; `search=deleted_time is null` leaves them out.

**Problems** are answered as RFC 9457 writes them. Decide by `status` or `code`; `detail` is for people. `trace_id` is the \
request's `X-Request-ID`, which the server's log has as well. A method that a path does not know is answered 405 in plain \
text, with `Allow`; whatever has GET has HEAD.

**Null** is as good as absent in a request's optional members.";

/// The document for the kinds of a registry.
pub fn document(registry: &Registry, version: &str) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "HyperFleet API",
            "version": version,
            "description": ABOUT,
            "license": { "name": "Apache 2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "Where this document was served from" }],
        "tags": tags(registry),
        "security": [{ "bearer": [] }, {}],
        "paths": paths::all(registry),
        "components": {
            "headers": problems::headers(),
            "parameters": parameters::components(),
            "responses": problems::responses(),
            "schemas": component_schemas(registry),
            "securitySchemes": { "bearer": {
                "type": "http",
                "scheme": "bearer",
                "bearerFormat": "JWT",
                "description": "A token of one of the issuers in `server.jwt.configs`. A server that listens on loopback \
                                only may be configured to ask for none.",
            }},
        },
    })
}

fn tags(registry: &Registry) -> Vec<Value> {
    let tag = |name: &str, description: String| json!({ "name": name, "description": description });
    let of_kind = |descriptor: &crate::entity::Descriptor| {
        let below = match &descriptor.parent_kind {
            Some(parent) => format!(" Each belongs to a {parent}."),
            None => String::new(),
        };
        let decide = match descriptor.required_adapters.as_slice() {
            [] => "No adapter has to report about them.".to_owned(),
            adapters => format!("The reports of these adapters decide about them: {}.", adapters.join(", ")),
        };
        tag(&descriptor.kind, format!("Resources of the kind {}.{below} {decide}", descriptor.kind))
    };
    let kinds = registry.descriptors().iter().map(of_kind);
    let any = tag(scope::ANY_KIND, "Resources of every kind, by id or all at once.".to_owned());
    let service = tag("Service", "The service itself. Nobody has to authenticate for it.".to_owned());
    kinds.chain([any, service]).collect()
}

fn component_schemas(registry: &Registry) -> Map<String, Value> {
    // What is common comes last: no kind may take the place of a problem.
    schemas::of_kinds(registry).into_iter().chain(requests::of_kinds(registry)).chain(schemas::common()).collect()
}

/// A reference to a component.
fn component(section: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{section}/{name}") })
}

/// A reference to a schema.
fn schema(name: &str) -> Value {
    component("schemas", name)
}
