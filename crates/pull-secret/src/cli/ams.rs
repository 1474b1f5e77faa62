//! `pull-secret credentials ams`: its commands.

use clap::{Args, Subcommand};
use credentials::credential::RegistryName;
use credentials::decide::ams::Phase;

use super::credentials_flags::{CredentialsFlags, OrderFlags, RotationStartArguments};
use super::output::OutputFormat;

/// Commands about leaving AMS.
#[derive(Debug, Subcommand)]
pub(crate) enum AmsCommand {
    /// Read every credential of AMS and every pull secret into the ledger; changes neither
    ///
    /// Exits with 0 if the numbers of each registry agree and every entry is known, with 1 if not: the page lists the rest. It can be
    /// repeated at any time.
    Import(AmsArguments),
    /// Compare every pull secret with AMS and with what would be published; changes nothing
    ///
    /// Run it once a day at least: a cluster goes on when there was no difference for `ams.compare_for`. Exits with 1 if there are
    /// differences that nothing explains.
    Shadow(AmsArguments),
    /// Print the phase of each cluster, and those that need a person
    Status(AmsStatusArguments),
    /// Make a credential of our own for each cluster that was compared for long enough, beside that of AMS; nothing is published
    ///
    /// Without --yes it prints how many, and changes nothing.
    Issue(AmsIssueArguments),
    /// Publish our credentials, in groups, a few clusters at a time: a rotation, which `rotation status`, `pause`, `resume` and
    /// `abort` know
    Move(Box<RotationStartArguments>),
    /// Delete the credentials of AMS that clusters had, each after its proof; there is no way back
    ///
    /// Without --confirm it prints which, and what keeps the others, and changes nothing.
    Retire(AmsRetireArguments),
    /// Go one phase back: give a cluster AMS's credential again, or delete ours that is not published; or forget the import
    ///
    /// A cluster that had ours published keeps it beside AMS's; the same command again deletes it.
    Back(AmsBackArguments),
}

/// Arguments of `credentials ams import` and `shadow`.
#[derive(Debug, Args)]
pub(crate) struct AmsArguments {
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Arguments of `credentials ams status`.
#[derive(Debug, Args)]
pub(crate) struct AmsStatusArguments {
    /// Only this cluster, with its entries
    #[arg(long, value_name = "ID")]
    pub(crate) cluster: Option<String>,
    /// Only clusters in this phase, such as `Issued`
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    pub(crate) phase: Option<Phase>,
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Arguments of `credentials ams issue`.
#[derive(Debug, Args)]
pub(crate) struct AmsIssueArguments {
    /// The registry
    #[arg(long, value_name = "NAME")]
    pub(crate) registry: RegistryName,
    /// Only this cluster
    #[arg(long, value_name = "ID")]
    pub(crate) cluster: Option<String>,
    #[command(flatten)]
    pub(crate) order: OrderFlags,
    /// Issue, and not only print the number
    #[arg(long)]
    pub(crate) yes: bool,
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Arguments of `credentials ams retire`.
#[derive(Debug, Args)]
pub(crate) struct AmsRetireArguments {
    /// The credentials of this cluster
    #[arg(long, value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) cluster: Option<String>,
    /// Those of all clusters that are moved
    #[arg(long)]
    pub(crate) all: bool,
    /// Attest that nothing uses them, where the registry does not tell; the reason says how you know
    #[arg(long)]
    pub(crate) attest_quiet: bool,
    /// Delete: the id of the cluster, or the number of credentials that the command without it has printed, such as `delete 412`
    #[arg(long, value_name = "WORDS")]
    pub(crate) confirm: Option<String>,
    #[command(flatten)]
    pub(crate) order: OrderFlags,
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Arguments of `credentials ams back`.
#[derive(Debug, Args)]
pub(crate) struct AmsBackArguments {
    /// This cluster, one phase
    #[arg(long, value_name = "ID", required_unless_present = "import", conflicts_with = "import")]
    pub(crate) cluster: Option<String>,
    /// Forget everything that was imported; refused while a cluster has a credential of our own
    #[arg(long)]
    pub(crate) import: bool,
    /// Forget it, and not only print what follows
    #[arg(long, requires = "import")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) order: OrderFlags,
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

fn phase(text: &str) -> Result<Phase, String> {
    let phases = || Phase::ALL.map(Phase::as_str).join(", ");
    Phase::parse(text).ok_or_else(|| format!("must be one of {}", phases()))
}
