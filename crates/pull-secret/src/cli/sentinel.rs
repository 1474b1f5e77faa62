//! `pull-secret sentinel` and `pull-secret events`: flags as their tables of settings have them.

use clap::{Args, Subcommand};
use daemon::settings::Table;
use daemon::settings::flags::Flags;
use sentinel::settings::table::{EVENTS, TABLE};

daemon::flags!(pub(crate) SentinelFlags, named(TABLE));
daemon::flags!(pub(crate) EventsFlags, named(EVENTS));

const fn named(table: Table) -> Flags {
    let config = Some("[env: HYPERFLEET_CONFIG] [default: /etc/hyperfleet/config.yaml, if there]");
    Flags { table, config, repeated: &[] }
}

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

/// Commands about events.
#[derive(Debug, Subcommand)]
pub(crate) enum EventsCommand {
    /// Subscribe to a topic and print its events, each acknowledged, until Ctrl-C
    ///
    /// The subscription stays when this ends, and events wait in it: take the same name again, or delete it at the broker.
    Tail(TailArguments),
    /// Publish the dead letters of a subscription again
    ///
    /// Ends when none has arrived for a while. Every subscription of the topic receives them; what is no event stays a dead letter.
    Replay(ReplayArguments),
}

/// Arguments of `events replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// Subscription whose dead letters are published again, such as `pullsecret-adapter-sub`
    pub(crate) subscription: String,
    /// RabbitMQ: first part of the queue's name, where the adapter has `spec.broker.queue`
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// Seconds without a dead letter after which it ends
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub(crate) idle: u64,
    #[command(flatten)]
    pub(crate) flags: EventsFlags,
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
