//! `pull-secret credentials replace`, `retire` and `attest`.

use std::process::ExitCode;

use anyhow::Context as _;
use credentials::ledger::{Attested, Ledger, Statement};
use daemon::output;
use jiff::Timestamp;
use registry_account::CredentialId;

use super::{common, page};
use crate::cli::{AttestArguments, OrderArguments, OutputFormat, Part};

/// Gives the cluster of a credential another one, which replaces it.
pub(super) async fn replace(arguments: OrderArguments) -> anyhow::Result<ExitCode> {
    let actor = common::actor(&arguments.order)?;
    let checked = common::checked(arguments.flags)?;
    let ledger = common::ledger(&checked).await?;
    let registry = common::find(&ledger, arguments.id).await?.registry;
    let configured = common::configured(&checked, &registry)?;
    let sources = common::sources();
    let fresh = sources.fresh(&configured.prefix).context("the clock of this host is before 1970: set it")?;
    let statement = Statement { actor: &actor, reason: &arguments.order.reason, now: sources.now() };
    let new = ledger.replace(arguments.id, &fresh, &statement).await?;
    output::note("recorded: the service publishes this one, and retires the other one when nodes use this one");
    print(&ledger, new.id, arguments.output).await
}

/// Gives the cluster of a credential this one back.
pub(super) async fn put_back(arguments: OrderArguments) -> anyhow::Result<ExitCode> {
    let actor = common::actor(&arguments.order)?;
    let checked = common::checked(arguments.flags)?;
    let ledger = common::ledger(&checked).await?;
    common::find_served(&checked, &ledger, arguments.id).await?;
    let statement = Statement { actor: &actor, reason: &arguments.order.reason, now: Timestamp::now() };
    output::note(match ledger.put_back(arguments.id, &statement).await? {
        Some(newer) if newer.is_empty() => "recorded: the cluster gets this one again".to_owned(),
        Some(newer) => {
            let newer: Vec<_> = newer.iter().map(ToString::to_string).collect();
            let newer = newer.join(", ");
            format!("recorded: the cluster gets this one again, and the service retires {newer} when nothing uses it")
        }
        None => "nothing replaces this one: the cluster has it, or gets it when it is published".to_owned(),
    });
    print(&ledger, arguments.id, arguments.output).await
}

/// Records the order to retire a credential.
pub(super) async fn retire(arguments: OrderArguments) -> anyhow::Result<ExitCode> {
    let actor = common::actor(&arguments.order)?;
    let checked = common::checked(arguments.flags)?;
    let ledger = common::ledger(&checked).await?;
    common::find_served(&checked, &ledger, arguments.id).await?;
    let statement = Statement { actor: &actor, reason: &arguments.order.reason, now: Timestamp::now() };
    ledger.retire(arguments.id, &statement).await?;
    output::note("recorded: it is retired once nothing uses it, which `credentials show` explains");
    print(&ledger, arguments.id, arguments.output).await
}

/// Records a part of the evidence.
pub(super) async fn attest(arguments: AttestArguments) -> anyhow::Result<ExitCode> {
    let actor = common::actor(&arguments.order)?;
    let ledger = common::ledger(&common::checked(arguments.flags)?).await?;
    let statement = Statement { actor: &actor, reason: &arguments.order.reason, now: Timestamp::now() };
    let part = match arguments.part {
        Part::Report => Attested::Report,
        Part::Nodes => Attested::Nodes,
        Part::FirstPull => Attested::FirstPull,
        Part::Quiet => Attested::Quiet,
    };
    ledger.attest(arguments.id, part, &statement).await?;
    print(&ledger, arguments.id, arguments.output).await
}

async fn print(ledger: &Ledger, id: CredentialId, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let credential = common::find(ledger, id).await?;
    Ok(output::print(page::list(&[credential], format))?)
}
