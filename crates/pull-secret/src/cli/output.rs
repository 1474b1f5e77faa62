//! The output format of commands.

use clap::{Args, ValueEnum};
use daemon::settings::dump::Format;

/// Output format of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// A table, for people
    #[default]
    Table,
    /// JSON, for programs
    Json,
}

/// Arguments of `config-dump`.
#[derive(Debug, Args)]
pub(crate) struct ConfigDumpArguments<F: Args> {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: Format,
    #[command(flatten)]
    pub(crate) flags: F,
}
