//! Output of commands: data on stdout, messages for people on stderr.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

use comfy_table::Table;
use comfy_table::presets::NOTHING;

/// Writes a command's result to stdout. A closed pipe is not an error: the reader has read enough.
pub fn print(text: impl Display) -> io::Result<ExitCode> {
    let written = write!(io::stdout().lock(), "{text}").and_then(|()| io::stdout().lock().flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(io::Error::new(error.kind(), format!("cannot write to stdout: {error}")))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes a line for people to stderr; a closed stderr is ignored.
pub fn note(line: impl Display) {
    let _unwritable = writeln!(io::stderr().lock(), "{line}");
}

/// Formats rows in aligned columns without borders; each line ends with a line feed.
pub fn table<const COLUMNS: usize>(
    header: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header).add_rows(rows);
    table.lines().map(|line| line.trim().to_owned() + "\n").collect()
}

/// Text from other systems on one line, with control characters replaced, so that it cannot move a terminal's cursor.
pub fn plain(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}
