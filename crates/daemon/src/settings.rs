//! Settings of a daemon: flags over environment over file over defaults, every one a row of one table.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::environment::Environment;

/// One setting: a scalar that a flag, a variable or a key of the file can give.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Where it is in the file, such as `database.pool.max_connections`.
    pub path: &'static str,
    /// Its flag, without the dashes.
    pub flag: Option<&'static str>,
    /// What its text must be.
    pub kind: Kind,
    /// What holds when nothing is given; empty where that is nothing.
    pub default: &'static str,
    /// What it does, with units.
    pub help: &'static str,
}

/// What the text of a setting must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A text that is a credential: no flag takes it, nothing shows it.
    Secret,
    /// The path of a file or folder.
    Path,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Switch,
    /// A time such as `500ms`, `5s`, `1m30s` or `168h`.
    Duration,
}

/// All settings of a program.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The variable of the setting at a path; mostly [`variable`] with a prefix.
    pub variable: fn(&str) -> String,
    /// The settings that a flag or a variable can give.
    pub rows: &'static [Row],
    /// Keys that other editions of the program know and this one does not, each with what to do instead.
    pub retired: &'static [(&'static str, &'static str)],
}

/// What was given, by where it came from.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The file's text, if there is a file.
    pub file: Option<String>,
    /// The flags, by name.
    pub flags: BTreeMap<&'static str, String>,
}

/// The usual variable of a setting: the prefix and its path in capitals, `_` for every dot.
pub fn variable(prefix: &str, path: &str) -> String {
    format!("{prefix}_{}", path.replace('.', "_").to_uppercase())
}

/// Reads settings into `T`, whose fields are those of the file. Unknown keys, and everything else that is wrong, are
/// listed with the place and without the value.
pub fn load<T: DeserializeOwned>(
    table: &Table,
    environment: &impl Environment,
    given: &Given,
) -> Result<T, Vec<String>> {
    let mut tree = match given.file.as_deref().map(parse_file).transpose() {
        Ok(tree) => tree.unwrap_or_default(),
        Err(fault) => return Err(vec![fault]),
    };
    let retired = table.retired.iter().filter(|(path, _)| at(&tree, path).is_some());
    let mut faults: Vec<String> =
        retired.map(|(path, instead)| format!("{path}: is not a key here: {instead}")).collect();
    for row in table.rows {
        let name = (table.variable)(row.path);
        let (origin, text) = match row.flag.and_then(|flag| given.flags.get(flag).map(|text| (flag, text))) {
            Some((flag, text)) => (format!("--{flag}"), Some(text.clone())),
            None => match environment.text(&name) {
                Ok(text) => (name, text),
                Err(error) => {
                    faults.push(error.to_string());
                    continue;
                }
            },
        };
        let from_file = at(&tree, row.path).is_some_and(|value| !value.is_null());
        let text = match text {
            Some(text) => text,
            None if from_file => {
                if let Err(fault) = check_file_value(&mut tree, row) {
                    faults.push(fault);
                }
                continue;
            }
            None if row.default.is_empty() => continue,
            None => row.default.to_owned(),
        };
        match row.kind.value(&text) {
            Ok(value) => put(&mut tree, row.path, value),
            Err(must) => faults.push(format!("{origin}: {must}")),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    // Its own words may quote a value.
    serde_path(Value::Object(tree)).map_err(|fault| vec![fault])
}

/// The text of the configuration file: that of the flag `--config`, that of the variable, or the first that is where it
/// is looked for. Which file it is is not told: a credential in the place of a path is a likely mistake.
pub fn configuration(
    flag: Option<&str>,
    environment: &impl Environment,
    variable: &str,
    searched: &[&str],
) -> Result<Option<String>, String> {
    let given = environment.text(variable).map_err(|error| error.to_string())?;
    let named = flag.map(|path| ("--config", path.to_owned())).or_else(|| given.map(|path| (variable, path)));
    if let Some((origin, path)) = named {
        let text = std::fs::read_to_string(path);
        return text.map(Some).map_err(|error| format!("{origin}: cannot be read: {}", error.kind()));
    }
    for path in searched {
        match std::fs::read_to_string(path) {
            Ok(text) => return Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{path}: cannot be read: {}", error.kind())),
        }
    }
    Ok(None)
}

/// The file as a tree. A place is told, what stands there is not.
fn parse_file(text: &str) -> Result<Map<String, Value>, String> {
    let options = serde_saphyr::options! { with_snippet: false };
    let tree: Value = serde_saphyr::from_str_with_options(text, options).map_err(|error| match error.location() {
        Some(place) => {
            format!("the configuration file is not valid YAML at line {}, column {}", place.line(), place.column())
        }
        None => "the configuration file is not valid YAML".to_owned(),
    })?;
    match tree {
        Value::Object(tree) => Ok(tree),
        Value::Null => Ok(Map::new()),
        _ => Err("the configuration file must be a mapping of keys".to_owned()),
    }
}

/// A scalar of the file by the same rules as one of a flag: `5s` is a duration, `"5"` a number.
fn check_file_value(tree: &mut Map<String, Value>, row: &Row) -> Result<(), String> {
    let text = match at(tree, row.path) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(switch)) => switch.to_string(),
        _ => return Err(format!("{}: must be a single value", row.path)),
    };
    let value = row.kind.value(&text).map_err(|must| format!("{}: {must}", row.path))?;
    put(tree, row.path, value);
    Ok(())
}

fn at<'a>(tree: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut segments = path.split('.');
    let first = tree.get(segments.next()?)?;
    segments.try_fold(first, |value, segment| value.get(segment))
}

