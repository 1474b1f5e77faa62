//! Adjusts the JSON Schema of the configuration file to settings that flags, variables and defaults give.

use daemon::settings::{Kind, Row, Variable};
use serde_json::{Value, json};

/// Takes out of `required` what a setting may have from elsewhere, and objects that consist of nothing else; lets every
/// choice have all its spellings.
pub(super) fn loosen(schema: &mut Value, rows: &[&Row]) {
    for row in rows {
        let segments: Vec<&str> = row.path.split('.').collect();
        let is_of_file = !row.kind.is_scalar() || (row.is_required && row.variable == Variable::None);
        if !is_of_file {
            for depth in 0..segments.len() {
                let Some((name, above)) = segments.get(..=depth).and_then(<[&str]>::split_last) else { continue };
                // `spec` is needed: it has the adapter's type.
                if *name != "spec" {
                    not_required(schema, above, name);
                }
            }
        }
        if let (Kind::Choice(choices), Some((name, above))) = (row.kind, segments.split_last()) {
            spell(schema, above, name, choices);
        }
    }
}

fn not_required(schema: &mut Value, above: &[&str], name: &str) {
    let required = object(schema, above).and_then(|object| object.get_mut("required")).and_then(Value::as_array_mut);
    if let Some(required) = required {
        required.retain(|member| member != name);
    }
}

fn spell(schema: &mut Value, above: &[&str], name: &str, choices: &[&[&str]]) {
    let property = object(schema, above).and_then(|object| object.pointer_mut(&format!("/properties/{name}")));
    let Some(property) = property else { return };
    let spelled = |schema: &Value| json!({ "description": schema.get("description"), "enum": choices.concat() });
    let reference = [property.get("$ref"), property.pointer("/anyOf/0/$ref")].into_iter().flatten().next().cloned();
    *property = spelled(property);
    // Mappings have it too.
    let definition = reference.as_ref().and_then(Value::as_str).map(|reference| reference.trim_start_matches('#'));
    if let Some(definition) = definition.and_then(|pointer| schema.pointer_mut(pointer)) {
        *definition = spelled(definition);
    }
}

/// The schema of the object at a path, behind references.
fn object<'a>(schema: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    let mut pointer = String::new();
    for segment in path {
        let property = schema.pointer(&pointer)?.pointer(&format!("/properties/{segment}"))?;
        pointer = match property.get("$ref").and_then(Value::as_str) {
            Some(reference) => reference.trim_start_matches('#').to_owned(),
            None => format!("{pointer}/properties/{segment}"),
        };
    }
    schema.pointer_mut(&pointer)
}
