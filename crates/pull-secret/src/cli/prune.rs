//! Flags of `pull-secret prune`.

use std::num::{NonZeroU16, NonZeroUsize};

use clap::Args;
use pull_secret_job::settings::TABLE;

use super::fleet::ApiFlags;
use super::output::OutputFormat;
use super::store::StoreFlags;

/// Arguments of `prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArguments {
    /// Only the secrets of these clusters, by their ids or names; without any and without --search, of the whole fleet
    #[arg(conflicts_with = "search", value_name = "CLUSTER")]
    pub(crate) clusters: Vec<String>,
    /// Only the secrets of clusters of a search in the API's language, such as `labels.region = 'us-east1'`
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) search: Option<String>,
    #[command(flatten)]
    pub(crate) api: ApiFlags,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    /// Number of versions to keep, the one in use included: what the Jobs keep (`RETAIN_VERSIONS`); required with --yes
    #[arg(long, value_name = "COUNT", default_value = retained())]
    pub(crate) retain_versions: NonZeroUsize,
    /// Maximum number of writes in a minute; the default is half of a project's quota of 600
    #[arg(long, value_name = "COUNT", default_value = "300")]
    pub(crate) rate: NonZeroU16,
    /// Destroy, and not only print what would be destroyed
    #[arg(long, requires = "retain_versions")]
    pub(crate) yes: bool,
    /// Lines for people, or one JSON object a line, the summary last
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

/// The number of versions that a run of the Job keeps.
fn retained() -> &'static str {
    TABLE.all().into_iter().find(|row| row.path == "retain_versions").map_or("", |row| row.default)
}
