//! The log lines of a test's own thread.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Event, Metadata, Subscriber};

/// Everything that was logged on a thread.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<String>>);

struct Line<'a>(&'a mut String);

impl Log {
    /// Logs what this thread does until the guard is dropped.
    pub(crate) fn here(&self) -> DefaultGuard {
        set_default(self.clone())
    }

    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl Subscriber for Log {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = self.0.lock().unwrap();
        event.record(&mut Line(&mut text));
        text.push('\n');
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}
