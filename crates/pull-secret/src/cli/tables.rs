//! Flags as a table of settings has them.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches};
use daemon::settings::{Kind, Row, Table};

/// The flag that names the configuration file.
const CONFIG: &str = "config";

/// A program's settings as flags: its table, and how its configuration file is found.
pub(super) struct Flags {
    pub(super) table: Table,
    /// The end of the help of `--config`.
    pub(super) config: &'static str,
}

/// Makes a set of flags of a program's settings.
macro_rules! flags {
    ($name:ident, $flags:expr) => {
        /// The flags that were given, by their names.
        #[derive(Debug, Default)]
        pub(crate) struct $name(pub(crate) std::collections::BTreeMap<&'static str, String>);

        impl clap::Args for $name {
            fn augment_args(command: clap::Command) -> clap::Command {
                $crate::cli::tables::augment(&$flags, command)
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                Self::augment_args(command)
            }
        }

        impl clap::FromArgMatches for $name {
            fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self($crate::cli::tables::given(&$flags, matches)))
            }

            fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
                self.0.extend($crate::cli::tables::given(&$flags, matches));
                Ok(())
            }
        }
    };
}
pub(super) use flags;

/// Adds the flags of a program's settings to its command.
pub(super) fn augment(flags: &Flags, command: clap::Command) -> clap::Command {
    let help = format!("The configuration file, YAML {}", flags.config);
    let config = Arg::new(CONFIG).long(CONFIG).short('c').value_name("FILE").action(ArgAction::Set).help(help);
    let arguments = flags.table.rows.iter().filter_map(|row| argument(row, flags.table.variable));
    arguments.fold(command.arg(config), clap::Command::arg)
}

/// The flags that were given.
pub(super) fn given(flags: &Flags, matches: &ArgMatches) -> BTreeMap<&'static str, String> {
    let names = flags.table.rows.iter().filter_map(|row| row.flag).chain([CONFIG]);
    names.filter_map(|name| Some((name, matches.get_one::<String>(name)?.clone()))).collect()
}

fn argument(row: &'static Row, variable: fn(&str) -> String) -> Option<Arg> {
    let flag = row.flag?;
    let default = if row.default.is_empty() { String::new() } else { format!(" [default: {}]", row.default) };
    let help = format!("{} [env: {}]{default}", row.help, variable(row.path));
    let argument = Arg::new(flag).long(flag).help(help).action(ArgAction::Set).value_name(row.kind.placeholder());
    Some(match row.kind {
        Kind::Switch => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => argument,
    })
}
