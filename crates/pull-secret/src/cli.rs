//! The commands and their flags.

mod adapter;
mod ams;
mod api;
mod context;
mod credentials;
mod credentials_flags;
mod doctor;
mod fleet;
mod output;
mod prune;
mod rotate;
mod sentinel;
mod store;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use daemon::faults::Faults;
use daemon::log;
use daemon::settings::flags::{Flags, REQUIRED};
use daemon::settings::traces::Tracing;
use daemon::traces::{self, Program, Traces};
use daemon::version::Version;
use fleet_model::job::Reason;
use pull_secret_job::settings::TABLE;

pub(crate) use adapter::{AdapterArguments, AdapterCommand, AdapterFlags, DryRunArguments};
pub(crate) use ams::{
    AmsArguments, AmsBackArguments, AmsCommand, AmsIssueArguments, AmsRetireArguments, AmsStatusArguments,
};
pub(crate) use api::{ApiArguments, ApiCommand, ApiFlags, GrantsArguments, IdentityArguments, MigrateArguments};
pub(crate) use context::{ContextCommand, ContextFlag, ContextOutput, ContextValues, SetArguments};
pub(crate) use credentials::{
    AttestArguments, CredentialArguments, CredentialsCommand, EntriesArguments, LedgerAuditCommand,
    LedgerVerifyArguments, ListArguments, OrderArguments, Part, RekeyLedgerArguments, RevokeArguments,
    RotationAbortArguments, RotationCommand, RotationRequestArguments, RotationStatusArguments,
    SweepArguments as CredentialsSweepArguments, Target,
};
pub(crate) use credentials_flags::{CredentialsFlags, OrderFlags, RotationRules, RotationStartArguments};
pub(crate) use doctor::DoctorArguments;
pub(crate) use fleet::{
    ApiFlags as ClientFlags, ExplainArguments, ExplainCommand, RetryArguments, StatusArguments, SweepArguments,
};
pub(crate) use output::OutputFormat;
pub(crate) use prune::PruneArguments;
pub(crate) use rotate::{
    RecordFlags, RotateAbortArguments, RotateCommand, RotateNameArguments, RotatePlanArguments, RotateResumeArguments,
    RotateStartArguments, SourceFlags, WorkFlags,
};
pub(crate) use sentinel::{
    DeadLettersCommand, EventsCommand, LettersArguments, SentinelArguments, SentinelCommand, TailArguments,
};
pub(crate) use store::StoreFlags;

/// Gives every hosted cluster of a fleet the credentials with which its nodes pull images
#[derive(Debug, Parser)]
#[command(name = "pull-secret", version, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a Job once, as a Kubernetes Job's container does
    #[command(arg_required_else_help = true)]
    RunJob {
        #[command(subcommand)]
        job: RunJobCommand,
    },
    /// Serve the HyperFleet API: resources, statuses, search, change stream; on SQLite or PostgreSQL
    ///
    /// Without any argument it serves clusters and node pools on port 8000 of loopback from the file `hyperfleet.db`.
    /// Flags come before variables, variables before the configuration file; `DATABASE_URL` takes PostgreSQL. The log is
    /// on stdout, one JSON object a line.
    Api(Box<ApiArguments>),
    /// Watch the fleet and publish an event for each resource that must be reconciled now
    ///
    /// Flags come before variables, variables before the configuration file. HyperFleet's keys and variables are accepted. The
    /// log is on stdout, one JSON object a line.
    Sentinel(Box<SentinelArguments>),
    /// Reconcile the clusters of events: check preconditions, run the Job, report the result
    ///
    /// Flags come before variables, variables before the configuration file (an `AdapterConfig`). Without a file it is the
    /// pull secret adapter, and needs only the addresses of API and broker. The log is on stdout, one JSON object a line.
    Adapter(Box<AdapterArguments>),
    /// Give each cluster an account of its own at image registries, and take it back when nothing uses it any more
    #[command(arg_required_else_help = true)]
    Credentials {
        #[command(subcommand)]
        command: CredentialsCommand,
    },
    /// Print the events that the Sentinel publishes; look at dead letters, publish them again, delete them
    #[command(arg_required_else_help = true)]
    Events {
        #[command(subcommand)]
        command: EventsCommand,
    },
    /// Show if audit records were changed or are missing
    #[command(arg_required_else_help = true)]
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Check a pull secret and say what is wrong with it, with places and without values
    Validate(ValidateArguments),
    /// Run the fleet plane on this machine, for development and tests: runs the program `pull-secret-local`
    ///
    /// The program is looked up beside this one, then on PATH; it is not part of any image. All arguments are passed on:
    /// `pull-secret local up`, `pull-secret local demo`, `pull-secret local emulator kubernetes`.
    #[command(disable_help_flag = true)]
    Local {
        /// Arguments of `pull-secret-local`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
        arguments: Vec<OsString>,
    },
    /// Say why something is as it is
    #[command(arg_required_else_help = true)]
    Explain {
        #[command(subcommand)]
        command: ExplainCommand,
    },
    /// List the fleet: each cluster's pull secret at a glance, and a summary
    ///
    /// Exits with 0 whatever the clusters' state is, with 75 if the API cannot be reached.
    Status(StatusArguments),
    /// Check what the service depends on, before its installation and after it, with the command that fixes each fault
    ///
    /// The checks are made with the identities that are given: in a Pod of the adapter, they are about the adapter's own rights.
    /// Groups not given are skipped. The broker's subscription is that of the adapter, unless --broker-subscription-id names
    /// another one. Nothing is changed. Exits with 0 if no check has failed, with 1 if one has.
    Doctor(Box<DoctorArguments>),
    /// Run failed Jobs again now, instead of after their back-off
    ///
    /// Deletes the Job that has failed, upon which the adapter starts the next one. Without --yes it prints what would be
    /// retried, and changes nothing. Exits with 0, with 1 if a cluster was refused or its Job could not be deleted, with 75 if
    /// the API cannot be reached.
    Retry(RetryArguments),
    /// Give many clusters new pull secrets, in waves, under the quota of the secret store
    #[command(arg_required_else_help = true)]
    Rotate {
        #[command(subcommand)]
        command: RotateCommand,
    },
    /// Delete stored secrets whose cluster is gone
    ///
    /// Compares the secrets of a project that this software manages with the clusters of the API. A secret of an earlier
    /// cluster with a living one's id is deleted; one whose cluster the API does not know only with --unknown or --cluster,
    /// as another fleet may use the project. Exits with 0, with 1 if a secret could not be deleted, with 75 if the API cannot be
    /// reached.
    Sweep(SweepArguments),
    /// Destroy superseded versions of stored secrets, beyond those that are kept
    ///
    /// A run of the Job does the same for its cluster; this is for clusters whose Job has not run since. Only versions that this
    /// software has added are destroyed, only below the one in use, and none while that cannot be read. Without --yes it
    /// prints what would be destroyed, and changes nothing; interrupted, the same command continues. Exits with 0, with 1 if
    /// a secret failed, with 75 if the API cannot be reached.
    Prune(PruneArguments),
    /// Keep the addresses of several fleets, each under a name, for --context
    ///
    /// The file is `PULL_SECRET_CONFIG`, else `pull-secret/contexts.yaml` in `XDG_CONFIG_HOME` or `~/.config`. It holds the names of
    /// files with credentials, never a credential. Flags come before variables, variables before the context.
    #[command(arg_required_else_help = true)]
    Context {
        #[command(subcommand)]
        command: ContextCommand,
    },
    /// Print version, commit and build date
    Version(VersionArguments),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunJobCommand {
    /// Store a cluster's pull secret in a secret store and verify it by reading it back
    #[command(after_help = exit_codes(), long_about = RUN_JOB)]
    PullSecret(JobFlags),
}

