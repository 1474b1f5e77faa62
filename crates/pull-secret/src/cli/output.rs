//! The output format of commands.

use clap::ValueEnum;

/// Output format of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// A table, for people
    #[default]
    Table,
    /// JSON, for programs
    Json,
}
