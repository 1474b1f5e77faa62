//! Flags of `pull-secret-local emulator`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use daemon::settings::duration;
use emulators::secret_manager::Fault;

#[derive(Debug, Subcommand)]
pub(crate) enum EmulatorCommand {
    /// Google Secret Manager: REST and gRPC on one port
    ///
    /// For development and tests, never for production: there is no encryption. Requests need a bearer token. Prints the
    /// `export` lines that point the Job at it and at the token, then serves until it is stopped.
    SecretManager(Box<SecretManagerArguments>),
    /// Azure Key Vault (secrets only) over TLS, and the endpoint of Entra that issues its tokens
    ///
    /// For development and tests, never for production: who reads the assertion may read everything. Secrets are in memory.
    /// Prints the address, the file of the authority that clients have to trust, and the `export` lines by which Azure's
    /// clients authenticate with workload identity, then serves until it is stopped.
    KeyVault(Box<KeyVaultArguments>),
    /// Quay: robots, teams, permissions, usage log and token service of one organization
    ///
    /// For development and tests, never for production: who has the token may do everything, and all is in memory. Prints the
    /// `export` lines with its address, the organization, the file with the API's token, and the certificate that a registry
    /// has to trust in order to take its tokens, then serves until it is stopped.
    Quay(Box<QuayArguments>),
    /// A Kubernetes API server with the controllers for Jobs and DaemonSets
    ///
    /// For development and tests, never for production: there is no encryption. Requests need a token, which the kubeconfig
    /// has, and RBAC is on. Prints the `export` line that points
    /// kubectl and the Job at it, then serves until it is stopped.
    Kubernetes(Box<KubernetesArguments>),
}

#[derive(Debug, Args)]
pub(crate) struct SecretManagerArguments {
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Keep secrets in this directory, across restarts; without it they are in memory
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Write the token that requests need here instead of into a temporary directory
    #[arg(long, value_name = "FILE")]
    pub(crate) write_token: Option<PathBuf>,
    /// A scripted fault, such as `addVersion:unavailable*2`, `*:hang@3` or `createSecret:commit-then-timeout`;
    /// may be given several times
    #[arg(long, value_name = "METHOD[ in PROJECT]:EFFECT[*TIMES][@CALL]")]
    pub(crate) fault: Vec<Fault>,
    /// Answer this much later than at once, such as `50ms`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) latency: Option<std::time::Duration>,
    /// Show metadata, lists and `latest` as they were this long ago, such as `60s`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) metadata_lag: Option<std::time::Duration>,
    /// Deny a permission, such as `secretmanager.versions.add`; may be given several times
    #[arg(long, value_name = "PERMISSION")]
    pub(crate) deny: Vec<String>,
    /// Allow this many reads a minute (Google: 600)
    #[arg(long, value_name = "COUNT")]
    pub(crate) reads_per_minute: Option<u32>,
    /// Allow this many writes a minute (Google: 600)
    #[arg(long, value_name = "COUNT")]
    pub(crate) writes_per_minute: Option<u32>,
    /// Allow this many accesses to content a minute (Google: 90000)
    #[arg(long, value_name = "COUNT")]
    pub(crate) accesses_per_minute: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct KeyVaultArguments {
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Write `ca.pem` and `assertion` into this directory instead of a temporary one; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) write_files: Option<PathBuf>,
    /// A scripted fault, such as `setSecret:throttled(retry-after=2s)*2`, `*:hang@3` or `setSecret:commit-then-cut`;
    /// may be given several times
    #[arg(long, value_name = "OPERATION[ in SECRET]:EFFECT[*TIMES][@CALL]")]
    pub(crate) fault: Vec<emulators::key_vault::Fault>,
    /// Answer this much later than at once, such as `50ms`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) latency: Option<std::time::Duration>,
    /// Let a deletion, a recovery and a purge take this long, such as `55s`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) transition: Option<std::time::Duration>,
    /// Show a new version this much later than at once, such as `5s`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) version_lag: Option<std::time::Duration>,
    /// Refuse to purge deleted secrets
    #[arg(long)]
    pub(crate) purge_protection: bool,
}

#[derive(Debug, Args)]
pub(crate) struct QuayArguments {
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Write the API's token and the certificate of the issuer here instead of into a temporary directory
    #[arg(long, value_name = "DIR")]
    pub(crate) write_files: Option<PathBuf>,
    /// The organization that there is
    #[arg(long, value_name = "NAME", default_value = "hyperfleet")]
    pub(crate) organization: String,
    /// A repository of the organization; may be given several times. Without it there is `release`
    #[arg(long, value_name = "NAME")]
    pub(crate) repository: Vec<String>,
    /// A team of the organization; may be given several times. Without it there is `pullers`
    #[arg(long, value_name = "NAME")]
    pub(crate) team: Vec<String>,
    /// A scripted fault, such as `createOrgRobot:throttled(retry-after=2s)*2` or `issueToken:hang@3`; may be given several
    /// times
    #[arg(long, value_name = "OPERATION[ in TARGET]:EFFECT[*TIMES][@CALL]")]
    pub(crate) fault: Vec<emulators::quay::Fault>,
    /// Answer this much later than at once, such as `400ms`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) latency: Option<std::time::Duration>,
    /// Show in lists this much later that a robot was created or deleted, such as `60s`
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) list_lag: Option<std::time::Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct KubernetesArguments {
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Keep objects in this directory, across restarts; without it they are in memory
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Write the kubeconfig here instead of into a temporary directory
    #[arg(long, value_name = "FILE")]
    pub(crate) write_kubeconfig: Option<PathBuf>,
    /// Run the pods of an image as processes of this program, such as `quay.io/x/pull-secret=/usr/bin/pull-secret`;
    /// may be given several times
    #[arg(long, value_name = "IMAGE=PROGRAM", value_parser = image_and_program)]
    pub(crate) run_pods: Vec<(String, PathBuf)>,
    /// A scripted fault, such as `patch/secrets:429(retry-after=1s)*2` or `watch/jobs:cut`; may be given several times
    #[arg(long, value_name = "VERB/RESOURCE[ in NAMESPACE]:EFFECT[*TIMES][@CALL]")]
    pub(crate) fault: Vec<emulators::kubernetes::Fault>,
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    duration::parse(text).ok_or_else(|| duration::MUST.to_owned())
}

fn image_and_program(text: &str) -> Result<(String, PathBuf), String> {
    let (image, program) = text.rsplit_once('=').ok_or("must be IMAGE=PROGRAM")?;
    Ok((image.to_owned(), PathBuf::from(program)))
}
