//! `pull-secret local`, `explain` and `status`: the fleet plane on one machine, and what to ask of any.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::OutputFormat;

#[derive(Debug, Subcommand)]
pub(crate) enum LocalCommand {
    /// Run the whole fleet plane in this process: API, Sentinel, broker, adapter, Secret Manager and Kubernetes
    ///
    /// Jobs run as processes of this program. Without a data directory everything is forgotten at the end. Where each part
    /// is, is printed when all are ready: a table, and `export` lines for kubectl, curl and this program. Ctrl-C ends it in
    /// order, a second Ctrl-C at once. For development and tests: nobody is asked who they are, nothing is encrypted.
    Up(Box<UpArguments>),
    /// Show the main job on embedded parts: a new cluster, a rotation, a repair, a deletion
    Demo(DemoArguments),
}

/// Arguments of `local up`.
#[derive(Debug, Args)]
pub(crate) struct UpArguments {
    /// Keep everything in this directory and go on with what it holds; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The API's port; the other parts take the eight ports behind it. 0 takes free ones, in a kept directory the same as before
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    pub(crate) port: u16,
    /// Use this cluster instead of the emulator; it must be able to run the image, and to reach the other parts
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    #[arg(
        long,
        value_name = "URL",
        help = "Use this broker instead of the embedded one: `amqp://HOST:PORT/VHOST` or `pubsub://PROJECT`; an address with a password only as a variable [env: LOCAL_BROKER]"
    )]
    pub(crate) broker: Option<String>,
    #[arg(
        long,
        value_name = "URL",
        help = "Use this PostgreSQL instead of a file: `postgresql://USER@HOST:PORT/NAME`; with a password only as a variable [env: LOCAL_DATABASE_URL]"
    )]
    pub(crate) database_url: Option<String>,
    /// Use this Secret Manager instead of the embedded emulator: `google`, or an emulator's HOST:PORT
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) secret_manager: Option<String>,
    /// The image that Jobs run
    #[arg(long, value_name = "IMAGE", default_value = "quay.io/openshift-hyperfleet/pull-secret:latest")]
    pub(crate) image: String,
    /// The least severe events that are logged
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: String,
    /// For people (log and table on stderr, `export` lines on stdout), or one JSON object a line on stdout
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: StreamFormat,
}

/// Arguments of `local demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Show the log too, from this level on
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
    /// A story for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: StreamFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExplainCommand {
    /// Why is this cluster's pull secret (not) available?
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

/// Which API, and as whom.
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

/// How something that goes on is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StreamFormat {
    /// Text, for people
    #[default]
    Text,
    /// One JSON object a line, for programs
    Json,
}
