//! Effective settings of a program, each with its source, without credentials.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

use super::row::{Kind, Row};

/// Stands for a credential.
pub const REDACTED: &str = "(redacted)";

/// Last words of names whose values may be credentials.
const CREDENTIALS: &[&str] = &[
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "token",
    "secret",
    "credential",
    "credentials",
    "authorization",
    "dsn",
    "apikey",
    "api_key",
    "access_key",
    "private_key",
];

/// Effective settings of a program.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dump {
    /// Name of the configuration file that was read.
    pub file: Option<String>,
    /// Every setting, in the order of its declaration.
    pub settings: Vec<Effective>,
    /// Names of the variables that were read besides the settings' own; their values are not shown.
    pub further_variables: Vec<String>,
}

/// A setting and its source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effective {
    /// Its key in the file.
    pub key: &'static str,
    /// Its value; null if there is none. A value that may hold a credential is [`REDACTED`].
    pub value: Value,
    /// Source of the value.
    pub source: Source,
    /// Name of the flag or variable, or the key as the file has it; for a setting without a value, what holds without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// Source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// A flag.
    Flag,
    /// A variable.
    Variable,
    /// The configuration file.
    File,
    /// The default.
    Default,
    /// There is no value.
    Unset,
}

/// Format of a [`Dump`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Format {
    /// A configuration file, in which comments name the sources
    #[default]
    Yaml,
    /// JSON, for programs
    Json,
}

/// A part of a configuration file.
enum Node<'a> {
    Section(Vec<(&'a str, Self)>),
    Setting(&'a Effective),
}

// === impl Dump ===

impl Dump {
    /// Renders the dump.
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Yaml => self.yaml(),
            Format::Json => serde_json::to_string_pretty(self).unwrap_or_default() + "\n",
        }
    }

    fn yaml(&self) -> String {
        let mut page = match &self.file {
            Some(file) => format!("# file {file}\n"),
            None => "# without a file\n".to_owned(),
        };
        for name in &self.further_variables {
            let _infallible = writeln!(page, "# variable {name}: {REDACTED}");
        }
        let mut root = Vec::new();
        for setting in &self.settings {
            insert(&mut root, setting.key, setting);
        }
        write_nodes(&mut page, &root, "");
        page
    }
}

// === impl Effective ===

impl Effective {
    /// A value with its source.
    pub(super) fn new(row: &Row, value: Value, source: Source, name: String) -> Self {
        Self { key: row.path, value: redacted(row, value), source, name }
    }

    /// A setting that was not given.
    pub(super) fn not_given(row: &Row) -> Self {
        if row.default.is_empty() {
            return Self { key: row.path, value: Value::Null, source: Source::Unset, name: row.unset.to_owned() };
        }
        Self::new(row, scalar(row, row.default), Source::Default, String::new())
    }
}

/// The value that a text stands for, as the file has it: a duration stays a text.
pub(super) fn scalar(row: &Row, text: &str) -> Value {
    match row.kind {
        Kind::Number(_) => text.parse::<u64>().map_or_else(|_| text.into(), Value::from),
        Kind::Switch => text.parse::<bool>().map_or_else(|_| text.into(), Value::from),
        _ => text.into(),
    }
}

fn redacted(row: &Row, value: Value) -> Value {
    match row.kind {
        Kind::Secret => REDACTED.into(),
        _ => without_credentials(value, false),
    }
}

/// The value without what may be a credential: in a mapping the texts whose name ends as those of credentials do, and the values
/// of variables; in a list of arguments what follows such a name; and everywhere addresses with a user.
fn without_credentials(value: Value, is_credential: bool) -> Value {
    match value {
        Value::String(_) | Value::Number(_) if is_credential => REDACTED.into(),
        Value::String(text) if has_user(&text) || assigns_one(&text) => REDACTED.into(),
        Value::Array(items) => {
            let mut is_named = false;
            let item = |item: Value| {
                let is_credential = is_credential || std::mem::take(&mut is_named);
                is_named = item.as_str().is_some_and(|text| text.starts_with('-') && is_of_a_credential(text));
                without_credentials(item, is_credential)
            };
            items.into_iter().map(item).collect()
        }
        Value::Object(members) => {
            // A variable of a Job. Its name need not tell that its value is a credential.
            let is_variable = members.contains_key("name");
            let member = |(name, value): (String, Value)| {
                let is_credential = is_credential || is_of_a_credential(&name) || (is_variable && name == "value");
                (name, without_credentials(value, is_credential))
            };
            Value::Object(members.into_iter().map(member).collect::<Map<_, _>>())
        }
        value => value,
    }
}

