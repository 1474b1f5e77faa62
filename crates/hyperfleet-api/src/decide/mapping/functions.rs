//! The functions that expressions have besides those of CEL: `toJson` and `dig` (`api.md` §5.4).

use std::sync::Arc;

use cel::objects::KeyRef;
use cel::{Context, ExecutionError, FunctionContext, Value};

use super::meter::Meter;
use super::values;

/// What [`super::fence::secure`] calls around the list of each loop; no source can spell it.
pub(super) const PAY_LOOP: &str = "@pay_loop";
const TO_JSON: &str = "toJson";
const DIG: &str = "dig";

type Answer = Result<Value, ExecutionError>;

/// Declares the functions; what they handle is paid for.
pub(super) fn add(context: &mut Context<'_, '_>, meter: &Arc<Meter>) {
    declare(context, PAY_LOOP, meter, pay_loop);
    declare(context, TO_JSON, meter, |_, arguments| to_json(arguments));
    declare(context, DIG, meter, |_, arguments| dig(arguments));
}

fn declare(context: &mut Context<'_, '_>, name: &str, meter: &Arc<Meter>, function: fn(&Meter, &[Value]) -> Answer) {
    let meter = Arc::clone(meter);
    let metered = move |call: &FunctionContext<'_, '_>| function(&meter, &arguments(&meter, call)?);
    // CEL's own library has no such names; should it have one some day, the tests of its function fail.
    let taken = context.add_function(name, metered);
    debug_assert!(taken.is_ok(), "{name} is CEL's own");
}

/// What a function is called with. CEL hands out copies, so each call pays for all of it; and because logical operators
/// swallow errors and loops go on, nothing is copied any more once nothing is left to pay with.
fn arguments(meter: &Meter, call: &FunctionContext<'_, '_>) -> Result<Vec<Value>, ExecutionError> {
    meter.check()?;
    let arguments: Vec<Value> =
        call.args.iter().map(|argument| Value::try_from(argument.as_ref())).collect::<Result<_, _>>()?;
    meter.pay_copies(&arguments)?;
    Ok(arguments)
}

/// The list or map that a loop runs over, once its steps are paid.
fn pay_loop(meter: &Meter, arguments: &[Value]) -> Answer {
    let [range] = arguments else { return Err(ExecutionError::invalid_argument_count(1, arguments.len())) };
    meter.pay_steps(range)?;
    Ok(range.clone())
}

/// `toJson(x)`: the value as JSON, keys sorted.
fn to_json(arguments: &[Value]) -> Answer {
    let [value] = arguments else { return Err(ExecutionError::invalid_argument_count(1, arguments.len())) };
    let json = values::to_json(value).ok_or_else(|| ExecutionError::function_error(TO_JSON, "no JSON"))?;
    Ok(json.to_string().into())
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
