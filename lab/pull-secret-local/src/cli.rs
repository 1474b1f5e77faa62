//! The commands of `pull-secret-local` and their flags.

mod emulator;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use daemon::version::Version;

use crate::scenario::Scenario;
use crate::scripted::Fault;
pub(crate) use emulator::{
    EmulatorCommand, KeyVaultArguments, KubernetesArguments, QuayArguments, SecretManagerArguments,
};

/// Runs the Pull Secret Service on this machine, on embedded parts, without an account; for development and tests
#[derive(Debug, Parser)]
#[command(name = "pull-secret-local", version, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the whole fleet plane in this process: API, Sentinel, broker, adapter, Secret Manager and Kubernetes
    ///
    /// Jobs run as processes of `pull-secret`, looked up beside this program or on PATH. Without a data directory everything is forgotten at the end. Where each part
    /// is, is printed when all are ready: a table, and `export` lines for kubectl, curl and `pull-secret`. Ctrl-C ends it in
    /// order, a second Ctrl-C at once. For development and tests only: everything listens on loopback without encryption.
    Up(Box<UpArguments>),
    /// Show the main job on embedded parts: a new cluster, a rotation, a repair, a deletion
    #[command(args_conflicts_with_subcommands = true)]
    Demo(DemoArguments),
    /// Start a server that stands in for a cloud service
    #[command(arg_required_else_help = true)]
    Emulator {
        #[command(subcommand)]
        emulator: EmulatorCommand,
    },
    /// Print version, commit and build date
    Version(VersionArguments),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Arguments of `up`.
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
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    /// Store pull secrets in this store too, after the first one; its place and identity are given as with `--store`
    #[arg(long, value_enum, value_name = "STORE")]
    pub(crate) mirror: Option<StoreKind>,
    /// The image that Jobs run
    #[arg(long, value_name = "IMAGE", default_value = "quay.io/openshift-hyperfleet/pull-secret:latest")]
    pub(crate) image: String,
    /// Prepare a fleet with planted faults, and print an exercise; with kept data only the first time
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) scenario: Option<Scenario>,
    /// A scripted fault, of the embedded Secret Manager such as `addVersion in my-project-1:quota-exceeded*0`, or of the
    /// embedded Kubernetes such as `create/secrets in clusters-cls-1:503*0`; may be given several times
    #[arg(long, value_name = "TARGET[ in PLACE]:EFFECT[*TIMES][@CALL]")]
    pub(crate) fault: Vec<Fault>,
    /// The least severe events that are logged
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: String,
    /// For people (log and table on stderr, `export` lines on stdout), or one JSON object a line on stdout
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: StreamFormat,
}

/// The choice of the secret store.
#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// Store pull secrets in Secret Manager, in the OpenBao or Vault at `VAULT_ADDR` with the token in `VAULT_TOKEN_FILE`, in
    /// AWS Secrets Manager in `AWS_REGION` with the identity of AWS's files and variables, but for keys in variables, or in the
    /// Azure Key Vault at `AZURE_KEY_VAULT_URL` with a workload identity, without that variable in an emulator
    #[arg(long, value_enum, value_name = "STORE", default_value_t)]
    pub(crate) store: StoreKind,
}

/// Kind of the secret store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreKind {
    /// Google Secret Manager, or its emulator
    #[default]
    Google,
    /// OpenBao or HashiCorp Vault, KV version 2
    Vault,
    /// AWS Secrets Manager
    Aws,
    /// Azure Key Vault, or its emulator
    Azure,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Another story
    #[command(subcommand)]
    pub(crate) story: Option<Story>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    #[command(flatten)]
    pub(crate) shown: Shown,
}

/// A story beside the main one.
#[derive(Debug, Subcommand)]
pub(crate) enum Story {
    /// Show the life of a registry account: made at an emulated Quay, published, replaced, retired, revoked
    ///
    /// skopeo pulls with each of them from a real registry, which takes Quay's tokens. The variables `REAL_REGISTRY`, `REAL_SKOPEO` and
    /// `REAL_SKOPEO_LIBRARIES` name both programs; `make demo-credentials` gets them.
    Credentials(Shown),
}

/// Output of a demo.
#[derive(Debug, Args)]
pub(crate) struct Shown {
    /// Show the log too, from this level on
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
    /// A story for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: StreamFormat,
}

/// Arguments of `version`.
#[derive(Debug, Args)]
pub(crate) struct VersionArguments {
    /// Lines for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: StreamFormat,
}

/// Output format of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StreamFormat {
    /// Text, for people
    #[default]
    Text,
    /// One JSON object a line, for programs
    Json,
}

/// Version, commit and build date of this program.
pub(crate) const VERSION: Version = daemon::version!("pull-secret-local");

/// The version, and when it was built.
pub(crate) fn build() -> (&'static str, &'static str) {
    (VERSION.version, VERSION.built)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
