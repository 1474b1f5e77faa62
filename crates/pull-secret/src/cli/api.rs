//! `pull-secret api`: its commands, and its flags as the table of settings has them.

use clap::{Args, Subcommand};
use daemon::settings::flags::Flags;
use hyperfleet_api::settings::table::TABLE;

const FLAGS: Flags = Flags {
    table: TABLE,
    config: Some("[env: HYPERFLEET_CONFIG] [default: /etc/hyperfleet/config.yaml or ./configs/config.yaml, if there]"),
    repeated: &[],
};

daemon::flags!(pub(crate) ApiFlags, FLAGS);

/// Arguments of `api` and of each of its commands.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ApiArguments {
    #[command(subcommand)]
    pub(crate) command: Option<ApiCommand>,
    #[command(flatten)]
    pub(crate) flags: ApiFlags,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApiCommand {
    /// Serve the API; what `pull-secret api` does without a command
    Serve(ApiFlags),
    /// Bring the database's schema up to date, as `serve` does when it starts
    Migrate(MigrateArguments),
    /// Print the `OpenAPI` document of what is served with these settings
    Openapi(ApiFlags),
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArguments {
    /// Change nothing: succeed if the schema is up to date, else list what is missing and exit with 1
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) flags: ApiFlags,
}
