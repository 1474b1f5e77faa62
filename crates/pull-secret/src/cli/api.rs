//! `pull-secret api`: its commands, and its flags as the table of settings has them.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, Subcommand};
use daemon::settings::{Kind, Row};
use hyperfleet_api::settings::table::TABLE;

/// The flag that names the configuration file.
const CONFIG: &str = "config";

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

/// The flags that were given, by their names.
#[derive(Debug, Default)]
pub(crate) struct ApiFlags(pub(crate) BTreeMap<&'static str, String>);

impl Args for ApiFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        let config = Arg::new(CONFIG).long(CONFIG).value_name("FILE").action(ArgAction::Set).help(
            "The configuration file, YAML [env: HYPERFLEET_CONFIG] [default: /etc/hyperfleet/config.yaml or \
             ./configs/config.yaml, if there]",
        );
        TABLE.rows.iter().filter_map(argument).fold(command.arg(config), clap::Command::arg)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ApiFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let names = TABLE.rows.iter().filter_map(|row| row.flag).chain([CONFIG]);
        self.0.extend(names.filter_map(|name| Some((name, matches.get_one::<String>(name)?.clone()))));
        Ok(())
    }
}

fn argument(row: &'static Row) -> Option<Arg> {
    let flag = row.flag?;
    let default = if row.default.is_empty() { String::new() } else { format!(" [default: {}]", row.default) };
    let help = format!("{} [env: {}]{default}", row.help, (TABLE.variable)(row.path));
    let argument = Arg::new(flag).long(flag).help(help).action(ArgAction::Set).value_name(row.kind.placeholder());
    Some(match row.kind {
        Kind::Switch => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => argument,
    })
}
