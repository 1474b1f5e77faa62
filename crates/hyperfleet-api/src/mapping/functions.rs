//! The functions that expressions have besides those of CEL: `toJson` and `dig`, as in HyperFleet's API.

use std::sync::Arc;

use cel::objects::KeyRef;
use cel::{Context, ExecutionError, FunctionContext, Value};

use super::meter::Meter;
use super::values;

/// The function that [`super::fence::secure`] calls around the list of each loop. No source can call it.
pub(super) const PAY_LOOP: &str = "@pay_loop";
const TO_JSON: &str = "toJson";
const DIG: &str = "dig";

type CallResult = Result<Value, ExecutionError>;

/// Declares the functions; their arguments are metered.
pub(super) fn add(context: &mut Context<'_, '_>, meter: &Arc<Meter>) {
    declare(context, PAY_LOOP, meter, pay_loop);
    declare(context, TO_JSON, meter, |_, arguments| to_json(arguments));
    declare(context, DIG, meter, |_, arguments| dig(arguments));
}

fn declare(
    context: &mut Context<'_, '_>,
    name: &str,
    meter: &Arc<Meter>,
    function: fn(&Meter, &[Value]) -> CallResult,
) {
    let meter = Arc::clone(meter);
    let metered = move |call: &FunctionContext<'_, '_>| function(&meter, &arguments(&meter, call)?);
    // CEL's own library has no such names. If it ever has one, the tests of that function fail.
    let taken = context.add_function(name, metered);
    debug_assert!(taken.is_ok(), "{name} is CEL's own");
}

/// Returns the arguments of a call. CEL copies them, so each call is charged for all of them. Logical operators swallow
/// errors and loops continue, so nothing is copied once the budget is exhausted.
fn arguments(meter: &Meter, call: &FunctionContext<'_, '_>) -> Result<Vec<Value>, ExecutionError> {
    meter.check()?;
    let arguments: Vec<Value> =
        call.args.iter().map(|argument| Value::try_from(argument.as_ref())).collect::<Result<_, _>>()?;
    meter.charge_copies(&arguments)?;
    Ok(arguments)
}

/// Returns the list or map that a loop runs over, after charging its steps.
fn pay_loop(meter: &Meter, arguments: &[Value]) -> CallResult {
    let [range] = arguments else { return Err(ExecutionError::invalid_argument_count(1, arguments.len())) };
    meter.charge_steps(range)?;
    Ok(range.clone())
}

/// `toJson(x)` returns the value as JSON with sorted keys.
fn to_json(arguments: &[Value]) -> CallResult {
    let [value] = arguments else { return Err(ExecutionError::invalid_argument_count(1, arguments.len())) };
    let json = values::to_json(value).ok_or_else(|| ExecutionError::function_error(TO_JSON, "no JSON"))?;
    Ok(json.to_string().into())
}

/// `dig(map, "a.b.c"[, default])` returns the value under the keys and indexes, or the default or null if one of them is missing.
fn dig(arguments: &[Value]) -> CallResult {
    let (value, path, default) = match arguments {
        [value, Value::String(path)] => (value, path, &Value::Null),
        [value, Value::String(path), default] => (value, path, default),
        [_, _] | [_, _, _] => return Err(ExecutionError::function_error(DIG, "the path is not a text")),
        _ => return Err(ExecutionError::invalid_argument_count(2, arguments.len())),
    };
    let found = path.split('.').try_fold(value, |value, key| match value {
        Value::Map(map) => map.get(&KeyRef::String(key)),
        Value::List(items) => items.get(key.parse::<usize>().ok()?),
        _ => None,
    });
    Ok(found.unwrap_or(default).clone())
}
