//! Flags of `pull-secret explain`, `status`, `retry` and `sweep`, and of the API that they read.

use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::context::ContextFlag;
use super::output::OutputFormat;
use super::store::StoreFlags;

/// Seconds that the adapter has to report a change; a pass that is not delayed reports within a few.
const STALE_AFTER: u32 = 30;

#[derive(Debug, Subcommand)]
pub(crate) enum ExplainCommand {
    /// Print why a cluster's pull secret is (not) available
    ///
    /// Exits with 0 if it is available and everything that was looked at agrees, with 1 if not, with 75 if the API cannot be
    /// reached. No content is shown, only digests.
    Cluster(ExplainArguments),
}

/// Arguments of `explain cluster`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// The cluster's id or name
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) api: ApiFlags,
    #[arg(
        long,
        value_name = "FILE",
        help = "Look at Job, pods and Secret in this cluster too; without it and without the variable, only what is reported is shown [env: KUBECONFIG]"
    )]
    pub(crate) kubeconfig: Option<PathBuf>,
    #[arg(
        long,
        value_name = "NAMESPACE",
        help = format!("The namespace of Jobs and of the adapter's Lease, where the report does not name it [default: {}]", adapter::config::JOB_NAMESPACE)
    )]
    pub(crate) namespace: Option<String>,
    #[arg(
        long,
        value_name = "FILE",
        help = "Show the cluster's registry credentials too: the configuration of the credentials service [env: HYPERFLEET_CREDENTIALS_CONFIG] [default: /etc/hyperfleet/credentials.yaml, if there]"
    )]
    pub(crate) credentials_config: Option<PathBuf>,
    /// Seconds that the adapter has to report a change before it counts as stalled
    #[arg(long, value_name = "SECONDS", default_value_t = STALE_AFTER)]
    pub(crate) stale_after: u32,
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    pub(crate) api: ApiFlags,
    /// Only these clusters, in the API's search language, such as `labels.region = 'us-east1'`
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) search: Option<String>,
    /// Instead of clusters, list the causes for which clusters are not available: that of most clusters first
    #[arg(long)]
    pub(crate) why: bool,
    /// List the causes anew every two seconds, until it is stopped
    #[arg(long, requires = "why")]
    pub(crate) watch: bool,
    /// Seconds that the adapter has to report a change before it counts as stalled
    #[arg(long, value_name = "SECONDS", default_value_t = STALE_AFTER)]
    pub(crate) stale_after: u32,
    /// A table for people, or JSON: an object a line, the summary last; with --why one object
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

/// Arguments of `retry`.
#[derive(Debug, Args)]
pub(crate) struct RetryArguments {
    /// The clusters, by their ids or names
    #[arg(required_unless_present = "search", conflicts_with = "search", value_name = "CLUSTER")]
    pub(crate) clusters: Vec<String>,
    /// All clusters of a search in the API's language, such as
    /// `status.conditions.PullsecretSuccessful.reason = 'PermissionDenied'`
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) search: Option<String>,
    #[command(flatten)]
    pub(crate) api: ApiFlags,
    #[arg(long, value_name = "FILE", help = "The management cluster, whose Jobs are retried [env: KUBECONFIG]")]
    pub(crate) kubeconfig: Option<PathBuf>,
    #[arg(
        long,
        value_name = "NAMESPACE",
        help = format!("The namespace of Jobs, where a report does not name it [default: {}]", adapter::config::JOB_NAMESPACE)
    )]
    pub(crate) namespace: Option<String>,
    /// Maximum number of retries in a minute; the default is half of what a project's quota of 600 writes allows
    #[arg(long, value_name = "COUNT", default_value_t = default_rate())]
    pub(crate) rate: NonZeroU16,
    /// Retry, and not only print what would be retried
    #[arg(long)]
    pub(crate) yes: bool,
    /// Lines for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

pub(super) fn default_rate() -> NonZeroU16 {
    NonZeroU16::new(diagnosis::retry::RATE).unwrap_or(NonZeroU16::MIN)
}

/// Arguments of `sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    pub(crate) api: ApiFlags,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    /// Kubeconfig of the management cluster, whose Kubernetes Secrets are compared too
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Only the secrets of the cluster with this id or name, also if the API does not know the id
    #[arg(long, value_name = "CLUSTER")]
    pub(crate) cluster: Option<String>,
    /// Delete the secrets of clusters that the API does not know too; only where no other fleet uses the place
    #[arg(long)]
    pub(crate) unknown: bool,
    /// Delete the secrets of living clusters too that the adapter's report does not list: after a restore of the API's database,
    /// those at newer destinations
    #[arg(long)]
    pub(crate) not_listed: bool,
    /// Maximum number of secrets to delete; with more of them, nothing is deleted
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    pub(crate) max: usize,
    /// Print what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Lines for people, or one JSON object a line, the summary last
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

/// Address and credentials of the API.
#[derive(Debug, Args)]
pub(crate) struct ApiFlags {
    #[command(flatten)]
    pub(crate) context: ContextFlag,
    #[arg(
        long,
        value_name = "URL",
        help = "Address of the HyperFleet API [env: HYPERFLEET_API_BASE_URL] [default: http://localhost:8000]"
    )]
    pub(crate) api: Option<String>,
    #[arg(
        long,
        value_name = "FILE",
        help = "The file with the bearer token, where the API asks for one [env: HYPERFLEET_API_AUTH_TOKEN_PATH]"
    )]
    pub(crate) token_file: Option<PathBuf>,
    #[arg(long, value_name = "FILE", help = "The certificate authorities to trust, PEM [env: HYPERFLEET_API_CA_FILE]")]
    pub(crate) ca_file: Option<PathBuf>,
    #[arg(
        long,
        value_name = "HOST",
        help = "The one host, beside this machine, to which the token may be sent over plain HTTP [env: HYPERFLEET_API_PLAIN_HTTP_HOST]"
    )]
    pub(crate) plain_http_host: Option<String>,
}
