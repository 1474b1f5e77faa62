//! `pull-secret sentinel` and `pull-secret events`: flags as their tables of settings have them.

use clap::{Args, Subcommand};
use daemon::settings::Table;
use daemon::settings::flags::{Flags, REQUIRED};
use sentinel::settings::table::{EVENTS, TABLE};

use super::context::ContextFlag;
use super::output::{ConfigDumpArguments, OutputFormat};

daemon::flags!(pub(crate) SentinelFlags, named(TABLE, REQUIRED));
daemon::flags!(pub(crate) EventsFlags, named(EVENTS, REQUIRED));
daemon::flags!(pub(crate) CheckedEventsFlags, named(EVENTS, "required if a broker is checked"));

const fn named(table: Table, required: &'static str) -> Flags {
    let config = Some("[env: HYPERFLEET_CONFIG] [default: /etc/hyperfleet/config.yaml, if there]");
    Flags { table, config, repeated: &[], required }
}

/// Arguments of `sentinel`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SentinelArguments {
    #[command(subcommand)]
    pub(crate) command: Option<SentinelCommand>,
    /// Publish nothing: say of each resource what would be decided if the Sentinel began now, and why
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// With --dry-run: of this resource only
    #[arg(long, value_name = "ID", requires = "dry_run")]
    pub(crate) id: Option<String>,
    /// With --dry-run: lines for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t, requires = "dry_run")]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: SentinelFlags,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SentinelCommand {
    /// Print the settings in effect, each with its source, without credentials
    ///
    /// Exits with 2 and all faults if the Sentinel would refuse them.
    ConfigDump(ConfigDumpArguments<SentinelFlags>),
}

/// Commands about events.
#[derive(Debug, Subcommand)]
pub(crate) enum EventsCommand {
    /// Subscribe to a topic and print its events, each acknowledged, until Ctrl-C
    ///
    /// Says when the broker is unavailable, and retries. Nothing is left at the broker, unless --broker-subscription-id names a
    /// subscription: that stays, and events wait in it.
    Tail(TailArguments),
    /// Look at the dead letters of a subscription, publish them again, or delete them
    #[command(arg_required_else_help = true)]
    DeadLetters {
        #[command(subcommand)]
        command: DeadLettersCommand,
    },
}

/// Commands about dead letters.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadLettersCommand {
    /// List them: id, reason, event
    List(LettersArguments),
    /// Print them in full, without members of their data that could hold a credential
    Show(SomeLettersArguments),
    /// Publish them again
    ///
    /// Every subscription of the topic receives them; what is no event stays a dead letter.
    Replay(SomeLettersArguments),
    /// Delete them; without --yes, print which
    Drop(DropArguments),
}

/// Arguments of `events dead-letters list`.
#[derive(Debug, Args)]
pub(crate) struct LettersArguments {
    /// Subscription whose dead letters they are, such as `pullsecret-adapter-sub`
    pub(crate) subscription: String,
    /// RabbitMQ: first part of the queue's name, where the adapter has `spec.broker.queue`
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// Seconds without a dead letter after which there are no more
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub(crate) idle: u64,
    /// Lines for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) context: ContextFlag,
    #[command(flatten)]
    pub(crate) flags: EventsFlags,
}

/// Arguments of `events dead-letters show` and `replay`.
#[derive(Debug, Args)]
pub(crate) struct SomeLettersArguments {
    #[command(flatten)]
    pub(crate) letters: LettersArguments,
    /// Only these, by their ids; all without it
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

/// Arguments of `events dead-letters drop`.
#[derive(Debug, Args)]
pub(crate) struct DropArguments {
    #[command(flatten)]
    pub(crate) letters: LettersArguments,
    /// The ones to delete, by their ids
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) ids: Vec<String>,
    /// Delete all
    #[arg(long)]
    pub(crate) all: bool,
    /// Delete, and not only print which would be deleted
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Arguments of `events tail`.
#[derive(Debug, Args)]
pub(crate) struct TailArguments {
    /// Lines for people, or each event in full as one line of JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    /// End after so many events
    #[arg(long, value_name = "NUMBER")]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) context: ContextFlag,
    #[command(flatten)]
    pub(crate) flags: EventsFlags,
}
