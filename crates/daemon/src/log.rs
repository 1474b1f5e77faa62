//! One flat log line per event, for programs (JSON) or for people (text).
//!
//! A line holds the fields of the event and of its spans; numbers stay numbers in JSON. Only the crates of this project are
//! logged: HTTP clients and authentication libraries may log tokens at their lower levels.

#[cfg(test)]
pub(crate) mod buffer;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::{Number, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// Format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// One JSON object, members in alphabetical order.
    #[default]
    Json,
    /// Time, level, operation, message, then the other fields.
    Text,
    /// The same with colours, for a terminal.
    ColoredText,
}

/// Escape sequences of a terminal. The message stays as it is, so that it reads on every background.
const DIM: &str = "\u{1b}[2m";
const RED: &str = "\u{1b}[1;31m";
const YELLOW: &str = "\u{1b}[33m";
const GREEN: &str = "\u{1b}[32m";
const RESET: &str = "\u{1b}[0m";

/// Settings of the log.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Format of a line.
    pub format: Format,
    /// Least severe level that is written.
    pub level: LevelFilter,
    /// Crates that are logged, as Rust writes their names.
    pub crates: &'static [&'static str],
}

/// Target of the spans of traces. They give log lines no fields but the ids of trace and span.
pub const SPANS: &str = "spans";

/// Target of audit records, which are written whatever the level is: with some left out, the others prove nothing.
pub const AUDIT: &str = "audit";

/// Fields of a line, by name.
pub(crate) type Fields = BTreeMap<&'static str, Value>;

/// Adds the ids of the current trace and span to a line.
pub(crate) type TraceIds = fn(&mut Fields);

/// Component of a crate's events where no span names it: the crate as Rust writes its name, and the component.
pub type Components = &'static [(&'static str, &'static str)];

/// Writes each event as one line.
struct Lines<W> {
    settings: Settings,
    /// Empty if the process has one component only.
    components: Components,
    /// `None` while no traces are exported: there are no spans of traces then.
    trace_ids: Option<TraceIds>,
    writer: Mutex<W>,
}

/// The process has a log already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot start the log: it has been started before")]
pub struct StartError;

/// An unknown log format or level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of {allowed}")]
pub struct Unknown {
    allowed: &'static str,
}

/// Returns a subscriber that writes to `writer`. [`start`] installs one for the process.
pub fn subscriber<W: Write + Send + 'static>(settings: Settings, writer: W) -> impl Subscriber + Send + Sync {
    subscriber_of(&[], settings, writer)
}

/// Returns a subscriber for a process with several components: each line names its component, in the field `component` or,
/// for people, after the time. A field `component` of the event or its spans wins over that of the crate.
pub fn subscriber_of<W: Write + Send + 'static>(
    components: Components,
    settings: Settings,
    writer: W,
) -> impl Subscriber + Send + Sync {
    Registry::default().with(lines(components, settings, None, writer))
}

/// Returns the layer that writes each event as one line.
pub(crate) fn lines<S, W>(
    components: Components,
    settings: Settings,
    trace_ids: Option<TraceIds>,
    writer: W,
) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: Write + Send + 'static,
{
    Lines { settings, components, trace_ids, writer: Mutex::new(writer) }
}

/// Renders an error and its causes on one line.
pub fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Parses a level, in upper or lower case.
pub fn level(name: &str) -> Result<LevelFilter, Unknown> {
    match name.to_ascii_lowercase().as_str() {
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        _ => Err(Unknown { allowed: "error, warn, info, debug" }),
    }
}

/// Starts the log of the process on stdout.
pub fn start(settings: Settings) -> Result<(), StartError> {
    start_for(&[], settings, io::stdout())
}

/// Starts the log of a process with several components on `writer`.
pub fn start_for<W: Write + Send + 'static>(
    components: Components,
    settings: Settings,
    writer: W,
) -> Result<(), StartError> {
    let subscriber = subscriber_of(components, settings, writer);
    tracing::subscriber::set_global_default(subscriber).map_err(|_started| StartError)
}

// === impl Format ===

