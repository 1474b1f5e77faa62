//! The arguments of the commands beside `run`, and their result.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

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
