//! The JSON Schema of the configuration file, where defaults make things optional.

use daemon::settings::Row;
use serde_json::Value;

/// Takes from `required` what a row of the table may give, and objects that consist of nothing else.
pub(super) fn loosen(schema: &mut Value, rows: &[Row]) {
    for row in rows {
        let segments: Vec<&str> = row.path.split('.').collect();
        for depth in 0..segments.len() {
            let Some((name, above)) = segments.get(..=depth).and_then(<[&str]>::split_last) else { continue };
            // `spec` itself is needed: it says which adapter it is.
            if *name != "spec" {
                not_required(schema, above, name);
            }
        }
    }
}

fn not_required(schema: &mut Value, above: &[&str], name: &str) {
    let mut place = Vec::new();
    for segment in above {
        let Some(reference) =
            object(schema, &place).and_then(|object| object.pointer(&format!("/properties/{segment}")))
        else {
            return;
        };
        place = match reference.get("$ref").and_then(Value::as_str) {
            Some(reference) => reference.trim_start_matches("#/").split('/').map(str::to_owned).collect(),
            None => [place.as_slice(), &["properties".to_owned(), (*segment).to_owned()]].concat(),
        };
    }
    let pointer = pointer(&place);
    let required =
        schema.pointer_mut(&pointer).and_then(|object| object.get_mut("required")).and_then(Value::as_array_mut);
    if let Some(required) = required {
        required.retain(|member| member != name);
    }
}

fn object<'a>(schema: &'a Value, place: &[String]) -> Option<&'a Value> {
    schema.pointer(&pointer(place))
}

fn pointer(place: &[String]) -> String {
    place.iter().fold(String::new(), |path, segment| path + "/" + segment)
}