const RUN_JOB: &str = "Store a cluster's pull secret in a secret store and verify it by reading it back

A run that finds the newest version to hold the pull secret already writes nothing. A secret that is not this \
cluster's is never touched. Flags come before environment variables; a blank value counts as missing. The log is on \
stdout, one JSON object a line. At Google the identity comes from Workload Identity in a cluster, and from \
`gcloud auth application-default login` on a workstation.";

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Verify the audit records in the log of `pull-secret api`
    ///
    /// Each process has a chain of records, in which each has a number and the hash of the one before. Other lines are skipped.
    /// Exits with 0 if every chain that was found is unbroken, with 1 if a record was changed or is missing between others, or if
    /// there is no record. A chain without an end is shown as such: its process runs, was killed, or the last records are missing.
    Verify(VerifyArguments),
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// The log, as JSON lines, in one file or several; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArguments {
    /// The file to check, `-` for standard input
    pub(crate) file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

/// Arguments of `version`.
#[derive(Debug, Args)]
pub(crate) struct VersionArguments {
    /// Lines for people, or JSON
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: OutputFormat,
}

daemon::flags!(pub(crate) JobFlags, Flags { table: TABLE, config: None, repeated: &[], required: REQUIRED });

fn exit_codes() -> String {
    let mut reasons: BTreeMap<u8, Vec<String>> = BTreeMap::new();
    for reason in Reason::ALL {
        reasons.entry(reason.exit_code()).or_default().push(reason.to_string());
    }
    let lines: Vec<String> =
        reasons.iter().map(|(code, reasons)| format!("  {code:<4} {}", reasons.join(", "))).collect();
    format!(
        "Exit codes:\n{}\n\nThe pull secret itself comes from PULL_SECRET_FILE or PULL_SECRET_DATA [env].",
        lines.join("\n")
    )
}

/// Version, commit and build date of this program.
pub(crate) const VERSION: Version = daemon::version!("pull-secret");

/// The version, and when it was built.
pub(crate) fn build() -> (&'static str, &'static str) {
    (VERSION.version, VERSION.built)
}

/// Starts the log, and the export of traces under this service's name if the settings ask for it.
pub(crate) fn start(log: log::Settings, tracing: &Tracing, service: &'static str) -> anyhow::Result<Traces> {
    let export = tracing.export().map_err(Faults::of_configuration)?;
    Ok(traces::start(log, export, Program { name: service, version: build().0 })?)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use daemon::settings::Kind;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_flag_never_takes_a_credential() {
        let rows = TABLE.scalars();
        let document = rows.iter().find(|row| row.path == "pull_secret_data").unwrap();
        assert!(
            document.flag.is_none() && rows.iter().all(|row| !matches!(row.kind, Kind::Secret) || row.flag.is_none())
        );
    }

    #[test]
    fn switches_can_be_turned_off_and_values_are_kept_as_given() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' ')).map(|cli| cli.command);
        let Ok(Command::RunJob { job: RunJobCommand::PullSecret(flags) }) =
            parse("pull-secret run-job pull-secret --dry-run --always-add-version=false --cluster-id cls-1")
        else {
            panic!("must parse")
        };
        let given: Vec<_> = flags.0.iter().map(|(flag, value)| (*flag, value.as_str())).collect();
        assert_eq!(given, [("always-add-version", "false"), ("cluster-id", "cls-1"), ("dry-run", "true")]);
        assert!(parse("pull-secret run-job pull-secret --pull-secret-data x").is_err());
    }
}