fn is_of_a_credential(name: &str) -> bool {
    let name = name.to_lowercase().replace('-', "_");
    CREDENTIALS.iter().any(|end| name.ends_with(end))
}

/// Returns true for `NAME=VALUE` with the name of a credential.
fn assigns_one(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| is_of_a_credential(name))
}

/// Returns true for an address with a user, and thus perhaps with a password.
fn has_user(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| rest.contains('@'))
}

fn insert<'a>(nodes: &mut Vec<(&'a str, Node<'a>)>, path: &'a str, setting: &'a Effective) {
    let Some((first, rest)) = path.split_once('.') else {
        nodes.push((path, Node::Setting(setting)));
        return;
    };
    let place = nodes.iter().position(|(key, _)| *key == first).unwrap_or_else(|| {
        nodes.push((first, Node::Section(Vec::new())));
        nodes.len() - 1
    });
    if let Some((_, Node::Section(below))) = nodes.get_mut(place) {
        insert(below, rest, setting);
    }
}

fn write_nodes(page: &mut String, nodes: &[(&str, Node<'_>)], indent: &str) {
    for (key, node) in nodes {
        // Writing to a String cannot fail.
        let _infallible = match node {
            Node::Section(below) => {
                // A key without anything below it would stand for no value.
                let comment = if has_value(below) { "" } else { "# " };
                let written = writeln!(page, "{indent}{comment}{key}:");
                write_nodes(page, below, &format!("{indent}  "));
                written
            }
            Node::Setting(Effective { source: Source::Unset, name, .. }) if name.is_empty() => {
                writeln!(page, "{indent}# {key}: not set")
            }
            Node::Setting(Effective { source: Source::Unset, name, .. }) => {
                writeln!(page, "{indent}# {key}: not set: {name}")
            }
            Node::Setting(Effective { value, source, name, .. }) if name.is_empty() => {
                writeln!(page, "{indent}{key}: {value}  # {}", source.word())
            }
            Node::Setting(Effective { value, source, name, .. }) => {
                writeln!(page, "{indent}{key}: {value}  # {} {name}", source.word())
            }
        };
    }
}

fn has_value(nodes: &[(&str, Node<'_>)]) -> bool {
    nodes.iter().any(|(_, node)| match node {
        Node::Section(below) => has_value(below),
        Node::Setting(setting) => setting.source != Source::Unset,
    })
}

// === impl Source ===

impl Source {
    fn word(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Variable => "variable",
            Self::File => "file",
            Self::Default => "default",
            Self::Unset => "not set",
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::plain(json!({"a": ["x", 1]}), json!({"a": ["x", 1]}))]
    #[case::address(json!("amqp://u:p@h/v"), json!(REDACTED))]
    #[case::address_without_a_user(json!("https://h/x"), json!("https://h/x"))]
    #[case::e_mail(json!("someone@example.com"), json!("someone@example.com"))]
    #[case::member(json!({"dbPassword": "x", "API-TOKEN": 7}), json!({"dbPassword": REDACTED, "API-TOKEN": REDACTED}))]
    #[case::inside(json!({"credentials": {"user": "x"}}), json!({"credentials": {"user": REDACTED}}))]
    #[case::file_of_one(json!({"token_file": "/x", "tokenPath": "/y"}), json!({"token_file": "/x", "tokenPath": "/y"}))]
    #[case::variable(json!([{"name": "MY_TOKEN", "value": "x"}]), json!([{"name": "MY_TOKEN", "value": REDACTED}]))]
    #[case::other_variable(json!([{"name": "ZONE", "value": "x"}]), json!([{"name": "ZONE", "value": REDACTED}]))]
    #[case::variable_by_reference(json!([{"name": "A", "valueFrom": {"field": "x"}}]), json!([{"name": "A", "valueFrom": {"field": "x"}}]))]
    #[case::access_key(json!({"aws_secret_access_key": "x"}), json!({"aws_secret_access_key": REDACTED}))]
    #[case::argument(json!(["run", "--password", "x", "y"]), json!(["run", "--password", REDACTED, "y"]))]
    #[case::assignment(json!(["--password=x", "--zone=a"]), json!([REDACTED, "--zone=a"]))]
    #[case::command(json!(["run-job", "pull-secret", "--token-file", "/x"]), json!(["run-job", "pull-secret", "--token-file", "/x"]))]
    fn credentials_are_redacted(#[case] value: Value, #[case] expected: Value) {
        assert_eq!(without_credentials(value, false), expected);
    }
}
