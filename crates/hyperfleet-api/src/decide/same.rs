//! Compares JSON values by their meaning: `1.0` is `1`, as in HyperFleet's API.

use serde_json::{Map, Number, Value};

/// Returns true if both objects have the same members with the same values.
pub fn members(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.len() == other.len()
        && one.iter().all(|(name, value)| other.get(name).is_some_and(|other| values(value, other)))
}

fn values(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => numbers(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| values(one, other))
        }
        (Value::Object(one), Value::Object(other)) => members(one, other),
        _ => one == other,
    }
}

/// Whole numbers are compared exactly; others, and a whole number with another one, as floating point.
fn numbers(one: &Number, other: &Number) -> bool {
    one == other || ((one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1", "1.0", true)]
    #[case("100", "1e2", true)]
    #[case("0", "-0.0", true)]
    #[case("-3", "-3.0", true)]
    #[case("[1, {\"a\": 2}]", "[1.0, {\"a\": 2.0}]", true)]
    #[case("{\"a\": null}", "{\"a\": null}", true)]
    #[case("1", "1.5", false)]
    #[case("1", "\"1\"", false)]
    #[case("1", "true", false)]
    #[case("9007199254740992", "9007199254740993", false)]
    #[case("[1, 2]", "[2, 1]", false)]
    #[case("[1]", "[1, 1]", false)]
    #[case("{\"a\": null}", "{}", false)]
    #[case("{\"a\": null}", "{\"b\": null}", false)]
    fn meanings(#[case] one: &str, #[case] other: &str, #[case] same: bool) {
        let object = |text: &str| Map::from_iter([("v".to_owned(), serde_json::from_str(text).unwrap())]);
        let (one, other) = (object(one), object(other));
        assert_eq!((members(&one, &other), members(&other, &one)), (same, same));
    }
}
