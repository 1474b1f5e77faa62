//! The progress of a run: a bar on a terminal, and lines.

use std::io::{self, IsTerminal as _, Write as _, stderr};

use daemon::output;
use rotation::event::{self, Event};
use rotation::plan::Plan;
use rotation::state::State;
use serde_json::json;

use crate::cli::OutputFormat;

/// Returns the cursor to the beginning of the line and clears it.
const CLEAR: &str = "\r\u{1b}[K";

/// Shows events as they come.
pub(super) struct Progress<'a> {
    plan: &'a Plan,
    format: OutputFormat,
    has_bar: bool,
    /// The first failure to write.
    pub(super) printed: io::Result<()>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(plan: &'a Plan, format: OutputFormat) -> Self {
        let has_bar = format == OutputFormat::Table && stderr().is_terminal();
        Self { plan, format, has_bar, printed: Ok(()) }
    }

    pub(super) fn show(&mut self, event: &Event, state: &State) {
        if self.has_bar {
            Self::draw(CLEAR);
        }
        let printed = match self.format {
            OutputFormat::Table => output::print(format_args!("{event}\n")),
            OutputFormat::Json => output::print(format_args!("{}\n", json!(event))),
        };
        self.printed = std::mem::replace(&mut self.printed, Ok(())).and(printed.map(drop));
        if self.has_bar && !matches!(event, Event::Ended { .. }) {
            Self::draw(&event::bar(self.plan, state));
        }
    }

    /// A closed stderr is ignored, as by `note`.
    fn draw(text: &str) {
        let mut stderr = stderr().lock();
        let _unwritable = write!(stderr, "{text}").and_then(|()| stderr.flush());
    }
}
