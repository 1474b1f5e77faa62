//! Flags of `pull-secret doctor`.

use std::path::PathBuf;

use clap::Args;

use super::fleet::ApiFlags;
use super::output::OutputFormat;
use super::sentinel::CheckedEventsFlags;
use super::store::StoreFlags;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    pub(crate) api: ApiFlags,
    #[arg(
        long,
        value_name = "FILE",
        help = "Kubeconfig of the management cluster, in which Jobs run; in a Pod its service account will do [env: KUBECONFIG]"
    )]
    pub(crate) kubeconfig: Option<PathBuf>,
    #[arg(
        long,
        value_name = "NAMESPACE",
        help = format!("The namespace of Jobs and of the adapter's Lease [default: {}]", adapter::config::JOB_NAMESPACE)
    )]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    #[command(flatten)]
    pub(crate) broker: CheckedEventsFlags,
    #[arg(
        long,
        value_name = "FILE",
        help = "Configuration of the credentials service [env: HYPERFLEET_CREDENTIALS_CONFIG] [default: /etc/hyperfleet/credentials.yaml, if there]"
    )]
    pub(crate) credentials_config: Option<PathBuf>,
    /// Lines for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}
