//! Validates specs against the components of an `OpenAPI` document that the configuration names.

use std::collections::BTreeMap;
use std::path::Path;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::entity::Registry;

/// The schemas of the kinds that have one.
#[derive(Debug, Default)]
pub struct SpecSchemas(BTreeMap<String, (String, Validator)>);

/// A spec that does not match its schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Invalid {schema}")]
pub struct SpecError {
    /// The name of the schema.
    pub schema: String,
    /// The path of the member at fault, beginning with `spec`.
    pub path: String,
    /// The rule that it breaks, without the given value.
    pub message: String,
}

/// Path of the document where the settings name none, as in HyperFleet's API.
const DEFAULT_PATH: &str = "openapi/openapi.yaml";

/// Reads the document with the schemas of specs. Where the settings name none, the one at the default path is read if a kind
/// has a schema, and may be missing.
pub fn document(given: Option<&Path>, registry: &Registry) -> Result<Option<Value>, String> {
    let path = given.unwrap_or(Path::new(DEFAULT_PATH));
    if given.is_none() {
        let Some(kind) = registry.descriptors().iter().find(|kind| kind.spec_schema_name.is_some()) else {
            return Ok(None);
        };
        if !path.exists() {
            let (kind, path) = (&kind.kind, DEFAULT_PATH);
            tracing::warn!(operation = "start", kind, path, "specs are not validated: the document does not exist");
            return Ok(None);
        }
    }
    let fault = |what: &str| format!("server.openapi_schema_path: '{}' {what}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| fault(&format!("cannot be read: {}", error.kind())))?;
    serde_saphyr::from_str(&text).map(Some).map_err(|_no_yaml| fault("is neither JSON nor YAML"))
}

// === impl SpecSchemas ===

impl SpecSchemas {
    /// Compiles the schemas that the registry's kinds name, taken from an `OpenAPI` 3.0 document.
    pub fn new(registry: &Registry, document: Option<&Value>) -> Result<Self, Vec<String>> {
        let mut schemas = BTreeMap::new();
        let mut faults = Vec::new();
        for (index, descriptor) in registry.descriptors().iter().enumerate() {
            let Some(name) = &descriptor.spec_schema_name else { continue };
            let fault = |what: &str| format!("entities[{index}].spec_schema_name: '{name}' {what}");
            let component = document.and_then(|document| document.pointer(&format!("/components/schemas/{name}")));
            match component.map(|_| validator(document.unwrap_or(&Value::Null), name)) {
                Some(Ok(validator)) => drop(schemas.insert(descriptor.kind.clone(), (name.clone(), validator))),
                Some(Err(())) => faults.push(fault("is not a usable schema")),
                None if descriptor.require_spec_schema => {
                    faults.push(fault("is no component of the document at server.openapi_schema_path"));
                }
                None => {}
            }
        }
        if faults.is_empty() { Ok(Self(schemas)) } else { Err(faults) }
    }

    /// Checks a spec of that kind against its schema, if there is one; returns the first error only, as HyperFleet does.
    pub fn check(&self, kind: &str, spec: Option<&Map<String, Value>>) -> Result<(), SpecError> {
        let (Some((name, validator)), Some(spec)) = (self.0.get(kind), spec) else { return Ok(()) };
        let spec = Value::Object(spec.clone());
        let Err(error) = validator.validate(&spec) else { return Ok(()) };
        let path = error.instance_path().to_string().replace('/', ".");
        // The value itself stays out: a spec may hold what should not be repeated.
        let message = error.masked().to_string();
        Err(SpecError { schema: name.clone(), path: format!("spec{path}"), message })
    }
}

fn validator(document: &Value, name: &str) -> Result<Validator, ()> {
    let components = document.get("components").cloned().unwrap_or_default();
    let mut schema = json!({ "$ref": format!("#/components/schemas/{name}"), "components": components });
    nullable(&mut schema);
    jsonschema::draft202012::options().build(&schema).map_err(|_unusable| ())
}

/// Rewrites `nullable: true` of `OpenAPI` 3.0 to the type `null` of JSON Schema.
fn nullable(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.remove("nullable") == Some(Value::Bool(true))
                && let Some(kind) = members.get("type").cloned()
            {
                members.insert("type".to_owned(), json!([kind, "null"]));
            }
            members.values_mut().for_each(nullable);
        }
        Value::Array(items) => items.iter_mut().for_each(nullable),
        _ => {}
    }
}
