//! Answers without what differs from run to run, and their recording.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use http::HeaderMap;
use http::header::{CONTENT_TYPE, WARNING};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::suite::{Step, Suite};

/// Members whose values are never the same.
const UNIQUE: [&str; 4] = ["resourceVersion", "uid", "continue", "token"];

/// The parts of an answer that matter, by name.
pub(crate) type Answer = Map<String, Value>;

/// The answers of one server, by scenario.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Recording {
    pub(crate) version: String,
    pub(crate) answers: BTreeMap<String, Vec<Answer>>,
}

/// An answer as it came.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// A watch's events are a list; null if it is no JSON.
    pub(crate) body: Value,
}

impl Recording {
    fn path() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/differences/kubernetes.json")
    }

    pub(crate) fn read() -> Self {
        serde_json::from_str(&std::fs::read_to_string(Self::path()).unwrap()).unwrap()
    }

    pub(crate) fn write(&self) {
        daemon::file::replace(&Self::path(), format!("{:#}\n", json!(self)).as_bytes()).unwrap();
    }

    /// Such as `1.37`.
    pub(crate) fn minor(&self) -> String {
        self.version.trim_start_matches('v').split('.').take(2).collect::<Vec<_>>().join(".")
    }

    /// The answers to a scenario's requests.
    pub(crate) fn of(&self, scenario: &str) -> &[Answer] {
        self.answers.get(scenario).map_or(&[], Vec::as_slice)
    }

    /// Every differing part, a line each; empty if there is none.
    pub(crate) fn differing_from(&self, other: &Self, suite: &Suite) -> String {
        let mut lines = String::new();
        for scenario in suite.scenarios() {
            for (index, step) in scenario.steps.iter().enumerate() {
                for (name, mine, theirs) in
                    differing(self.of(&scenario.title).get(index), other.of(&scenario.title).get(index))
                {
                    // Writing to a String cannot fail.
                    let _infallible =
                        writeln!(lines, "{}: {}: {name}: {mine}, not {theirs}", scenario.title, step.call);
                }
            }
        }
        lines
    }
}

/// The differing parts of two answers: name, one value, the other value.
pub(crate) fn differing(one: Option<&Answer>, other: Option<&Answer>) -> Vec<(String, Value, Value)> {
    let empty = Answer::new();
    let (one, other) = (one.unwrap_or(&empty), other.unwrap_or(&empty));
    let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
    names.sort();
    names.dedup();
    let of = |answer: &Answer, name: &String| answer.get(name).cloned().unwrap_or_default();
    let pairs = names.into_iter().map(|name| (name.clone(), of(one, name), of(other, name)));
    pairs.filter(|(_, one, other)| one != other).collect()
}

impl Reply {
    /// True if status and body are as a step waits for.
    pub(crate) fn is(&self, wanted: &Map<String, Value>, variables: &BTreeMap<String, String>) -> bool {
        wanted.iter().all(|(name, wanted)| match name.as_str() {
            "status" => *wanted == self.status,
            "warnings" => *wanted == self.headers.get_all(WARNING).iter().count(),
            pointer => *wanted == plain(&at(&self.body, pointer), variables),
        })
    }

    /// The parts of this answer that matter to a step.
    pub(crate) fn answer(&self, step: &Step, variables: &BTreeMap<String, String>) -> Answer {
        let mut answer = Answer::new();
        answer.insert("status".to_owned(), json!(self.status));
        let warnings: Vec<&str> =
            self.headers.get_all(WARNING).iter().filter_map(|value| value.to_str().ok()).collect();
        if !warnings.is_empty() {
            answer.insert("warnings".to_owned(), json!(warnings));
        }
        if self.body["kind"] == "Status" && self.status >= 400 {
            for member in ["reason", "message"] {
                answer.insert(member.to_owned(), self.body[member].clone());
            }
            let causes = self.body["details"]["causes"].as_array().into_iter().flatten();
            let shown = |cause: &Value| json!(format!("{}: {}", text(&cause["reason"]), text(&cause["field"])));
            let mut causes: Vec<Value> = causes.map(shown).collect();
            // Where several managers conflict, their order is that of a map in Go.
            if self.status == 409 {
                causes.sort_by_key(Value::to_string);
            }
            if !causes.is_empty() {
                answer.insert("causes".to_owned(), json!(causes));
            }
        }
        let is_refused = self.status >= 400;
        for name in step.show.iter().filter(|name| !is_refused || !name.starts_with('/')) {
            let value = match name.as_str() {
                "text" => json!(self.text),
                "content-type" => json!(self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok())),
                pointer => at(&self.body, pointer),
            };
            let member = name.rsplit('/').next().unwrap_or_default();
            answer.insert(name.clone(), plain_member(member, &value, variables));
        }
        answer.into_iter().map(|(name, value)| (name, plain(&value, variables))).collect()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The value at a pointer in which `*` stands for every item or member; null if nothing is.
fn at(value: &Value, pointer: &str) -> Value {
    let Some((before, after)) = pointer.split_once("/*") else {
        return value.pointer(pointer).cloned().unwrap_or_default();
    };
    match value.pointer(before) {
        Some(Value::Array(items)) => items.iter().map(|item| at(item, after)).collect(),
        Some(Value::Object(members)) => members.iter().map(|(name, item)| (name.clone(), at(item, after))).collect(),
        _ => Value::Null,
    }
}

/// Sorts managed fields by their managers: within a second a real server sorts them by the order of the calls, else by time.
pub(crate) fn sort_managed_fields(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if let (Value::Array(entries), true) = (&mut *member, name == "managedFields") {
                    entries.sort_by_key(|entry| {
                        format!("{} {} {}", entry["manager"], entry["operation"], entry["subresource"])
                    });
                }
                sort_managed_fields(member);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(sort_managed_fields),
        _ => {}
    }
}

