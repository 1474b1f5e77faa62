//! `pull-secret api`: its commands, and its flags as the table of settings has them.

use clap::{Args, Subcommand};
use daemon::settings::flags::{Flags, REQUIRED};
use hyperfleet_api::settings::table::TABLE;

use super::output::{ConfigDumpArguments, OutputFormat};

const FLAGS: Flags = Flags {
    table: TABLE,
    config: Some("[env: HYPERFLEET_CONFIG] [default: /etc/hyperfleet/config.yaml or ./configs/config.yaml, if there]"),
    repeated: &[],
    required: REQUIRED,
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
    /// Encrypt every stored pull secret with the first of `pull_secret.keys`, as `serve` does every ten minutes
    Rekey(RekeyArguments),
    /// Make a database that was restored from a backup ready for use; run it before any server
    Restored(RestoredArguments),
    /// Print what an identity may do with these settings
    Grants(GrantsArguments),
    /// Print the settings in effect, each with its source, without credentials
    ///
    /// Exits with 2 and all faults if `serve` would refuse them.
    ConfigDump(ConfigDumpArguments<ApiFlags>),
    /// Print the `OpenAPI` document of what is served with these settings
    Openapi(ApiFlags),
}

/// Arguments of `api grants`.
#[derive(Debug, Args)]
pub(crate) struct GrantsArguments {
    #[command(flatten)]
    pub(crate) identity: IdentityArguments,
    #[command(flatten)]
    pub(crate) flags: ApiFlags,
}

/// An identity, as its tokens describe it.
#[derive(Debug, Args)]
pub(crate) struct IdentityArguments {
    /// The identity, as the issuer's tokens name it
    #[arg(long = "as", value_name = "SUBJECT")]
    pub(crate) subject: String,
    /// The issuer of its tokens; may be left out where only one is configured
    #[arg(long, value_name = "URL")]
    pub(crate) issuer: Option<String>,
    /// A further claim of its tokens, such as `groups=["operators"]`; can be repeated
    #[arg(long = "claim", value_name = "NAME=VALUE", value_parser = claim)]
    pub(crate) claims: Vec<(String, String)>,
    /// A table for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

/// Splits a claim into name and value.
fn claim(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be written as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Debug, Args)]
pub(crate) struct RekeyArguments {
    /// First remove every pull secret that is encrypted with this key, which is lost; its resources need the
    /// content again
    #[arg(long, value_name = "ID")]
    pub(crate) remove_lost_key: Option<String>,
    /// Lines for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: ApiFlags,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArguments {
    /// Change nothing: succeed if the schema is up to date, else list what is missing and exit with 1
    #[arg(long)]
    pub(crate) check: bool,
    /// Lines for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: ApiFlags,
}

#[derive(Debug, Args)]
pub(crate) struct RestoredArguments {
    /// A line for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: ApiFlags,
}
