//! The `OpenAPI` document of the API, for the configured kinds.

mod causes;
mod derived;
mod examples;
mod operation;
mod parameters;
mod paths;
mod problems;
mod reference;
mod requests;
mod schemas;
mod scope;
mod superset;
#[cfg(test)]
mod tests;
mod tombstones;

use serde_json::{Map, Value, json};

use crate::entity::Registry;

pub use superset::core;

/// The version in the committed document. A build may report a more precise one.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

const ABOUT: &str = "The desired state of a fleet and the adapters' reports about it: clusters, node pools and any other kind that \
the configuration registers.

**Resources.** `spec`, `labels` and `references` are the desired state; each change of them makes a new `generation`. The \
server derives `status.conditions` from the adapters' reports; `Reconciled` is True once the current generation is reached.

**Deletion** is asynchronous: the resource remains, with `deleted_time`, until its adapters have reported `Finalized`. Lists \
include such resources; `search=deleted_time is null` excludes them.

**Problems** follow RFC 9457. Decide by `status` or `code`; `detail` is for people. `trace_id` is the request's \
`X-Request-ID`, which the server also logs. A method that a path does not support gets a 405 in plain text, with `Allow`; \
every path with GET supports HEAD.

**Null** means absent in a request's optional members.

**Beyond HyperFleet.** Whatever is marked `x-beyond-hyperfleet` is no part of the contract of HyperFleet's own server: a client \
that must work with both does without it.";

/// Returns the document for the kinds of a registry.
pub fn document(registry: &Registry, version: &str) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "HyperFleet API",
            "version": version,
            "description": ABOUT,
            "license": { "name": "Apache 2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "The server of this document" }],
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
                                only may be configured without authentication.",
            }},
        },
    })
}

fn tags(registry: &Registry) -> Vec<Value> {
    let tag = |name: &str, description: String| json!({ "name": name, "description": description });
    let of_kind = |descriptor: &crate::entity::Descriptor| {
        let below = match &descriptor.parent_kind {
            Some(parent) => format!(" Each has a {parent} as its owner."),
            None => String::new(),
        };
        let decide = match descriptor.required_adapters.as_slice() {
            [] => "No adapter is required to report about them.".to_owned(),
            adapters => format!("They are reconciled once these adapters report success: {}.", adapters.join(", ")),
        };
        tag(&descriptor.kind, format!("Resources of the kind {}.{below} {decide}", descriptor.kind))
    };
    let kinds = registry.descriptors().iter().map(of_kind);
    let any = tag(scope::ANY_KIND, "Resources of every kind, by id or all at once.".to_owned());
    let service = tag("Service", "The service itself. It needs no authentication.".to_owned());
    kinds.chain([any, service]).collect()
}

fn component_schemas(registry: &Registry) -> Map<String, Value> {
    // Common schemas come last, so that no kind can replace one of them.
    let of_kinds = schemas::of_kinds(registry).into_iter().chain(requests::of_kinds(registry));
    of_kinds.chain(schemas::common()).chain(tombstones::schemas()).chain(causes::schemas(registry)).collect()
}
