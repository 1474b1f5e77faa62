//! Flags of `pull-secret doctor`.

use std::path::PathBuf;

use clap::Args;

use super::fleet::ApiFlags;
use super::output::OutputFormat;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    pub(crate) api: ApiFlags,
    #[arg(
        long,
        value_name = "FILE",
        help = "Kubeconfig of the management cluster, in which Jobs run; without it and without the variable, Kubernetes is not checked [env: KUBECONFIG]"
    )]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The namespace of Jobs and of the adapter's Lease
    #[arg(long, value_name = "NAMESPACE", default_value = "hyperfleet-system")]
    pub(crate) namespace: String,
    /// Lines for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}
