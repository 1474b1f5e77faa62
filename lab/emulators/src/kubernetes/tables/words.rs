//! Times, lists and paths as `kubectl get` shows them.

use jiff::Timestamp;
use serde_json::Value;

use super::super::meta;
use super::super::value::members;

/// The text for an absent value.
pub(crate) const NONE: &str = "<none>";

/// The text for an unknown time.
pub(crate) const UNKNOWN: &str = "<unknown>";

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// A span as short as people read it: two units where one would say too little.
pub(crate) fn span(seconds: i64) -> String {
    let two = |whole: i64, unit: &str, rest: i64, smaller: &str| {
        if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{smaller}") }
    };
    match seconds {
        ..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds / YEAR, "y", seconds % YEAR / DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// The age of a time.
pub(crate) fn since(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(time) => span(now.duration_since(time).as_secs()),
        Err(_) => UNKNOWN.to_owned(),
    }
}

pub(crate) fn age(object: &Value, now: Timestamp) -> String {
    meta::time(object, "/metadata/creationTimestamp")
        .map_or_else(|| UNKNOWN.to_owned(), |time| span(now.duration_since(time).as_secs()))
}

/// `a=1,b=2`
pub(crate) fn pairs(object: &Value, pointer: &str) -> String {
    let pairs: Vec<String> = members(object, pointer)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

/// The value at a simple JSON path of a printer column: names, indices, and filters by one member.
pub(crate) fn at_path<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut value = object;
    let mut rest = path.trim_start_matches('$');
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix('[') {
            let (inside, tail) = tail.split_once(']')?;
            value = match inside.strip_prefix("?(@.").and_then(|filter| filter.strip_suffix(')')) {
                Some(filter) => {
                    let (name, wanted) = filter.split_once("==")?;
                    let wanted = wanted.trim().trim_matches(['"', '\'']);
                    value.as_array()?.iter().find(|item| item.get(name.trim()).is_some_and(|value| value == wanted))?
                }
                None => match inside.parse::<usize>() {
                    Ok(index) => value.get(index)?,
                    Err(_) => value.get(inside.trim_matches(['"', '\'']))?,
                },
            };
            rest = tail;
        } else {
            let name = rest.trim_start_matches('.');
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, tail) = name.split_at(end);
            value = value.get(name)?;
            rest = tail;
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[rstest::rstest]
    #[case(-1, "0s")]
    #[case(119, "119s")]
    #[case(125, "2m5s")]
    #[case(3599, "59m")]
    #[case(3 * HOUR + 120, "3h2m")]
    #[case(DAY, "24h")]
    #[case(3 * DAY, "3d")]
    #[case(400 * DAY, "400d")]
    #[case(3 * YEAR + DAY, "3y1d")]
    fn spans_are_short(#[case] seconds: i64, #[case] text: &str) {
        assert_eq!(span(seconds), text);
    }

    #[rstest::rstest]
    #[case(".status.phase", json!("Done"))]
    #[case(".status.conditions[?(@.type=='Ready')].status", json!("True"))]
    #[case(".status.conditions[0].type", json!("Ready"))]
    fn paths_find_values(#[case] path: &str, #[case] value: Value) {
        let object = json!({"status": {"phase": "Done", "conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(at_path(&object, path), Some(&value));
        assert_eq!(at_path(&object, ".status.nothing"), None);
    }
}