/// The value without what differs from run to run: names of namespaces, saved values, uids, revisions, times.
fn plain(value: &Value, variables: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(members) => {
            let member =
                |(name, value): (&String, &Value)| (plain_text(name, variables), plain_member(name, value, variables));
            members.iter().map(member).collect()
        }
        Value::Array(items) => items.iter().map(|item| plain(item, variables)).collect(),
        Value::String(text) => json!(plain_text(text, variables)),
        other => other.clone(),
    }
}

/// The value of a member; of those that are unique, only that they are there, or that they are what was saved.
fn plain_member(name: &str, value: &Value, variables: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) if UNIQUE.contains(&name) && !text.is_empty() => {
            let saved = variables.iter().find(|(_, value)| *value == text).map(|(name, _)| name.as_str());
            json!(format!("<{}>", saved.unwrap_or(name)))
        }
        _ => plain(value, variables),
    }
}

fn plain_text(text: &str, variables: &BTreeMap<String, String>) -> String {
    static PATTERNS: LazyLock<[(Regex, &str); 20]> = LazyLock::new(|| {
        [
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
            (r"(resource version: |current: |ResourceVersion: |ResourceVersion in record \()\d+", "${1}<version>"),
            (r"too old resource version: <?[a-z0-9]+>? \(\d+\)", "too old resource version: <version> (<version>)"),
            (r"generated-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "generated-<suffix>"),
            (r"\b\d+(\.\d+)?(ms|µs|s)\b", "<duration>"),
            // Values that are no text or number are dumped as Go structures; ours as JSON.
            (r"(?s)Invalid value: ([a-z0-9]+\.[A-Z]|map\[|\[\]|\{).*: ", "Invalid value: <value>: "),
            (r"(?s)(is invalid: patch: Invalid value: ).*: (json|strict|illegal)", "${1}<value>: $2"),
            (r"(?s)\n@@ .*", ""),
            (r"(?s)(permissions not currently held:).*", "$1 <rules>"),
            (r"(cannot be handled as a \w+: )(converting|no kind) .*", "${1}<another kind>"),
            (r"(?s)(the object provided is unrecognized).*", "$1: <reason>"),
            (r"(?s)(unable to parse requirement: ).*", "${1}<reason>"),
            (r"(?s)(error encoding patch: yaml: ).*", "${1}<reason>"),
            (r"(?s)parsing time .*", "parsing time <value>"),
            (r"(?s)(406: Not Acceptable).*", "$1"),
            (r"hash=[0-9A-F]+", "hash=<hash>"),
            // Readers of JSON and base64 describe faults in their own words, ours without quoting.
            (r"(?s)json: cannot unmarshal .*", "json: cannot unmarshal <value>"),
            (r"(?s)invalid character\b.*", "invalid character <place>"),
            (r"illegal base64 data at input byte \d+", "illegal base64 data at input byte <place>"),
        ]
        .map(|(pattern, instead)| (Regex::new(pattern).unwrap(), instead))
    });
    let mut text = text.to_owned();
    let mut variables: Vec<_> =
        variables.iter().filter(|(_, value)| value.parse::<u64>().is_err() && !value.is_empty()).collect();
    // A longer value may contain a shorter one.
    variables.sort_by_key(|(name, value)| (usize::MAX - value.len(), *name));
    for (name, value) in variables {
        text = text.replace(value.as_str(), &format!("<{name}>"));
    }
    for (pattern, instead) in &*PATTERNS {
        text = pattern.replace_all(&text, *instead).into_owned();
    }
    text
}
