//! Flags of `pull-secret explain` and `status`, and of the API that they read.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::OutputFormat;

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
    /// The cluster's id
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) api: ApiFlags,
    #[arg(
        long,
        value_name = "FILE",
        help = "Look at Job, pods and Secret in this cluster too; without it and without the variable, only what is reported is shown [env: KUBECONFIG]"
    )]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The namespace of Jobs, where the report does not name it
    #[arg(long, value_name = "NAMESPACE", default_value = "hyperfleet-system")]
    pub(crate) namespace: String,
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
    /// A table for people, or one JSON object a line, the summary last
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

/// Address and credentials of the API.
#[derive(Debug, Args)]
pub(crate) struct ApiFlags {
    #[arg(
        long,
        value_name = "URL",
        help = "Where the HyperFleet API is [env: HYPERFLEET_API_BASE_URL] [default: http://localhost:8000]"
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
}
