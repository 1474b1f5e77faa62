//! `pull-secret credentials`: accounts of clusters at image registries.

mod ams;
mod ams_page;
mod audit;
mod common;
mod entries;
mod orders;
mod page;
mod rekey;
mod revoke;
mod rotation;
mod rotation_page;
mod sweep;

use std::process::ExitCode;

use anyhow::Context as _;
use credentials::ledger::Filter;
use credentials::server::Server;
use credentials::settings::Checked;
use daemon::environment::ProcessEnvironment;
use daemon::faults::Faults;
use daemon::log::AUDIT;
use daemon::output;
use fleet_model::names::trace::SERVICE_CREDENTIALS;
use jiff::Timestamp;

pub(crate) use common::checked_if_set;

use crate::cli::{self, CredentialArguments, CredentialsCommand, CredentialsFlags, LedgerAuditCommand, ListArguments};

/// The crates whose events are logged.
const CRATES: &[&str] = &[
    AUDIT,
    "accounts_mgmt",
    "credentials",
    "daemon",
    "database",
    "hyperfleet_client",
    "kubernetes",
    "pull_secret",
    "registry_account",
];

/// Runs a command of `credentials`.
pub(crate) fn credentials(command: CredentialsCommand) -> anyhow::Result<ExitCode> {
    match command {
        CredentialsCommand::Serve(flags) => return serve(flags),
        CredentialsCommand::ConfigDump(arguments) => {
            let dump = Checked::dump(arguments.flags.0, &ProcessEnvironment).map_err(Faults::of_configuration)?;
            return Ok(output::print(dump.render(arguments.output))?);
        }
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        match command {
            CredentialsCommand::List(arguments) => list(arguments).await,
            CredentialsCommand::Entries(arguments) => entries::entries(arguments).await,
            CredentialsCommand::Show(arguments) => show(arguments).await,
            CredentialsCommand::Events(arguments) => events(arguments).await,
            CredentialsCommand::Audit(LedgerAuditCommand::Verify(arguments)) => audit::verify(arguments).await,
            CredentialsCommand::Replace(arguments) => orders::replace(arguments).await,
            CredentialsCommand::PutBack(arguments) => orders::put_back(arguments).await,
            CredentialsCommand::Ams(command) => ams::ams(command).await,
            CredentialsCommand::Rotation(command) => rotation::rotation(command).await,
            CredentialsCommand::Retire(arguments) => orders::retire(arguments).await,
            CredentialsCommand::Attest(arguments) => orders::attest(arguments).await,
            CredentialsCommand::Revoke(arguments) => revoke::revoke(arguments).await,
            CredentialsCommand::Rekey(arguments) => rekey::rekey(arguments).await,
            CredentialsCommand::Sweep(arguments) => sweep::sweep(arguments).await,
            CredentialsCommand::Serve(_) | CredentialsCommand::ConfigDump(_) => Ok(ExitCode::SUCCESS),
        }
    })
}

fn serve(flags: CredentialsFlags) -> anyhow::Result<ExitCode> {
    let checked = common::checked(flags)?;
    let _traces = cli::start(checked.settings.log.of(CRATES), &checked.settings.tracing, SERVICE_CREDENTIALS)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
        let sources = common::sources();
        let registries: Vec<String> = checked.registries.iter().map(|registry| registry.name.to_string()).collect();
        let replica = format!("credentials-{:016x}", rand::random::<u64>());
        let server = Server::prepare(checked, &ProcessEnvironment, sources, replica).await?;
        let api = server.api_address().map_or_else(String::new, |address| format!(", the HTTP API on {address}"));
        output::note(format_args!(
            "Credentials at {}{api}, probes on {}, metrics on {}. Ctrl-C stops it.",
            registries.join(", "),
            server.health_address(),
            server.metrics_address(),
        ));
        Box::pin(server.run(stop)).await.context("the ledger cannot be used")?;
        Ok(ExitCode::SUCCESS)
    })
}

async fn list(arguments: ListArguments) -> anyhow::Result<ExitCode> {
    let ListArguments { registry, state, cluster, older_than, needs_a_person, output, flags } = arguments;
    let ledger = common::ledger(&common::checked(flags)?).await?;
    let mut found = ledger.list(&Filter { registry, state, cluster }).await?;
    if let Some(age) = older_than {
        let before = Timestamp::now().checked_sub(age).context("--older-than: is too long")?;
        found.retain(|credential| credential.record.created.is_some_and(|created| created < before));
    }
    found.retain(|credential| !needs_a_person || credential.reason.needs_a_person());
    Ok(output::print(page::list(&found, output))?)
}

async fn show(arguments: CredentialArguments) -> anyhow::Result<ExitCode> {
    let ledger = common::ledger(&common::checked(arguments.flags)?).await?;
    let credential = common::find(&ledger, arguments.id).await?;
    let successor = ledger.successor(credential.id).await?;
    Ok(output::print(page::show(&credential, successor.as_ref(), arguments.output))?)
}

async fn events(arguments: CredentialArguments) -> anyhow::Result<ExitCode> {
    let ledger = common::ledger(&common::checked(arguments.flags)?).await?;
    let credential = common::find(&ledger, arguments.id).await?;
    Ok(output::print(page::events(&ledger.events(credential.id).await?, arguments.output))?)
}
