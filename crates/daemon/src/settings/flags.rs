//! Settings as flags of clap.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches};

use super::row::{Kind, Row, Table};

/// The flag that names the configuration file.
pub const CONFIG: &str = "config";

/// The end of the help of a setting without which the program does not start.
pub const REQUIRED: &str = "required";

/// A program's settings as flags.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    /// The settings.
    pub table: Table,
    /// End of the help of `--config`: variable and default; `None` if there is no configuration file.
    pub config: Option<&'static str>,
    /// Flags that may be given several times; their values are joined by commas.
    pub repeated: &'static [&'static str],
    /// End of the help of settings without a default: [`REQUIRED`], or when they are required.
    pub required: &'static str,
}

/// Declares the set of flags of a program's settings, for `#[command(flatten)]`.
#[macro_export]
macro_rules! flags {
    ($visibility:vis $name:ident, $flags:expr) => {
        /// The flags that were given, by their names.
        #[derive(Debug, Default)]
        $visibility struct $name(pub ::std::collections::BTreeMap<&'static str, String>);

        impl ::clap::Args for $name {
            fn augment_args(command: ::clap::Command) -> ::clap::Command {
                $flags.augment(command)
            }

            fn augment_args_for_update(command: ::clap::Command) -> ::clap::Command {
                Self::augment_args(command)
            }
        }

        impl ::clap::FromArgMatches for $name {
            fn from_arg_matches(matches: &::clap::ArgMatches) -> Result<Self, ::clap::Error> {
                Ok(Self($flags.given(matches)))
            }

            fn update_from_arg_matches(&mut self, matches: &::clap::ArgMatches) -> Result<(), ::clap::Error> {
                self.0.extend($flags.given(matches));
                Ok(())
            }
        }
    };
}

// === impl Flags ===

impl Flags {
    /// Adds the flags to a command.
    pub fn augment(&self, command: clap::Command) -> clap::Command {
        let config = self.config.map(|found| {
            let help = format!("Configuration file, YAML {found}");
            Arg::new(CONFIG).long(CONFIG).short('c').value_name("FILE").action(ArgAction::Set).help(help)
        });
        let arguments = self.table.scalars().into_iter().filter_map(|row| self.argument(row));
        config.into_iter().chain(arguments).fold(command, clap::Command::arg)
    }

    /// The flags that were given, by their names.
    pub fn given(&self, matches: &ArgMatches) -> BTreeMap<&'static str, String> {
        let flags = self.table.scalars().into_iter().filter_map(|row| row.flag);
        let given = flags.chain(self.config.map(|_| CONFIG)).filter_map(|flag| {
            let values: Vec<String> = matches.get_many::<String>(flag)?.cloned().collect();
            Some((flag, values.join(",")))
        });
        given.collect()
    }

    fn argument(&self, row: &'static Row) -> Option<Arg> {
        let flag = row.flag?;
        let variable = self.table.variable_of(row).map(|variable| format!(" [env: {variable}]"));
        let default = match (row.default, row.unset) {
            ("", "") => String::new(),
            ("", "required") => format!(" [{}]", self.required),
            ("", unset) => format!(" [default: {unset}]"),
            (default, _) => format!(" [default: {default}]"),
        };
        let bounds = Some(row.bounds()).filter(|bounds| !bounds.is_empty());
        let bounds = bounds.map(|bounds| format!(" [{bounds}]")).unwrap_or_default();
        let values = match row.kind {
            Kind::Choice(_) if row.placeholder.is_empty() => {
                format!(" [values: {}]", row.synopsis().replace('|', ", "))
            }
            _ => String::new(),
        };
        let help = format!("{}{}{default}{values}{bounds}", row.help, variable.unwrap_or_default());
        let action = if self.repeated.contains(&flag) { ArgAction::Append } else { ArgAction::Set };
        let argument = Arg::new(flag).long(flag).help(help).action(action).value_name(row.value_name());
        Some(match row.kind {
            Kind::Switch => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
            _ => argument,
        })
    }
}
