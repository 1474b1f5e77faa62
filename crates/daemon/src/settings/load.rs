//! Reads settings from flags, variables and a file, and lists all faults at once, each with its place and without its value.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::configuration::{self, File};
use super::dump::{self, Dump, Effective, Source};
use super::loaded::Loaded;
use super::row::{Inert, Kind, Row, Table};
use super::{hint, tree};
use crate::environment::Environment;

/// Flags and file that were given.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The configuration file, if there is one.
    pub file: Option<File>,
    /// The flags, by name.
    pub flags: BTreeMap<&'static str, String>,
    /// Paths of settings that have no effect this time: they are not read, and no fault of theirs matters.
    pub ignored: Vec<&'static str>,
}

/// Reads settings into `T`, whose fields are those of the file. In place of a faulty value the default is read, so that
/// rules about several settings can be checked too.
pub fn load<T: DeserializeOwned>(table: &Table, environment: &impl Environment, given: &Given) -> Loaded<T> {
    load_beside(table, &[], environment, given)
}

/// Reads settings as [`load`] does, from a file that may also have keys of another program.
pub fn load_beside<T: DeserializeOwned>(
    table: &Table,
    inert: &Inert,
    environment: &impl Environment,
    given: &Given,
) -> Loaded<T> {
    let mut reader = Reader {
        table,
        inert,
        notes: Vec::new(),
        rows: table.all(),
        tree: Map::new(),
        faults: Vec::new(),
        suffix: String::new(),
        renamed: BTreeMap::new(),
        effective: BTreeMap::new(),
    };
    if let Some(file) = &given.file {
        if !file.name.is_empty() {
            reader.suffix = format!(" (in {})", file.name);
        }
        match configuration::parse(file) {
            Ok(tree) => reader.tree = tree,
            Err(fault) => reader.faults.push(fault),
        }
    }
    reader.rename_keys();
    reader.refuse_retired_keys();
    reader.leave_out_inert_keys();
    let mut keys = std::mem::take(&mut reader.tree);
    reader.refuse_unknown_keys(&mut keys, "");
    reader.tree = keys;
    for row in table.scalars() {
        if given.ignored.contains(&row.path) {
            drop(tree::take(&mut reader.tree, row.path));
            reader.put_default(row);
        } else {
            reader.read(row, environment, given);
        }
    }
    reader.faults.extend(hint::misspelt_variables(table, environment));
    let dump = reader.dump(environment, given);
    let settings = reader.settings();
    Loaded { settings, faults: reader.faults, notes: reader.notes, dump }
}

/// The fault of a setting that is needed and not given, such as `broker.url: missing; set BROKER_URL or --broker-url`.
pub fn missing(table: &Table, path: &str) -> String {
    let row = table.all().into_iter().find(|row| row.path == path);
    let ways = row.map(|row| table.ways(row)).unwrap_or_default();
    format!("{path}: missing; set {ways}")
}

struct Reader<'a> {
    table: &'a Table,
    inert: &'a Inert,
    notes: Vec<String>,
    rows: Vec<&'static Row>,
    tree: Map<String, Value>,
    faults: Vec<String>,
    /// Names the file behind a fault of a key.
    suffix: String,
    /// The keys that were given in another spelling, each with it.
    renamed: BTreeMap<&'static str, &'static str>,
    /// The scalars that were given, by their keys.
    effective: BTreeMap<&'static str, Effective>,
}

/// A scalar as it was given.
struct Text {
    source: Source,
    /// The flag, the variable or the key.
    name: String,
    value: String,
}

