//! Flags of `pull-secret rotate`.

use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::context::ContextFlag;
use super::fleet::ApiFlags;
use super::output::OutputFormat;

#[derive(Debug, Subcommand)]
pub(crate) enum RotateCommand {
    /// Print which clusters a rotation would rotate in which wave, which not and why, its cost and its time
    ///
    /// Changes nothing. With --save the plan is kept in a file for `rotate start`; it holds digests and no content. A cluster whose
    /// pull secret is in a Secret of Kubernetes is not rotated: change that Secret. Exits with 0 if there is something to rotate,
    /// with 1 if not, with 75 if the API cannot be reached.
    Plan(RotatePlanArguments),
    /// Start a rotation by a plan: write, wait until the wave is available, go on with the next
    ///
    /// Without --yes it prints the plan and changes nothing. The state is kept in `ConfigMaps` of the namespace of Jobs: `rotate
    /// status`, `pause` and `abort` work from anywhere, and `rotate resume` goes on after a pause, a stop, a signal or a crash. A
    /// cluster that was changed since the plan is not written. Exits with 0 when all waves are done, with 1 if it
    /// ended before, with 75 if the API cannot be reached at the start.
    Start(Box<RotateStartArguments>),
    /// Go on with a rotation that was paused, stopped or interrupted
    ///
    /// Clusters that have the new content are not written again. Exits as `rotate start` does.
    Resume(Box<RotateResumeArguments>),
    /// End the process that works on a rotation, so that `rotate resume` can go on
    ///
    /// It ends within seconds; clusters that were written are reconciled all the same.
    Pause(RotateNameArguments),
    /// Give a rotation up; clusters that were rotated keep their new pull secret
    ///
    /// Without --yes it prints what would remain, and changes nothing. To go back, plan a rotation with the old files.
    Abort(RotateAbortArguments),
    /// Print a rotation's waves, numbers of clusters, rate, time left, failures by reason, and who started it; or list all
    Status(RotateStatusArguments),
}

/// The new pull secrets, and the key of their digests.
#[derive(Debug, Args)]
pub(crate) struct SourceFlags {
    /// The new pull secrets: a file for all clusters, or a directory with a file CLUSTER-ID.json for each
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) from: PathBuf,
    #[arg(
        long,
        value_name = "FILE",
        help = "The API's digest key (its pull_secret.digest_key_file), by which contents are compared [env: DIGEST_KEY_FILE]"
    )]
    pub(crate) digest_key_file: Option<PathBuf>,
}

/// The cluster with the records of rotations.
#[derive(Debug, Args)]
pub(crate) struct RecordFlags {
    #[arg(long, value_name = "FILE", help = "The management cluster, which has the record [env: KUBECONFIG]")]
    pub(crate) kubeconfig: Option<PathBuf>,
    #[arg(
        long,
        value_name = "NAMESPACE",
        help = format!("The namespace of the record: that of Jobs [default: {}]", adapter::config::JOB_NAMESPACE)
    )]
    pub(crate) namespace: Option<String>,
}

/// Arguments of `rotate plan`.
#[derive(Debug, Args)]
pub(crate) struct RotatePlanArguments {
    /// The clusters, by their ids or names
    #[arg(required_unless_present = "search", conflicts_with = "search", value_name = "CLUSTER")]
    pub(crate) clusters: Vec<String>,
    /// All clusters of a search in the API's language, such as `labels.region = 'us-east1'`
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) search: Option<String>,
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    #[command(flatten)]
    pub(crate) api: ApiFlags,
    /// Number of clusters in the first wave, of which none may fail
    #[arg(long, value_name = "COUNT", default_value = "5")]
    pub(crate) first_wave: NonZeroUsize,
    /// Number of clusters in each further wave
    #[arg(long, value_name = "COUNT", default_value = "100")]
    pub(crate) wave_size: NonZeroUsize,
    /// Maximum number of clusters that are written in a minute; the default is half of what a project's quota of 600 writes
    /// allows
    #[arg(long, value_name = "COUNT", default_value_t = super::fleet::default_rate())]
    pub(crate) per_minute: NonZeroU16,
    /// Number of clusters that may fail in each wave after the first; one more stops the rotation
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) max_failures: usize,
    /// Seconds after the last write of a wave after which clusters that are not available count as failed
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pub(crate) wave_timeout: u32,
    /// Keep the plan in this new file
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

/// Arguments of `rotate start`.
#[derive(Debug, Args)]
pub(crate) struct RotateStartArguments {
    /// A new name for the rotation
    pub(crate) name: String,
    /// The file that `rotate plan --save` has written
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) work: WorkFlags,
}

/// Arguments of `rotate resume`.
#[derive(Debug, Args)]
pub(crate) struct RotateResumeArguments {
    /// The name of the rotation
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) work: WorkFlags,
}

/// Flags of a process that works on a rotation.
#[derive(Debug, Args)]
pub(crate) struct WorkFlags {
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    #[command(flatten)]
    pub(crate) api: ApiFlags,
    #[command(flatten)]
    pub(crate) record: RecordFlags,
    /// Rotate, and not only print what would be rotated
    #[arg(long)]
    pub(crate) yes: bool,
    /// Lines for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

/// Arguments of `rotate pause`.
#[derive(Debug, Args)]
pub(crate) struct RotateNameArguments {
    /// The name of the rotation
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) context: ContextFlag,
    #[command(flatten)]
    pub(crate) record: RecordFlags,
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

/// Arguments of `rotate abort`.
#[derive(Debug, Args)]
pub(crate) struct RotateAbortArguments {
    #[command(flatten)]
    pub(crate) rotation: RotateNameArguments,
    /// Abort, and not only print what would remain
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Arguments of `rotate status`.
#[derive(Debug, Args)]
pub(crate) struct RotateStatusArguments {
    /// The name of the rotation; without it all are listed
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) context: ContextFlag,
    #[command(flatten)]
    pub(crate) record: RecordFlags,
    /// A page for people, or JSON: an object a line
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}
