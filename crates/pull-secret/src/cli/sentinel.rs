//! `pull-secret sentinel` and `pull-secret events`: flags as their tables of settings have them.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, Subcommand};
use daemon::settings::{Kind, Row, Table};
use sentinel::settings::table::{EVENTS, TABLE, variable};

/// The flag that names the configuration file.
const CONFIG: &str = "config";

/// Arguments of `sentinel`.
#[derive(Debug, Args)]
pub(crate) struct SentinelArguments {
    /// Publish nothing: say of each resource what would be decided if the Sentinel began now, and why
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// With --dry-run: of this resource only
    #[arg(long, value_name = "ID", requires = "dry_run")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) flags: SentinelFlags,
}

/// What is done with events.
#[derive(Debug, Subcommand)]
pub(crate) enum EventsCommand {
    /// Subscribe to a topic and print its events, each acknowledged, until Ctrl-C
    ///
    /// The subscription stays when this ends, and events wait in it: take the same name again, or delete it at the broker.
    Tail(TailArguments),
}

/// Arguments of `events tail`.
#[derive(Debug, Args)]
pub(crate) struct TailArguments {
    /// Print each event in full, as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// End after so many events
    #[arg(long, value_name = "NUMBER")]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) flags: EventsFlags,
}

/// The flags that were given, by their names.
#[derive(Debug, Default)]
pub(crate) struct SentinelFlags(pub(crate) BTreeMap<&'static str, String>);

/// The flags that were given, by their names.
#[derive(Debug, Default)]
pub(crate) struct EventsFlags(pub(crate) BTreeMap<&'static str, String>);

/// Makes a set of flags of a table of settings.
macro_rules! flags {
    ($flags:ident, $table:expr) => {
        impl Args for $flags {
            fn augment_args(command: clap::Command) -> clap::Command {
                augment(&$table, command)
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                Self::augment_args(command)
            }
        }

        impl FromArgMatches for $flags {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self(given(&$table, matches)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                self.0.extend(given(&$table, matches));
                Ok(())
            }
        }
    };
}

flags!(SentinelFlags, TABLE);
flags!(EventsFlags, EVENTS);

fn augment(table: &'static Table, command: clap::Command) -> clap::Command {
    let config =
        Arg::new(CONFIG).long(CONFIG).short('c').value_name("FILE").action(ArgAction::Set).help(
            "The configuration file, YAML [env: HYPERFLEET_CONFIG] [default: /etc/hyperfleet/config.yaml, if there]",
        );
    table.rows.iter().filter_map(argument).fold(command.arg(config), clap::Command::arg)
}

fn given(table: &'static Table, matches: &ArgMatches) -> BTreeMap<&'static str, String> {
    let names = table.rows.iter().filter_map(|row| row.flag).chain([CONFIG]);
    names.filter_map(|name| Some((name, matches.get_one::<String>(name)?.clone()))).collect()
}

fn argument(row: &'static Row) -> Option<Arg> {
    let flag = row.flag?;
    let default = if row.default.is_empty() { String::new() } else { format!(" [default: {}]", row.default) };
    let help = format!("{} [env: {}]{default}", row.help, variable(row.path));
    let argument = Arg::new(flag).long(flag).help(help).action(ArgAction::Set).value_name(row.kind.placeholder());
    Some(match row.kind {
        Kind::Switch => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => argument,
    })
}
