//! The `OpenAPI` document of what is served.

use serde_json::{Value, json};

use crate::entity::Registry;

/// The document for the kinds of a registry.
pub fn document(_registry: &Registry, version: &str) -> Value {
    json!({ "openapi": "3.0.3", "info": { "title": "HyperFleet API", "version": version }, "paths": {} })
}
