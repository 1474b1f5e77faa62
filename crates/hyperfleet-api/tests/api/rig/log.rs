//! The log of all servers of this process, for assertions.

use std::io::{self, Write};
use std::sync::Mutex;

use daemon::log::{Format, Settings};
use tracing::level_filters::LevelFilter;

static LOGGED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Captured;

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Captures the log from now on, at every level.
pub(super) fn capture() {
    let crates = &["audit", "database", "hyperfleet_api", "daemon"];
    let settings = Settings { format: Format::Json, level: LevelFilter::TRACE, crates };
    tracing::subscriber::set_global_default(daemon::log::subscriber(settings, Captured)).unwrap();
}

/// The log so far.
pub(crate) fn logged() -> String {
    String::from_utf8(LOGGED.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()).unwrap()
}
