//! Settings that every daemon has, declared once: log, probes, metrics.

use std::fmt;
use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;

use super::declare::Setting;
use super::row::{Kind, Row};
use crate::environment::{Environment as _, ProcessEnvironment};
use crate::log;

/// Host that serves probes.
pub const HEALTH_HOST: Row = Row::at("health.host")
    .flag("health-host")
    .default("localhost")
    .or_keys(&["spec.health.host"])
    .help("Host name or IP address that probes (`/healthz`, `/readyz`) are served on");
/// Port that serves probes.
pub const HEALTH_PORT: Row = Row::at("health.port")
    .flag("health-port")
    .default("8080")
    .or_keys(&["spec.health.port"])
    .of(<u16 as Setting>::KIND)
    .help("Port that probes are served on; 0 takes a free one");
/// Host that serves metrics.
pub const METRICS_HOST: Row = Row::at("metrics.host")
    .flag("metrics-host")
    .default("localhost")
    .or_keys(&["spec.metrics.host"])
    .help("Host name or IP address that `/metrics` is served on");
/// Port that serves metrics.
pub const METRICS_PORT: Row = Row::at("metrics.port")
    .flag("metrics-port")
    .default("9090")
    .or_keys(&["spec.metrics.port"])
    .of(<u16 as Setting>::KIND)
    .help("Port that `/metrics` is served on; 0 takes a free one");
/// Address of probes; the row of an [`Address`].
pub const HEALTH: Row = Row::section().of(Kind::Section(&[HEALTH_HOST, HEALTH_PORT]));
/// Address of metrics; the row of an [`Address`].
pub const METRICS: Row = Row::section().of(Kind::Section(&[METRICS_HOST, METRICS_PORT]));

/// Least severe level that is logged. The other spellings are those of HyperFleet's programs and of earlier versions.
pub const LOG_LEVEL: Row = Row::at("log.level")
    .flag("log-level")
    .variable("LOG_LEVEL")
    .default("info")
    .or_keys(&["logging.level", "spec.log.level"])
    .or_variables(&["HYPERFLEET_LOG_LEVEL", "HYPERFLEET_LOGGING_LEVEL", "GLOBAL_PULL_SECRET_LOG_LEVEL"]);
/// Form of log lines.
pub const LOG_FORMAT: Row = Row::at("log.format")
    .flag("log-format")
    .variable("LOG_FORMAT")
    .default("auto")
    .or_keys(&["logging.format", "spec.log.format"])
    .or_variables(&["HYPERFLEET_LOG_FORMAT", "HYPERFLEET_LOGGING_FORMAT", "GLOBAL_PULL_SECRET_LOG_FORMAT"]);

crate::settings! {
    /// The log.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub struct Log {
        /// Least severe level that is logged
        pub level: Level = LOG_LEVEL,
        /// Form of log lines: `json` for programs, `text` for people, `auto` is text on a terminal and JSON elsewhere
        pub format: Form = LOG_FORMAT,
    }
}

/// Address that something is served on.
#[derive(Clone, Debug, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// Host name or IP address.
    pub host: String,
    /// Port; 0 takes a free one.
    pub port: u16,
}

impl Setting for Address {
    // Its rows depend on what is served there: HEALTH, METRICS.
    const KIND: Kind = Kind::Section(&[]);
}

crate::choices! {
    /// Least severe level that is logged.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Level {
        /// Only what needs someone to act.
        Error = "error",
        /// And what may need it.
        Warn = "warn" | "warning",
        /// And what happened.
        Info = "info",
        /// And what led to it.
        Debug = "debug",
    }
}

crate::choices! {
    /// Form of log lines.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Form {
        /// Text on a terminal, JSON elsewhere.
        Auto = "auto",
        /// One JSON object a line.
        Json = "json",
        /// Text for people.
        Text = "text",
    }
}

// === impl Log ===

impl Log {
    /// Settings of a subscriber that logs the events of these crates.
    pub fn of(&self, crates: &'static [&'static str]) -> log::Settings {
        let is_terminal = io::stdout().is_terminal();
        let format = match self.format {
            Form::Json => log::Format::Json,
            Form::Auto if !is_terminal => log::Format::Json,
            // https://no-color.org
            Form::Auto | Form::Text
                if is_terminal && ProcessEnvironment.text("NO_COLOR").is_ok_and(|off| off.is_none()) =>
            {
                log::Format::ColoredText
            }
            Form::Auto | Form::Text => log::Format::Text,
        };
        log::Settings { format, level: self.level.into(), crates }
    }
}

// === impl Level ===

impl From<Level> for LevelFilter {
    fn from(level: Level) -> Self {
        match level {
            Level::Error => Self::ERROR,
            Level::Warn => Self::WARN,
            Level::Info => Self::INFO,
            Level::Debug => Self::DEBUG,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        LevelFilter::from(*self).fmt(formatter)
    }
}