/// Puts a value at a path. Where the file has something else than a mapping on the way, that stays: reading the whole
/// tells about it.
fn put(tree: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(tree.insert(path.to_owned(), value)),
        Some((first, rest)) => {
            let inner = tree.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if inner.is_null() {
                *inner = Value::Object(Map::new());
            }
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

fn serde_path<T: DeserializeOwned>(tree: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(tree).map_err(|error| {
        let path = error.path().to_string();
        let words = error.into_inner().to_string();
        // Only names of keys may be quoted, not values: a credential in the wrong place is a likely mistake.
        let words = match words.split_once(", expected ") {
            _ if words.starts_with("unknown field") || words.starts_with("missing field") => words,
            Some((before, expected)) if before.starts_with("unknown variant") => format!("must be {expected}"),
            _ => "has the wrong form".to_owned(),
        };
        format!("{path}: {words}")
    })
}

// === impl Row ===

impl Row {
    /// A row of a table.
    pub const fn new(
        path: &'static str,
        flag: Option<&'static str>,
        kind: Kind,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self { path, flag, kind, default, help }
    }
}

// === impl Kind ===

impl Kind {
    /// The value that a text stands for, or what it must be. Durations become milliseconds.
    fn value(self, text: &str) -> Result<Value, &'static str> {
        match self {
            Self::Text | Self::Secret | Self::Path => Ok(Value::from(text)),
            Self::Number => text.parse::<u64>().map(Value::from).map_err(|_no_number| "must be a whole number"),
            Self::Switch => text.parse::<bool>().map(Value::from).map_err(|_neither| "must be true or false"),
            Self::Duration => milliseconds(text)
                .map(Value::from)
                .ok_or("must be a time such as 500ms, 5s, 1m30s or 168h, without a sign and at most 10 years"),
        }
    }

    /// What stands for its value in a synopsis.
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Text | Self::Secret => "TEXT",
            Self::Path => "PATH",
            Self::Number => "NUMBER",
            Self::Switch => "true|false",
            Self::Duration => "DURATION",
        }
    }
}

/// The milliseconds of a text such as `1m30s`: whole numbers with units, as Go writes durations.
pub fn milliseconds(text: &str) -> Option<u64> {
    const LONGEST: u64 = 10 * 365 * 24 * 3_600_000;
    const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let mut rest = text;
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|char: char| char.is_ascii_digit()).len();
        let (number, after) = rest.split_at_checked(digits)?;
        let (unit, size) = UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(*size)?)?;
        rest = after.strip_prefix(unit)?;
    }
    (!text.is_empty() && sum <= LONGEST).then_some(sum)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        server: Server,
        name: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Server {
        port: u16,
        secure: bool,
        patience: u64,
    }

    const fn row(path: &'static str, flag: Option<&'static str>, kind: Kind, default: &'static str) -> Row {
        Row::new(path, flag, kind, default, "")
    }

    const TABLE: Table = Table {
        variable: |path| variable("X", path),
        rows: &[
            row("server.port", Some("port"), Kind::Number, "80"),
            row("server.secure", None, Kind::Switch, "false"),
            row("server.patience", None, Kind::Duration, "5s"),
            row("name", None, Kind::Text, ""),
        ],
        retired: &[("server.old", "use server.port")],
    };

    fn loaded(file: &str, environment: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Result<Wanted, Vec<String>> {
        let environment: BTreeMap<&str, &str> = environment.iter().copied().collect();
        let flags = flags.iter().map(|(flag, value)| (*flag, (*value).to_owned())).collect();
        load(&TABLE, &environment, &Given { file: Some(file.to_owned()), flags })
    }

    fn wanted(port: u16, secure: bool, patience: u64) -> Wanted {
        Wanted { server: Server { port, secure, patience }, name: None }
    }

    #[test]
    fn flags_come_before_variables_before_the_file_before_defaults() {
        assert_eq!(loaded("", &[], &[]).unwrap(), wanted(80, false, 5_000));
        let file = "server: {port: 81, patience: 1m30s}";
        assert_eq!(loaded(file, &[], &[]).unwrap(), wanted(81, false, 90_000));
        assert_eq!(
            loaded(file, &[("X_SERVER_PORT", "82"), ("X_SERVER_SECURE", "true")], &[]).unwrap(),
            wanted(82, true, 90_000)
        );
        assert_eq!(loaded(file, &[("X_SERVER_PORT", "82")], &[("port", "83")]).unwrap(), wanted(83, false, 90_000));
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place_and_without_its_value() {
        let fault = |file: &str| loaded(file, &[], &[]).unwrap_err().join("; ");
        assert_eq!(fault("server: {port: hunter2}"), "server.port: must be a whole number");
        assert_eq!(fault("server: {port: [hunter2]}"), "server.port: must be a single value");
        assert_eq!(fault("server: {old: 1}"), "server.old: is not a key here: use server.port");
        assert!(fault("server: {prot: hunter2}").starts_with("server.prot: unknown field `prot`"));
        assert!(fault("a: [").contains("line"));
        assert!(!fault("hunter2").contains("hunter2"));
        let variable = loaded("", &[("X_SERVER_PATIENCE", "hunter2")], &[]).unwrap_err().join("; ");
        assert!(variable.starts_with("X_SERVER_PATIENCE: must be a time") && !variable.contains("hunter2"));
    }

    #[test]
    fn durations_are_written_as_in_go() {
        let right =
            [("500ms", 500), ("5s", 5_000), ("1m30s", 90_000), ("168h", 604_800_000), ("5m0s", 300_000), ("0s", 0)];
        for (text, expected) in right {
            assert_eq!(milliseconds(text), Some(expected), "{text}");
        }
        for text in ["", "5", "s", "-1s", "1.5s", "1d", "99999999999999999999s", "100000h", "5 s"] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
