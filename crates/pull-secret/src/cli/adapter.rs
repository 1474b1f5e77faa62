//! `pull-secret adapter`: its commands, and its flags as the table of settings has them.

use std::path::PathBuf;

use adapter::config::table::TABLE;
use clap::{Args, Subcommand};
use daemon::settings::flags::{Flags, REQUIRED};

use super::output::{ConfigDumpArguments, OutputFormat};

const FLAGS: Flags = Flags {
    table: TABLE,
    config: Some(
        "(an AdapterConfig; without one that of the pull secret adapter is built in) [env: HYPERFLEET_ADAPTER_CONFIG] \
             [default: /etc/hyperfleet/adapter.yaml or /etc/hyperfleet/config.yaml, if there]",
    ),
    repeated: &[],
    required: REQUIRED,
};

daemon::flags!(pub(crate) AdapterFlags, FLAGS);

/// Arguments of `adapter`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AdapterArguments {
    #[command(subcommand)]
    pub(crate) command: Option<AdapterCommand>,
    #[command(flatten)]
    pub(crate) flags: AdapterFlags,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdapterCommand {
    /// Work on events; what `pull-secret adapter` does without a command
    Serve(AdapterFlags),
    /// Say what would be decided about a cluster, and why, without touching anything
    ///
    /// Exit code 0 if a run would begin or the work is done, 1 if something is awaited.
    DryRun(DryRunArguments),
    /// Print the settings in effect, each with its source, without credentials
    ///
    /// Settings that are built in for the adapter's type are not among them. Exits with 2 and all faults if `serve` would refuse them.
    ConfigDump(ConfigDumpArguments<AdapterFlags>),
    /// Print the JSON Schema of the configuration file
    Schema,
}

/// Arguments of `adapter dry-run`.
#[derive(Debug, Args)]
pub(crate) struct DryRunArguments {
    /// The event, a `CloudEvent` as JSON; without it the cluster is looked at as it is
    #[arg(long, value_name = "FILE")]
    pub(crate) event: Option<PathBuf>,
    /// The cluster, as the API answers `GET /clusters/{id}`
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: AdapterFlags,
}
