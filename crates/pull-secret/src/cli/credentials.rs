//! `pull-secret credentials`: its commands, and its flags as the table of settings has them.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use credentials::chain::KnownLink;
use credentials::credential::RegistryName;
use credentials::rotation::RotationName;
use credentials::state::State;
use registry_account::CredentialId;

use super::ams::AmsCommand;
use super::credentials_flags::{CredentialsFlags, OrderFlags, RotationStartArguments, time};
use super::output::{ConfigDumpArguments, OutputFormat};

/// Commands about registry credentials.
#[derive(Debug, Subcommand)]
pub(crate) enum CredentialsCommand {
    /// Make accounts for clusters, publish them in their pull secrets, retire what is not used any more
    ///
    /// Any number of replicas share a ledger. Flags come before variables, variables before the configuration file. The log is on
    /// stdout, one JSON object a line.
    Serve(CredentialsFlags),
    /// Print the settings in effect, each with its source, without credentials
    ///
    /// Exits with 2 and all faults if `serve` would refuse them.
    ConfigDump(ConfigDumpArguments<CredentialsFlags>),
    /// List credentials: state, reason, cluster; never a password
    List(ListArguments),
    /// List the entries of the pull secrets of all clusters, of this service and of others: host, age, expiry; never their content
    ///
    /// Those that end first come first. The service looks at each interval of complete lists, `clusters.resync`.
    Entries(EntriesArguments),
    /// Print all that the ledger knows about a credential: times, evidence and its sources, orders; never its password
    Show(CredentialArguments),
    /// Print the events of a credential, oldest first
    Events(CredentialArguments),
    /// Verify that the events of the ledger are those that were recorded
    #[command(subcommand)]
    Audit(LedgerAuditCommand),
    /// Give the cluster of a credential another one: it is published, and the old one retired when nodes use the new one
    ///
    /// The same order again prints the same one.
    Replace(OrderArguments),
    /// Give the cluster of a credential that is being replaced this one back, as long as its account lives
    ///
    /// It is published and adopted anew; the newer ones are retired when nothing uses them any more.
    PutBack(OrderArguments),
    /// Replace the credentials of many clusters, in groups, a few at a time
    #[command(subcommand)]
    Rotation(RotationCommand),
    /// Leave AMS: import its credentials, compare, issue our own, move clusters, delete AMS's
    #[command(subcommand)]
    Ams(AmsCommand),
    /// Order that a credential is retired once nothing uses it; this is the approval that the policy `manual` waits for
    Retire(OrderArguments),
    /// Revoke credentials at once, whatever uses them; nodes that have no other one cannot pull any more
    ///
    /// Without --yes it prints which, and until when tokens that were issued before may be good, and changes nothing.
    Revoke(RevokeArguments),
    /// Attest a part of the evidence that no system reports
    Attest(AttestArguments),
    /// Name the accounts at registries that the ledger does not know or is done with; deletes nothing
    ///
    /// Exits with 0 if there are none, with 1 if there are some.
    Sweep(SweepArguments),
    /// Seal every password of the ledger with the first key, as the service does every ten minutes
    ///
    /// Prints the keys in use. Exits with 1 if a password cannot be opened.
    Rekey(RekeyLedgerArguments),
}

/// Arguments of `credentials list`.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only those of this registry
    #[arg(long, value_name = "NAME")]
    pub(crate) registry: Option<RegistryName>,
    /// Only those in this state, such as `Published`
    #[arg(long, value_name = "STATE", value_parser = state)]
    pub(crate) state: Option<State>,
    /// Only those of this cluster
    #[arg(long, value_name = "ID")]
    pub(crate) cluster: Option<String>,
    /// Only those whose account was created longer ago than this, such as `720h`
    #[arg(long, value_name = "DURATION", value_parser = time)]
    pub(crate) older_than: Option<Duration>,
    /// Only those that a person has to see to
    #[arg(long)]
    pub(crate) needs_a_person: bool,
    /// A table for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Arguments of `credentials entries`.