impl Reader<'_> {
    fn fault_of_key(&mut self, path: &str, fault: &str) {
        let path = self.renamed.get(path).unwrap_or(&path);
        self.faults.push(format!("{path}: {fault}{}", self.suffix));
    }

    /// Moves values from other spellings of keys to the keys.
    fn rename_keys(&mut self) {
        for row in self.rows.clone() {
            for other in row.other_keys {
                let Some(value) = tree::take(&mut self.tree, other) else { continue };
                if tree::at(&self.tree, row.path).is_some() {
                    self.fault_of_key(row.path, &format!("given twice, also as {other}"));
                } else {
                    tree::put(&mut self.tree, row.path, value);
                    self.renamed.insert(row.path, *other);
                }
            }
        }
    }

    fn refuse_retired_keys(&mut self) {
        for (path, instead) in self.table.retired {
            if tree::take(&mut self.tree, path).is_some() {
                self.fault_of_key(path, &format!("not a key of this program: {instead}"));
            }
        }
    }

    fn leave_out_inert_keys(&mut self) {
        for (path, reason) in self.inert {
            if tree::take(&mut self.tree, path).is_some() {
                self.notes.push(format!("{path}: no effect here: {reason}{}", self.suffix));
            }
        }
    }

    fn refuse_unknown_keys(&mut self, keys: &mut Map<String, Value>, above: &str) {
        for key in keys.keys().cloned().collect::<Vec<_>>() {
            let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
            let inside = format!("{path}.");
            let is_section = self.rows.iter().any(|row| row.path.starts_with(&inside));
            // Only other spellings and retired keys are in there.
            let was_section = self.rows.iter().flat_map(|row| row.other_keys).any(|other| other.starts_with(&inside))
                || self.table.retired.iter().chain(self.inert).any(|(other, _)| other.starts_with(&inside));
            if self.rows.iter().any(|row| row.path == path && !key.contains('.')) {
                continue;
            }
            if key.contains('.') {
                self.fault_of_key(&path, "unknown key: write each part of a key as a mapping of its own");
            } else if is_section || was_section {
                match keys.get_mut(&key) {
                    Some(Value::Object(inner)) => self.refuse_unknown_keys(inner, &path),
                    None | Some(Value::Null) => {}
                    Some(_) => self.fault_of_key(&path, "must be a mapping of keys"),
                }
                if is_section {
                    continue;
                }
            } else {
                let known: Vec<&str> = self.rows.iter().map(|row| row.path).collect();
                let hint = hint::did_you_mean(hint::similar_key(&path, &known));
                self.fault_of_key(&path, &format!("unknown key{hint}"));
            }
            keys.remove(&key);
        }
    }

    fn read(&mut self, row: &'static Row, environment: &impl Environment, given: &Given) {
        let faults = self.faults.len();
        let given = flag(row, given).or_else(|| self.variable(row, environment)).or_else(|| self.file_text(row));
        if let Some(Text { source, name, value: text }) = given {
            match value(row, &text) {
                Ok(value) => {
                    let shown = if value.is_string() { value.clone() } else { dump::scalar(row, &text) };
                    self.effective.insert(row.path, Effective::new(row, shown, source, name));
                    tree::put(&mut self.tree, row.path, value);
                    return;
                }
                Err(must) if source == Source::File => self.fault_of_key(row.path, &must),
                Err(must) => self.faults.push(format!("{name}: {must}")),
            }
        }
        drop(tree::take(&mut self.tree, row.path));
        if row.is_required && self.faults.len() == faults {
            self.faults.push(missing(self.table, row.path));
        }
        self.put_default(row);
    }

    fn variable(&mut self, row: &Row, environment: &impl Environment) -> Option<Text> {
        for name in self.table.variables_of(row) {
            match environment.text(&name) {
                // A Service may be called so that Kubernetes gives its variable this name.
                Ok(Some(text)) if !hint::is_of_a_service(&name, &text) => {
                    return Some(Text { source: Source::Variable, name, value: text });
                }
                Ok(_) => {}
                Err(error) => self.faults.push(error.to_string()),
            }
        }
        None
    }

    /// A scalar of the file by the same rules as one of a flag: `5s` is a duration, `"5"` a number.
    fn file_text(&mut self, row: &Row) -> Option<Text> {
        let text = match tree::at(&self.tree, row.path)? {
            Value::Null => return None,
            // As with flags and variables, a blank text is no value where none is needed or one must be given.
            Value::String(text) if row.default.is_empty() && text.trim().is_empty() => return None,
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(switch) => switch.to_string(),
            _ => {
                self.fault_of_key(row.path, "must be a single value");
                return None;
            }
        };
        Some(Text { source: Source::File, name: self.key_in_file(row), value: text })
    }

    /// The key as the file has it.
    fn key_in_file(&self, row: &Row) -> String {
        (*self.renamed.get(row.path).unwrap_or(&row.path)).to_owned()
    }

    /// All settings with their sources.
    fn dump(&self, environment: &impl Environment, given: &Given) -> Dump {
        let file = given.file.as_ref().map(|file| file.name.clone()).filter(|name| !name.is_empty());
        let is_built_in = file.is_none();
        let effective = |row: &&'static Row| {
            let listed = tree::at(&self.tree, row.path).filter(|_| matches!(row.kind, Kind::FileOnly));
            let listed = listed.map(|value| Effective::new(row, value.clone(), Source::File, self.key_in_file(row)));
            match self.effective.get(row.path).cloned().or(listed) {
                // A text that is no file is built in.
                Some(effective) if is_built_in && effective.source == Source::File => {
                    Effective { source: Source::Default, name: String::new(), ..effective }
                }
                Some(effective) => effective,
                None => Effective::not_given(row),
            }
        };
        let settings = self.rows.iter().map(effective).collect();
        // The variable that names the file is shown by the file.
        let is_set =
            |name: &&&str| !name.ends_with("_CONFIG") && environment.text(name).is_ok_and(|value| value.is_some());
        let further = self.table.further.iter().filter(is_set).map(|name| (*name).to_owned()).collect();
        Dump { file, settings, further_variables: further }
    }

    fn put_default(&mut self, row: &Row) {
        tree::make_parents(&mut self.tree, row.path);
        if !row.default.is_empty()
            && let Ok(value) = value(row, row.default)
        {
            tree::put(&mut self.tree, row.path, value);
        }
    }

    /// The structure that the tree stands for. After a fault in a list or mapping, what is wrong is taken out and the rest
    /// read again, so that the next fault is found too.
    fn settings<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut is_pruned = false;
        loop {
            let error = match serde_path_to_error::deserialize(Value::Object(self.tree.clone())) {
                Ok(settings) => return Some(settings),
                Err(error) => error,
            };
            let path = error.path().to_string();
            let message = error.into_inner().to_string();
            let is_missing = message.starts_with("missing field");
            // What is missing may be what was taken out, or a fault already.
            if !(is_missing && (is_pruned || !self.faults.is_empty())) {
                let place = if path == "." { "the configuration file" } else { &path };
                self.fault_of_key(place, &readable(&message));
            }
            let root = self.rows.iter().find(|row| {
                matches!(row.kind, Kind::FileOnly)
                    && path.strip_prefix(row.path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            });
            is_pruned = (message.starts_with("unknown field") && tree::prune(&mut self.tree, &path))
                || root.is_some_and(|row| tree::take(&mut self.tree, row.path).is_some());
            if !is_pruned {
                return None;
            }
        }
    }
}

