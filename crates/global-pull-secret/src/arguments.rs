//! The arguments of the commands beside `run`, and their result.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use fleet_model::names;

use crate::policy::{ADDITIONAL_WINS, ORIGINAL_WINS, REJECT_ALL, SKIP};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// The image, as a Pod has it; without one, all registries
    pub image: Option<String>,
    /// The hosted cluster's kubeconfig; without one the user's own
    #[arg(long, value_name = "PATH", env = "GLOBAL_PULL_SECRET_HOSTED_KUBECONFIG")]
    pub hosted_kubeconfig: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub struct MergeArguments {
    /// The original pull secret
    #[arg(long, value_name = "FILE")]
    pub original: PathBuf,
    /// An additional one; of several, the first comes before the second
    #[arg(long, value_name = "FILE", required = true)]
    pub additional: Vec<PathBuf>,
    /// The winner where both name a registry
    #[arg(long, value_parser = ["additional-wins", "original-wins"], default_value = "additional-wins")]
    pub conflict_policy: String,
    /// A registry, or a part of one, that only the original may set; may be repeated
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    pub protected_prefix: Vec<String>,
    /// Handling of an invalid entry
    #[arg(long, value_parser = ["reject-all", "skip"], default_value = "reject-all")]
    pub invalid_entries: String,
    /// Write the merged document, with its credentials, to this file (mode 0600)
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// Plan for this content of additional-pull-secret
    #[arg(long, value_name = "FILE")]
    pub additional: Option<PathBuf>,
    /// Plan for the deletion of every additional Secret
    #[arg(long, conflicts_with = "additional")]
    pub removed: bool,
    /// Do not refuse that images of this repository, or of those below it, lose their keys; may be repeated
    #[arg(long, value_name = "REPOSITORY", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// The hosted cluster's kubeconfig; without one the user's own
    #[arg(long, value_name = "PATH", env = "GLOBAL_PULL_SECRET_HOSTED_KUBECONFIG")]
    pub hosted_kubeconfig: Option<PathBuf>,
    /// The original pull secret; without it, the copy that HyperShift keeps in the hosted cluster, openshift-config/pull-secret
    #[arg(long, value_name = "FILE")]
    pub original: Option<PathBuf>,
    /// Without --original, read it from this namespace of the hosted control plane
    #[arg(long, value_name = "NAMESPACE", env = "GLOBAL_PULL_SECRET_CONTROL_PLANE_NAMESPACE")]
    pub control_plane_namespace: Option<String>,
    /// Its name there
    #[arg(long, value_name = "NAME", env = "GLOBAL_PULL_SECRET_ORIGINAL_SECRET", default_value = names::ORIGINAL_PULL_SECRET)]
    pub original_secret: String,
    /// The kubeconfig of the cluster with the hosted control plane; without one that of the hosted cluster
    #[arg(long, value_name = "PATH", env = "GLOBAL_PULL_SECRET_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,
    /// Work offline, with the images in this file, one a line; needs --original
    #[arg(long, value_name = "FILE", requires = "original")]
    pub images: Option<PathBuf>,
    /// The additional Secret that the cluster has now, offline; without it, none
    #[arg(long, value_name = "FILE", requires = "images")]
    pub present: Option<PathBuf>,
    /// The winner where both name a registry; without it the controller's, by its status, or else additional-wins
    #[arg(long, value_parser = [ADDITIONAL_WINS, ORIGINAL_WINS])]
    pub conflict_policy: Option<String>,
    /// A registry, or a part of one, that only the original may set; may be repeated; without it the controller's, by its status
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    pub protected_prefix: Vec<String>,
    /// Handling of an invalid entry; without it the controller's, by its status, or else reject-all
    #[arg(long, value_parser = [REJECT_ALL, SKIP])]
    pub invalid_entries: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Arguments of `version`.
#[derive(Debug, Args)]
pub struct VersionArguments {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// The result of a command.
#[derive(Debug)]
pub struct CommandResult {
    /// The text to print.
    pub text: String,
    /// The exit code.
    pub code: ExitCode,
}

// === impl CommandResult ===

impl CommandResult {
    /// A text of a command that has succeeded.
    pub fn done(text: String) -> Self {
        Self { text, code: ExitCode::SUCCESS }
    }
}