#[derive(Debug, Args)]
pub(crate) struct EntriesArguments {
    /// Only those of this cluster
    #[arg(long, value_name = "ID")]
    pub(crate) cluster: Option<String>,
    /// Only those with this key, such as `registry.redhat.io`
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Only those that say that they end within this time, or have ended, such as `720h`
    #[arg(long, value_name = "DURATION", value_parser = time)]
    pub(crate) expiring: Option<Duration>,
    /// Only those that were made, or first seen, longer ago than this
    #[arg(long, value_name = "DURATION", value_parser = time)]
    pub(crate) older_than: Option<Duration>,
    /// Only those that were made elsewhere
    #[arg(long)]
    pub(crate) made_elsewhere: bool,
    /// A table for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Arguments of a command about one credential.
#[derive(Debug, Args)]
pub(crate) struct CredentialArguments {
    /// The credential
    pub(crate) id: CredentialId,
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Commands about the chain of the ledger's events.
#[derive(Debug, Subcommand)]
pub(crate) enum LedgerAuditCommand {
    /// Read all events and links of their chain, and name the first that was changed, added or removed
    ///
    /// Exits with 0 if there is none, with 1 if there is one. The keys of the ledger are needed. Who removes the newest links
    /// together with their events is noticed only by a link that is kept elsewhere: give one of the service's log with --link.
    Verify(LedgerVerifyArguments),
}

/// Arguments of `credentials audit verify`.
#[derive(Debug, Args)]
pub(crate) struct LedgerVerifyArguments {
    /// A link that the ledger must have, as the service's log has it; can be repeated
    #[arg(long, value_name = "NUMBER:HASH")]
    pub(crate) link: Vec<KnownLink>,
    /// Lines for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Arguments of an order about one credential.
#[derive(Debug, Args)]
pub(crate) struct OrderArguments {
    /// The credential
    pub(crate) id: CredentialId,
    #[command(flatten)]
    pub(crate) order: OrderFlags,
    /// A line for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Commands about rotations.
#[derive(Debug, Subcommand)]
pub(crate) enum RotationCommand {
    /// Start a rotation, on which the service works from then on
    ///
    /// It replaces credentials that their clusters use; others are left as they are. Without --yes it prints how many clusters are in
    /// each group, the calls of the registry and the expected end, and changes nothing.
    Start(Box<RotationStartArguments>),
    /// Print a rotation's groups, numbers of clusters, failures and expected end; or list all
    Status(RotationStatusArguments),
    /// Begin with no further cluster; what has begun is finished
    Pause(RotationRequestArguments),
    /// Go on with a rotation that was paused or has stopped; clusters that have failed so far are tolerated
    Resume(RotationRequestArguments),
    /// Give a rotation up
    ///
    /// Clusters that are done keep their new credential. With --put-back, those on their way get their old one back, and so do those that
    /// have failed and do not use the new one since.
    Abort(RotationAbortArguments),
}

/// Arguments of `credentials rotation status`.
#[derive(Debug, Args)]
pub(crate) struct RotationStatusArguments {
    /// The rotation; all without it
    pub(crate) name: Option<RotationName>,
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Arguments of `credentials rotation pause` and `resume`.
#[derive(Debug, Args)]
pub(crate) struct RotationRequestArguments {
    /// The rotation
    pub(crate) name: RotationName,
    #[command(flatten)]
    pub(crate) order: OrderFlags,
    /// A page for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Arguments of `credentials rotation abort`.
#[derive(Debug, Args)]
pub(crate) struct RotationAbortArguments {
    #[command(flatten)]
    pub(crate) request: RotationRequestArguments,
    /// Give the clusters that are not done their old credential back
    #[arg(long)]
    pub(crate) put_back: bool,
}

/// The credentials to revoke.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// All of this cluster
    #[arg(long, value_name = "ID")]
    pub(crate) cluster: Option<String>,
    /// This one
    #[arg(long, value_name = "ID")]
    pub(crate) credential: Option<CredentialId>,
    /// All of this registry, those of the pool included
    #[arg(long, value_name = "NAME")]
    pub(crate) registry: Option<RegistryName>,
}

/// Arguments of `credentials revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) order: OrderFlags,
    /// Revoke, and not only print which would be revoked
    #[arg(long)]
    pub(crate) yes: bool,
    /// A table for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// A part of the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The adapter has the pull secret available
    Report,
    /// All nodes have it
    Nodes,
    /// A node has pulled with it
    FirstPull,
    /// It was not used for the quiet time
    Quiet,
}

/// Arguments of `credentials attest`.
#[derive(Debug, Args)]
pub(crate) struct AttestArguments {
    /// The credential
    pub(crate) id: CredentialId,
    /// The part of the evidence
    #[arg(long, value_enum)]
    pub(crate) part: Part,
    #[command(flatten)]
    pub(crate) order: OrderFlags,
    /// A line for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Arguments of `credentials sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    /// Only this registry
    #[arg(long, value_name = "NAME")]
    pub(crate) registry: Option<RegistryName>,
    /// A table for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

/// Arguments of `credentials rekey`.
#[derive(Debug, Args)]
pub(crate) struct RekeyLedgerArguments {
    /// First erase every password that is sealed with this key, which is lost; clusters that have theirs keep it, the others get
    /// another credential
    #[arg(long, value_name = "ID", requires = "reason")]
    pub(crate) remove_lost_key: Option<String>,
    /// The reason for the removal, in your words; it is recorded
    #[arg(long, value_name = "TEXT", requires = "remove_lost_key")]
    pub(crate) reason: Option<String>,
    /// The person who orders it; recorded [default: the variable USER]
    #[arg(long = "as", value_name = "PERSON", requires = "remove_lost_key")]
    pub(crate) actor: Option<String>,
    /// Lines for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) flags: CredentialsFlags,
}

fn state(text: &str) -> Result<State, String> {
    let states = || State::ALL.map(State::as_str).join(", ");
    State::parse(text).ok_or_else(|| format!("must be one of {}", states()))
}