fn flag(row: &Row, given: &Given) -> Option<Text> {
    let flag = row.flag?;
    let text = given.flags.get(flag).map(|text| text.trim()).filter(|text| !text.is_empty())?;
    Some(Text { source: Source::Flag, name: format!("--{flag}"), value: text.to_owned() })
}

/// A message of serde's without a value: only names of keys may be quoted, as a credential is easily given in the wrong
/// place.
fn readable(message: &str) -> String {
    if message.starts_with("unknown field") {
        let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let meant = names.split_first().and_then(|(unknown, known)| hint::similar(unknown, known.iter().copied()));
        return format!("unknown key{}", hint::did_you_mean(meant));
    }
    match message.split_once(", expected ") {
        _ if message.starts_with("missing field") => message.to_owned(),
        Some((before, expected)) if before.starts_with("unknown variant") => format!("must be {expected}"),
        _ => "has the wrong form".to_owned(),
    }
}

/// The value that a text stands for, or what it must be.
fn value(row: &Row, text: &str) -> Result<Value, String> {
    match row.kind {
        Kind::Number(most) => {
            let read = |text: &str| text.parse::<u64>().ok().filter(|number| *number <= most);
            let fits = |number: &u64| {
                read(row.least).is_none_or(|least| least <= *number)
                    && read(row.most).is_none_or(|most| *number <= most)
            };
            let number = read(text).filter(fits).map(Value::from);
            number.ok_or_else(|| match u32::try_from(most) {
                Ok(most) if row.most.is_empty() && row.least.is_empty() => {
                    format!("must be a whole number up to {most}")
                }
                _ => format!("must be a whole number{}", row.of_bounds()),
            })
        }
        Kind::Switch => text.parse::<bool>().map(Value::from).map_err(|_neither| "must be true or false".to_owned()),
        Kind::Duration => {
            // The form that serde reads a `Duration` from.
            let duration = row.duration(text)?;
            Ok(serde_json::json!({ "secs": duration.as_secs(), "nanos": duration.subsec_nanos() }))
        }
        Kind::Choice(choices) => {
            let is_named = |names: &&&[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(text));
            let chosen = choices.iter().find(is_named).and_then(|names| names.first());
            chosen.map(|name| Value::from(*name)).ok_or_else(|| {
                let names = choices.iter().filter_map(|names| names.first().copied());
                let listed = names.clone().collect::<Vec<_>>().join(", ");
                format!("must be one of {listed}{}", hint::did_you_mean(hint::similar(text, names)))
            })
        }
        Kind::Text | Kind::Secret | Kind::Path | Kind::FileOnly | Kind::Section(_) => Ok(Value::from(text)),
    }
}