impl FromStr for Format {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Self, Unknown> {
        match name {
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            _ => Err(Unknown { allowed: "json, text" }),
        }
    }
}

impl Format {
    fn line(self, now: Timestamp, level: &str, mut fields: Fields, component: bool) -> String {
        match self {
            Self::Json => {
                fields.insert("level", level.into());
                fields.insert("timestamp", now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into());
                let object: serde_json::Map<String, Value> =
                    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
                Value::Object(object).to_string() + "\n"
            }
            Self::Text | Self::ColoredText => {
                let color = |code: &'static str| if self == Self::ColoredText { (code, RESET) } else { ("", "") };
                let (dim, plain_again) = color(DIM);
                let (bright, _) = color(match level {
                    "error" => RED,
                    "warn" => YELLOW,
                    "info" => GREEN,
                    _ => DIM,
                });
                let component = component.then(|| fields.remove("component").unwrap_or_default());
                let component = component.map(|component| format!("{:<9} ", plain(&component))).unwrap_or_default();
                let operation = fields.remove("operation").unwrap_or_default();
                let message = fields.remove("message").unwrap_or_default();
                let mut line = format!(
                    "{dim}{}{plain_again} {component}{bright}{level:<5}{plain_again} {:<18} {}",
                    now.strftime("%H:%M:%S"),
                    plain(&operation),
                    plain(&message)
                );
                for (name, value) in fields {
                    // Writing to a String cannot fail.
                    let _infallible = write!(line, "  {dim}{name}={plain_again}{}", plain(&value));
                }
                line + "\n"
            }
        }
    }
}

/// Renders a value for people, without characters that move a terminal's cursor or begin a new line.
fn plain(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.chars().flat_map(|char| if char.is_control() { char.escape_default().collect() } else { vec![char] }).collect()
}

// === impl Lines ===

impl<S, W> Layer<S> for Lines<W>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: Write + Send + 'static,
{
    fn enabled(&self, metadata: &Metadata<'_>, _context: Context<'_, S>) -> bool {
        if metadata.target() == SPANS {
            return self.trace_ids.is_some() && metadata.is_span();
        }
        let root = metadata.target().split("::").next().unwrap_or_default();
        self.settings.crates.contains(&root) && (*metadata.level() <= self.settings.level || root == AUDIT)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let has_audit = self.settings.crates.contains(&AUDIT);
        Some(if has_audit || self.trace_ids.is_some() {
            self.settings.level.max(LevelFilter::INFO)
        } else {
            self.settings.level
        })
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id).filter(|span| span.metadata().target() != SPANS) {
            let mut fields = Fields::new();
            attributes.record(&mut Collect(&mut fields));
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            record.record(&mut Collect(fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::new();
        for span in context.event_scope(event).into_iter().flat_map(tracing_subscriber::registry::Scope::from_root) {
            fields.extend(span.extensions().get::<Fields>().cloned().unwrap_or_default());
        }
        event.record(&mut Collect(&mut fields));
        if let Some(add) = self.trace_ids {
            add(&mut fields);
        }
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        let root = event.metadata().target().split("::").next().unwrap_or_default();
        if let Some((_, component)) = self.components.iter().find(|(name, _)| *name == root) {
            fields.entry("component").or_insert_with(|| (*component).into());
        }
        let line = self.settings.format.line(Timestamp::now(), &level, fields, !self.components.is_empty());
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written has no other place to be reported.
        let _unwritable = writer.write_all(line.as_bytes()).and_then(|()| writer.flush());
    }
}

impl<W> fmt::Debug for Lines<W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Lines").field("settings", &self.settings).finish_non_exhaustive()
    }
}

struct Collect<'a>(&'a mut Fields);

impl Visit for Collect<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name(), value.into());
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.0.insert(field.name(), number(Number::from_u128(value), value));
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.0.insert(field.name(), number(Number::from_i128(value), value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name(), number(Number::from_f64(value), value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}").into());
    }
}

/// Returns the number, or its text where JSON cannot hold it: not finite, or beyond 64 bits.
fn number(number: Option<Number>, value: impl fmt::Display) -> Value {
    number.map_or_else(|| value.to_string().into(), Value::Number)
}
