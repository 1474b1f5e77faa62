//! `pull-secret context`: the fleets that the commands can ask, each under a name.

mod chosen;
mod file;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use daemon::environment::ProcessEnvironment;
use daemon::output;
use serde_json::{Value, json};

use crate::cli::{ContextCommand, ContextOutput, OutputFormat, SetArguments};
pub(crate) use chosen::{API, Chosen, Given, Setting};
use file::{Contexts, KEYS, Values};

/// Does what the command says.
pub(crate) fn context(command: ContextCommand) -> anyhow::Result<ExitCode> {
    let path = file::place(&ProcessEnvironment)?
        .with_context(|| format!("there is no place for contexts: set {}, XDG_CONFIG_HOME or HOME", file::VARIABLE))?;
    match command {
        ContextCommand::List(format) => list(&file::read(&path)?, &format),
        ContextCommand::Show { name, format } => {
            let contexts = file::read(&path)?;
            let name = name.or_else(|| contexts.current.clone());
            let name = name.context("no context is in use: name one, or choose one with `pull-secret context use`")?;
            show(&name, contexts.get(&name)?, &format)
        }
        ContextCommand::Use { name, format } => {
            let was = file::change(&path, |contexts| {
                let _known = contexts.get(&name)?;
                Ok(contexts.current.replace(name.clone()))
            })?;
            changed(&name, was.as_ref() != Some(&name), "in use", &format)
        }
        ContextCommand::Set(arguments) => set(&path, *arguments),
        ContextCommand::Delete { name, format } => {
            file::change(&path, |contexts| {
                let _known = contexts.get(&name)?;
                contexts.all.remove(&name);
                contexts.current = contexts.current.take().filter(|current| *current != name);
                Ok(())
            })?;
            changed(&name, true, "deleted", &format)
        }
    }
}

fn set(path: &Path, arguments: SetArguments) -> anyhow::Result<ExitCode> {
    let SetArguments { name, values, format } = arguments;
    file::check_name(&name)?;
    let mut given = Vec::new();
    for key in &KEYS {
        let Some(value) = (key.of)(&values).map(|value| value.trim().to_owned()) else { continue };
        if value.is_empty() {
            given.push((key.name, None));
            continue;
        }
        file::check(key, &value).with_context(|| key.name)?;
        // A context is used in other folders than that in which it was made.
        let absolute = if key.is_file { Some(std::path::absolute(&value).context(key.name)?) } else { None };
        given.push((key.name, Some(absolute.map_or(value, |path| path.to_string_lossy().into_owned()))));
    }
    let is_changed = file::change(path, |contexts| {
        let is_new = !contexts.all.contains_key(&name);
        let values = contexts.all.entry(name.clone()).or_default();
        let before = values.clone();
        for (key, value) in given {
            match value {
                Some(value) => drop(values.insert(key, value)),
                None => drop(values.remove(key)),
            }
        }
        Ok(is_new || *values != before)
    })?;
    changed(&name, is_changed, "set", &format)
}

fn list(contexts: &Contexts, format: &ContextOutput) -> anyhow::Result<ExitCode> {
    let is_current = |name: &String| contexts.current.as_ref() == Some(name);
    let value = |values: &Values, key: &str| values.get(key).cloned().unwrap_or_else(|| "-".to_owned());
    let text = match format.output {
        OutputFormat::Table if contexts.all.is_empty() => {
            output::note("no contexts: `pull-secret context set NAME --api URL` makes one");
            return Ok(ExitCode::SUCCESS);
        }
        OutputFormat::Table => {
            let row = |(name, values): (&String, &Values)| {
                let current = if is_current(name) { "*" } else { " " };
                [current.to_owned(), name.clone(), value(values, "api"), value(values, "kubernetesContext")]
            };
            let rows: Vec<_> = contexts.all.iter().map(row).collect();
            output::table(["", "NAME", "API", "KUBERNETES CONTEXT"], rows)
        }
        OutputFormat::Json => {
            let object = |(name, values): (&String, &Values)| object(name, is_current(name), values);
            format!("{:#}\n", Value::Array(contexts.all.iter().map(object).collect()))
        }
    };
    Ok(output::print(text)?)
}

fn object(name: &str, is_current: bool, values: &Values) -> Value {
    json!({ "name": name, "current": is_current, "values": values })
}

fn show(name: &str, values: &Values, format: &ContextOutput) -> anyhow::Result<ExitCode> {
    Ok(output::print(match format.output {
        OutputFormat::Table => {
            let line = |text: String, (key, value): (&&str, &String)| text + &format!("{key:<18} {value}\n");
            values.iter().fold(String::new(), line)
        }
        OutputFormat::Json => format!("{:#}\n", json!({ "name": name, "values": values })),
    })?)
}

fn changed(name: &str, is_changed: bool, word: &str, format: &ContextOutput) -> anyhow::Result<ExitCode> {
    Ok(output::print(match format.output {
        OutputFormat::Table if is_changed => format!("context {name}: {word}\n"),
        OutputFormat::Table => format!("context {name}: {word} already\n"),
        OutputFormat::Json => format!("{:#}\n", json!({ "name": name, "changed": is_changed })),
    })?)
}
