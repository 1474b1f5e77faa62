//! Data on stdout, words on stderr.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use comfy_table::Table;
use comfy_table::presets::NOTHING;

/// Writes a command's result to stdout. A reader that has gone is not an error: it has read enough.
pub(crate) fn print(text: impl Display) -> anyhow::Result<ExitCode> {
    let written = write!(io::stdout().lock(), "{text}").and_then(|()| io::stdout().lock().flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes a line for people to stderr.
pub(crate) fn tell(line: impl Display) {
    // Nobody is left to tell when stderr is gone.
    let _unwritable = writeln!(io::stderr().lock(), "{line}");
}

/// Rows in columns, without lines around them; each line ends with a line feed.
pub(crate) fn table<const COLUMNS: usize>(
    header: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header).add_rows(rows);
    table.lines().map(|line| line.trim().to_owned() + "\n").collect()
}

/// Others' words on one line: nothing in them moves a terminal's cursor.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}
