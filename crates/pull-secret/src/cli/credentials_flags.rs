//! Flags that the commands of `pull-secret credentials` share, and the rules of a rotation.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use credentials::credential::RegistryName;
use credentials::rotation::{RotationName, Window};
use credentials::settings::table::TABLE;
use daemon::settings::duration;
use daemon::settings::flags::{Flags, REQUIRED};

use super::output::OutputFormat;

const FLAGS: Flags = Flags {
    table: TABLE,
    config: Some("[env: HYPERFLEET_CREDENTIALS_CONFIG] [default: /etc/hyperfleet/credentials.yaml, if there]"),
    repeated: &[],
    required: REQUIRED,
};

daemon::flags!(pub(crate) CredentialsFlags, FLAGS);

/// The person behind an order, and their reason.
#[derive(Debug, Args)]
pub(crate) struct OrderFlags {
    /// The reason, in your words; it is recorded
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// The person who orders it; recorded [default: the variable USER]
    #[arg(long = "as", value_name = "PERSON")]
    pub(crate) actor: Option<String>,
}

/// The clusters of a rotation, and its rules.
#[derive(Debug, Args)]
pub(crate) struct RotationRules {
    /// A new name for the rotation
    pub(crate) name: RotationName,
    /// The registry
    #[arg(long, value_name = "NAME")]
    pub(crate) registry: RegistryName,
    /// Only clusters of a search in the API's language, such as `labels.region = 'us-east1'`
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) search: Option<String>,
    /// A first group: its clusters come before all others, and none may fail; can be repeated, in order
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) first: Vec<String>,
    /// Maximum number of clusters that are rotated at the same time
    #[arg(long, value_name = "COUNT", default_value = "10")]
    pub(crate) max_concurrency: NonZeroU32,
    /// Number of clusters after the first groups that may fail; one more stops the rotation
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) max_failures: u64,
    /// Time for which a cluster must use its new credential before another one takes its place
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = time)]
    pub(crate) min_success_time: Duration,
    /// Time in which a cluster must use its new credential, or else it has failed
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = time)]
    pub(crate) progress_deadline: Duration,
    /// The hours of a day, in UTC, in which rotations of clusters begin, such as `22:00-06:00`
    #[arg(long, value_name = "FROM-TO")]
    pub(crate) window: Option<Window>,
    /// Begin no more clusters than this many calls of the registry a minute pay for; a cluster takes nine, or three from AMS
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_calls_per_minute: Option<NonZeroU32>,
}

/// Arguments of `credentials rotation start`.
#[derive(Debug, Args)]
pub(crate) struct RotationStartArguments {
    #[command(flatten)]
    pub(crate) rules: RotationRules,
    #[command(flatten)]
    pub(crate) order: OrderFlags,
    /// Start, and not only print the plan
    #[arg(long)]
    pub(crate) yes: bool,
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Reads a duration.
pub(crate) fn time(text: &str) -> Result<Duration, &'static str> {
    duration::parse(text).ok_or(duration::MUST)
}
