//! The functions that expressions have besides those of CEL: `toJson` and `dig` (`api.md` §5.4).

use std::sync::Arc;

use cel::extractors::Arguments;
use cel::objects::KeyRef;
use cel::{Context, ExecutionError, Value};

use super::meter::Meter;
use super::values;

/// What [`super::fence::secure`] calls around the list of each loop; no source can spell it.
pub(super) const PAY_LOOP: &str = "@pay_loop";
const TO_JSON: &str = "toJson";
const DIG: &str = "dig";

type Answer = Result<Value, ExecutionError>;

/// Declares the functions; what they cost is told to the meter.
pub(super) fn add(context: &mut Context<'_, '_>, meter: &Arc<Meter>) {
    let (loops, texts) = (Arc::clone(meter), Arc::clone(meter));
    let pay_loop = move |Arguments(arguments): Arguments| pay_loop(&arguments, &loops);
    let to_json = move |Arguments(arguments): Arguments| to_json(&arguments, &texts);
    let dig = |Arguments(arguments): Arguments| dig(&arguments);
    let declared = [
        context.add_function(PAY_LOOP, pay_loop),
        context.add_function(TO_JSON, to_json),
        context.add_function(DIG, dig),
    ];
    // CEL's own library has no such names; if one day it has, its function is the one that is called.
    debug_assert!(declared.iter().all(Result::is_ok), "a name is taken");
}

fn pay_loop(arguments: &[Value], meter: &Meter) -> Answer {
    let [range] = arguments else { return Err(ExecutionError::invalid_argument_count(1, arguments.len())) };
    meter.pay_loop(range)?;
    Ok(range.clone())
}

/// `toJson(x)`: the value as JSON, keys sorted.
fn to_json(arguments: &[Value], meter: &Meter) -> Answer {
    let [value] = arguments else { return Err(ExecutionError::invalid_argument_count(1, arguments.len())) };
    let json = values::to_json(value).ok_or_else(|| ExecutionError::function_error(TO_JSON, "no JSON"))?.to_string();
    meter.pay_bytes(json.len())?;
    Ok(json.into())
}

/// `dig(map, "a.b.c"[, default])`: what lies under the keys; the default, or null, if one of them is missing.
fn dig(arguments: &[Value]) -> Answer {
    let (value, path, default) = match arguments {
        [value, Value::String(path)] => (value, path, &Value::Null),
        [value, Value::String(path), default] => (value, path, default),
        [_, _] | [_, _, _] => return Err(ExecutionError::function_error(DIG, "the path is not a text")),
        _ => return Err(ExecutionError::invalid_argument_count(2, arguments.len())),
    };
    let found = path.split('.').try_fold(value, |value, key| match value {
        Value::Map(map) => map.get(&KeyRef::String(key)),
        _ => None,
    });
    Ok(found.unwrap_or(default).clone())
}
