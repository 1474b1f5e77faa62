//! `pull-secret context`, and the flag that chooses a context.

use clap::{Args, Subcommand};

use super::output::OutputFormat;

/// The context that a command uses.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ContextFlag {
    #[arg(
        long,
        value_name = "NAME",
        help = "Use this context for what neither flags nor variables give [env: PULL_SECRET_CONTEXT] [default: that of `pull-secret context use`]"
    )]
    pub(crate) context: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// List the contexts; a star marks the one in use
    List(ContextOutput),
    /// Print the values of a context
    Show {
        /// The context; without it, the one in use
        name: Option<String>,
        #[command(flatten)]
        format: ContextOutput,
    },
    /// Use a context where neither --context nor `PULL_SECRET_CONTEXT` names another
    Use {
        /// The context
        name: String,
        #[command(flatten)]
        format: ContextOutput,
    },
    /// Make a context, or change the given values of one; an empty value removes it
    Set(Box<SetArguments>),
    /// Delete a context
    Delete {
        /// The context
        name: String,
        #[command(flatten)]
        format: ContextOutput,
    },
}

/// Output of the commands about contexts.
#[derive(Debug, Args)]
pub(crate) struct ContextOutput {
    /// Lines for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

/// Arguments of `context set`.
#[derive(Debug, Args)]
pub(crate) struct SetArguments {
    /// The context
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) values: ContextValues,
    #[command(flatten)]
    pub(crate) format: ContextOutput,
}

/// Values of a context.
#[derive(Debug, Args)]
pub(crate) struct ContextValues {
    /// Address of the HyperFleet API
    #[arg(long, value_name = "URL")]
    pub(crate) api: Option<String>,
    /// The file with the bearer token
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<String>,
    /// The certificate authorities to trust, PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<String>,
    /// The one host, beside this machine, to which the token may be sent over plain HTTP
    #[arg(long, value_name = "HOST")]
    pub(crate) plain_http_host: Option<String>,
    /// Kubeconfig of the management cluster
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<String>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(crate) kubernetes_context: Option<String>,
    /// The namespace of Jobs and of the adapter's Lease
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Google Cloud project of the stored secrets
    #[arg(long, value_name = "PROJECT")]
    pub(crate) project: Option<String>,
    /// Location of regional secrets
    #[arg(long, value_name = "LOCATION")]
    pub(crate) location: Option<String>,
    /// Configuration file with the broker's settings, such as the Sentinel's
    #[arg(long, value_name = "FILE")]
    pub(crate) broker_config: Option<String>,
    /// Message broker: rabbitmq or googlepubsub
    #[arg(long, value_name = "TYPE")]
    pub(crate) broker_type: Option<String>,
    /// Topic that the Sentinel publishes to
    #[arg(long, value_name = "TOPIC")]
    pub(crate) broker_topic: Option<String>,
}
