//! What specs must satisfy: components of an `OpenAPI` document that the configuration names.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::entity::Registry;
use crate::problem::{FieldError, Problem};

/// The schemas of the kinds that have one.
#[derive(Debug, Default)]
pub struct SpecSchemas(BTreeMap<String, (String, Validator)>);

// === impl SpecSchemas ===

impl SpecSchemas {
    /// The schemas that the registry's kinds name, taken from an `OpenAPI` 3.0 document.
    pub fn new(registry: &Registry, document: Option<&Value>) -> Result<Self, Vec<String>> {
        let mut schemas = BTreeMap::new();
        let mut faults = Vec::new();
        for (index, descriptor) in registry.descriptors().iter().enumerate() {
            let Some(name) = &descriptor.spec_schema_name else { continue };
            let fault = |what: &str| format!("entities[{index}].spec_schema_name: {what}");
            if document.is_none() {
                faults.push(fault("has no effect without server.openapi_schema_path"));
                continue;
            }
            let component = document.and_then(|document| document.pointer(&format!("/components/schemas/{name}")));
            match component.map(|_| validator(document.unwrap_or(&Value::Null), name)) {
                Some(Ok(validator)) => drop(schemas.insert(descriptor.kind.clone(), (name.clone(), validator))),
                Some(Err(())) => faults.push(fault("the component is not a usable schema")),
                None if descriptor.require_spec_schema => {
                    faults.push(fault("server.openapi_schema_path has no such component"));
                }
                None => {}
            }
        }
        if faults.is_empty() { Ok(Self(schemas)) } else { Err(faults) }
    }

    /// Checks a spec of that kind, if there is one; the first fault only, as the contract has it.
    pub fn check(&self, kind: &str, spec: Option<&Map<String, Value>>) -> Result<(), Problem> {
        let (Some((name, validator)), Some(spec)) = (self.0.get(kind), spec) else { return Ok(()) };
        let spec = Value::Object(spec.clone());
        let Err(error) = validator.validate(&spec) else { return Ok(()) };
        let path = error.instance_path().to_string().replace('/', ".");
        // The value itself stays out: a spec may hold what should not be repeated.
        let message = error.masked().to_string();
        let error = FieldError { field: format!("spec{path}"), value: None, constraint: None, message };
        Err(Problem::validation(format!("Invalid {name}")).at(vec![error]))
    }
}

fn validator(document: &Value, name: &str) -> Result<Validator, ()> {
    let components = document.get("components").cloned().unwrap_or_default();
    let mut schema = json!({ "$ref": format!("#/components/schemas/{name}"), "components": components });
    nullable(&mut schema);
    jsonschema::draft202012::options().build(&schema).map_err(|_unusable| ())
}

/// `OpenAPI` 3.0 says `nullable: true` where JSON Schema says so in the type.
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
