//! Reference pages of settings.

use std::fmt::Write as _;

use super::row::{Inert, Kind, Row, Table};

/// The settings of a table as a table of a page.
pub fn settings(table: &Table, has_file: bool) -> String {
    let key = if has_file { "| key " } else { "" };
    let rule = if has_file { "|---" } else { "" };
    let mut page = format!("{key}| variable | flag | value | default | meaning |\n{rule}|---|---|---|---|---|\n");
    for row in table.all() {
        if has_file {
            let _infallible = write!(page, "| `{}` ", row.path);
        }
        let variable = table.variable_of(row).map_or("none".to_owned(), |variable| format!("`{variable}`"));
        let flag = row.flag.map_or("none".to_owned(), |flag| format!("`--{flag}`"));
        let value = match row.kind {
            Kind::FileOnly => "in the file only".to_owned(),
            _ => format!("`{}`", row.synopsis().replace('|', "\\|")),
        };
        // Writing to a String cannot fail, here and below.
        let _infallible = writeln!(page, "| {variable} | {flag} | {value} | {} | {} |", default(row), meaning(row));
    }
    page
}

/// The keys that are refused with advice, as a table of a page.
pub fn retired(table: &Table) -> String {
    let mut page = "| key | instead |\n|---|---|\n".to_owned();
    for (path, instead) in table.retired {
        let _infallible = writeln!(page, "| `{path}` | {instead} |");
    }
    page
}

/// The keys of another program that have no effect, as a table of a page.
pub fn inert(keys: &Inert) -> String {
    let mut page = "| key | reason |\n|---|---|\n".to_owned();
    for (path, reason) in keys {
        let _infallible = writeln!(page, "| `{path}` | {reason} |");
    }
    page
}

/// The other spellings that a table's settings accept, each as a line of a page's table: the program, the setting, its
/// other keys, its other variables, its other values.
pub fn spellings(program: &str, table: &Table) -> String {
    let mut page = String::new();
    let quoted = |names: &[&str]| match names {
        [] => "none".to_owned(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    };
    for row in table.all() {
        let values: Vec<String> = match row.kind {
            Kind::Choice(choices) => choices
                .iter()
                .filter_map(|names| names.split_first().filter(|(_, others)| !others.is_empty()))
                .map(|(name, others)| format!("{} for `{name}`", quoted(others)))
                .collect(),
            _ => Vec::new(),
        };
        if row.other_keys.is_empty() && row.other_variables.is_empty() && values.is_empty() {
            continue;
        }
        let variable = table.variable_of(row).map(|variable| format!(", `{variable}`")).unwrap_or_default();
        let values = if values.is_empty() { "none".to_owned() } else { values.join("; ") };
        let (keys, variables) = (quoted(row.other_keys), quoted(row.other_variables));
        let _infallible = writeln!(page, "| {program} | `{}`{variable} | {keys} | {variables} | {values} |", row.path);
    }
    page
}

fn default(row: &Row) -> String {
    match (row.default, row.unset) {
        ("", "") => "none".to_owned(),
        ("", unset) => unset.to_owned(),
        (default, _) => format!("`{default}`"),
    }
}

fn meaning(row: &Row) -> String {
    let bounds = row.bounds();
    if bounds.is_empty() { row.help.to_owned() } else { format!("{}; {bounds}", row.help) }
}
