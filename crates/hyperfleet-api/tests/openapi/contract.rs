//! Checks of responses against the document.

use serde_json::{Value, json};

use crate::rig::Answer;

/// The methods of an `OpenAPI` path.
pub(crate) const METHODS: &[&str] = &["get", "put", "post", "patch", "delete"];

/// A document to which responses are held.
pub(crate) struct Contract(pub(crate) Value);

impl Contract {
    /// Every operation with its path and method.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (&str, &'static str, &Value)> {
        let paths = self.0["paths"].as_object().unwrap();
        paths.iter().flat_map(|(path, item)| {
            let described = METHODS.iter().filter_map(|method| Some((path.as_str(), *method, item.get(*method)?)));
            described.collect::<Vec<_>>()
        })
    }

    /// Fails unless the document describes such a response of that operation.
    pub(crate) fn check(&self, operation: &Value, answer: &Answer) {
        let id = &operation["operationId"];
        let response = &operation["responses"][answer.status.to_string()];
        assert!(!response.is_null(), "{id}: {} is not documented: {}", answer.status, answer.text());
        let response = self.resolve(response);
        for (name, header) in response["headers"].as_object().unwrap() {
            let required = self.resolve(header)["required"] == true;
            assert!(!required || answer.headers.contains_key(name), "{id}: {name} is missing");
        }
        let Some(content) = response.get("content") else {
            assert!(answer.body.is_empty(), "{id}: {}", answer.text());
            return;
        };
        let media = answer.headers["content-type"].to_str().unwrap().split(';').next().unwrap();
        let schema = content.get(media).unwrap_or_else(|| panic!("{id}: {media} is not documented"));
        if media.ends_with("json") {
            self.satisfies(&schema["schema"], &answer.json());
        }
    }

    /// Fails unless a value satisfies a schema and has no undocumented members.
    pub(crate) fn satisfies(&self, schema: &Value, value: &Value) {
        let schemas = &self.0["components"]["schemas"];
        let whole = json!({ "allOf": [schema], "components": { "schemas": schemas } });
        let validator = jsonschema::draft202012::options().should_validate_formats(true).build(&whole).unwrap();
        let faults: Vec<String> =
            validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(faults.is_empty(), "{value:#}\n{faults:#?}");
        assert_eq!(self.undocumented(schema, value), Vec::<String>::new(), "{value:#}");
    }

    /// The members of a value that its schema does not mention. Specs and maps are open.
    fn undocumented(&self, schema: &Value, value: &Value) -> Vec<String> {
        let is_open = schema["$ref"] == "#/components/schemas/Spec";
        let schema = self.resolve(schema);
        match value {
            _ if is_open => Vec::new(),
            Value::Array(items) => items.iter().flat_map(|item| self.undocumented(&schema["items"], item)).collect(),
            Value::Object(members) => members
                .iter()
                .flat_map(|(name, member)| match (schema["properties"].get(name), schema.get("additionalProperties")) {
                    (Some(property), _) => self.undocumented(property, member),
                    (None, Some(others)) => self.undocumented(others, member),
                    (None, None) if schema["properties"].is_object() => vec![name.clone()],
                    (None, None) => Vec::new(),
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.0.pointer(reference.trim_start_matches('#')).unwrap(),
            None => value,
        }
    }
}
