//! JSON patch, RFC 6902.

use serde_json::Value;

use super::super::status::Status;
use super::super::value::{go_kind, text};

/// The target after all operations; refused as a whole if one of them cannot be done.
pub(crate) fn json_patch(target: &Value, patch: &Value) -> Result<Value, Status> {
    let Value::Array(operations) = patch else {
        let kind = go_kind(patch);
        return Err(Status::bad_request(format!(
            "json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch"
        )));
    };
    let mut result = target.clone();
    for operation in operations {
        // The real server says no more than this either.
        perform(&mut result, operation)
            .ok_or_else(|| Status::generic(422, "the server rejected our request due to an error in our request"))?;
    }
    Ok(result)
}

fn perform(target: &mut Value, operation: &Value) -> Option<()> {
    let path = operation.get("path")?.as_str()?;
    match text(operation, "/op") {
        "add" => add(target, path, operation.get("value")?.clone()),
        "remove" => remove(target, path).map(drop),
        "replace" => {
            *target.pointer_mut(path)? = operation.get("value")?.clone();
            Some(())
        }
        "move" => {
            let from = operation.get("from")?.as_str()?;
            if path.starts_with(&format!("{from}/")) {
                return None;
            }
            let moved = remove(target, from)?;
            add(target, path, moved)
        }
        "copy" => {
            let copied = target.pointer(operation.get("from")?.as_str()?)?.clone();
            add(target, path, copied)
        }
        "test" => (target.pointer(path).unwrap_or(&Value::Null) == operation.get("value")?).then_some(()),
        _ => None,
    }
}

fn add(target: &mut Value, path: &str, value: Value) -> Option<()> {
    let Some((around, last)) = path.rsplit_once('/') else {
        *target = value;
        return path.is_empty().then_some(());
    };
    match target.pointer_mut(around)? {
        Value::Object(members) => drop(members.insert(unescaped(last), value)),
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let index = index(last).filter(|index| *index <= items.len())?;
            items.insert(index, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(target: &mut Value, path: &str) -> Option<Value> {
    let (around, last) = path.rsplit_once('/')?;
    match target.pointer_mut(around)? {
        Value::Object(members) => members.remove(&unescaped(last)),
        Value::Array(items) => index(last).filter(|index| *index < items.len()).map(|index| items.remove(index)),
        _ => None,
    }
}

fn index(text: &str) -> Option<usize> {
    (text == "0" || !text.starts_with(['0', '+'])).then(|| text.parse().ok()).flatten()
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn does_what_the_rfc_shows() {
        let done = [
            (
                json!({"foo": "bar"}),
                json!([{"op": "add", "path": "/baz", "value": 1}]),
                json!({"baz": 1, "foo": "bar"}),
            ),
            (json!({"foo": [1, 3]}), json!([{"op": "add", "path": "/foo/1", "value": 2}]), json!({"foo": [1, 2, 3]})),
            (json!({"foo": [1]}), json!([{"op": "add", "path": "/foo/-", "value": 2}]), json!({"foo": [1, 2]})),
            (json!({"a": 1, "b": 2}), json!([{"op": "remove", "path": "/a"}]), json!({"b": 2})),
            (json!({"a": [1, 2]}), json!([{"op": "move", "from": "/a/0", "path": "/a/1"}]), json!({"a": [2, 1]})),
            (json!({"a/b": 1}), json!([{"op": "copy", "from": "/a~1b", "path": "/c~0d"}]), json!({"a/b": 1, "c~d": 1})),
            (json!({"a": 1}), json!([{"op": "test", "path": "/a", "value": 1}]), json!({"a": 1})),
        ];
        for (target, patch, result) in done {
            assert_eq!(json_patch(&target, &patch).unwrap(), result);
        }
        let refused = [
            json!([{"op": "test", "path": "/a", "value": 2}]),
            json!([{"op": "remove", "path": "/b"}]),
            json!([{"op": "replace", "path": "/b", "value": 1}]),
            json!([{"op": "add", "path": "/a/b", "value": 1}]),
            json!([{"op": "add", "path": "/list/3", "value": 1}]),
            json!([{"op": "add", "path": "/list/01", "value": 1}]),
            json!([{"op": "move", "from": "/object", "path": "/object/b"}]),
            json!([{"op": "spread", "path": "/a"}]),
        ];
        for patch in refused {
            let target = json!({"a": 1, "list": [1], "object": {}});
            assert_eq!(json_patch(&target, &patch).unwrap_err().code, 422, "{patch}");
        }
    }
}
