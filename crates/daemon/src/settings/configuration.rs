//! Finds and parses the configuration file.

use serde_json::{Map, Value};

use crate::environment::Environment;

/// Stands for a file's name that is not shown.
const UNNAMED: &str = "the configuration file";

/// A configuration file.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name for messages; empty for a text that is no file.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Reads the configuration file: that of the flag `--config`, else of the variable, else the first of `searched` that
/// exists.
///
/// # Errors
///
/// A file that was named, or is there, cannot be read.
pub fn configuration(
    flag: Option<&str>,
    environment: &impl Environment,
    variable: &str,
    searched: &[&str],
) -> Result<Option<File>, String> {
    let given = environment.text(variable).map_err(|error| error.to_string())?;
    let named = flag.map(|path| ("--config", path.to_owned())).or_else(|| given.map(|path| (variable, path)));
    if let Some((origin, path)) = named {
        return match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(File { name: printable(&path).unwrap_or(UNNAMED).to_owned(), text })),
            Err(error) => Err(format!("{origin}: {}", unreadable(&path, &error))),
        };
    }
    for path in searched {
        match std::fs::read_to_string(path) {
            Ok(text) => return Ok(Some(File { name: (*path).to_owned(), text })),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(path, &error)),
        }
    }
    Ok(None)
}

/// Message about a file that cannot be read, such as `cannot read /etc/x.yaml: permission denied`.
pub fn unreadable(path: &str, error: &std::io::Error) -> String {
    format!("cannot read {}: {}", printable(path).unwrap_or("that file"), error.kind())
}

/// The path, unless it does not look like one: a credential is easily given in its place.
fn printable(path: &str) -> Option<&str> {
    let extension = std::path::Path::new(path).extension();
    let is_yaml = extension.is_some_and(|extension| extension == "yaml" || extension == "yml");
    let is_path = is_yaml || path.starts_with(['/', '.']);
    Some(path).filter(|path| is_path && path.len() < 256 && !path.contains(['{', '"', '\n']))
}

/// The file as a tree. A fault names line and column, never the text there.
pub(super) fn parse(file: &File) -> Result<Map<String, Value>, String> {
    let name = if file.name.is_empty() { UNNAMED } else { &file.name };
    let options = serde_saphyr::options! { with_snippet: false };
    let tree: Value =
        serde_saphyr::from_str_with_options(&file.text, options).map_err(|error| match error.location() {
            Some(location) => {
                format!("{name}: not valid YAML at line {}, column {}", location.line(), location.column())
            }
            None => format!("{name}: not valid YAML"),
        })?;
    match tree {
        Value::Object(tree) => Ok(tree),
        Value::Null => Ok(Map::new()),
        _ => Err(format!("{name}: must be a mapping of keys")),
    }
}
