//! `pull-secret credentials retire` and `attest`.

use std::process::ExitCode;

use credentials::ledger::{Attested, Ledger, Statement};
use daemon::output;
use jiff::Timestamp;
use registry_account::CredentialId;

use super::{common, page};
use crate::cli::{AttestArguments, OutputFormat, Part, RetireArguments};

/// Records the order to retire a credential.
pub(super) async fn retire(arguments: RetireArguments) -> anyhow::Result<ExitCode> {
    let actor = common::actor(&arguments.order)?;
    let ledger = common::ledger(&common::plan(arguments.flags)?).await?;
    let statement = Statement { actor: &actor, reason: &arguments.order.reason, now: Timestamp::now() };
    ledger.retire(arguments.id, &statement).await?;
    output::note("recorded: it is retired once nothing uses it, which `credentials show` explains");
    print(&ledger, arguments.id, arguments.output).await
}

/// Records a part of the evidence.
pub(super) async fn attest(arguments: AttestArguments) -> anyhow::Result<ExitCode> {
    let actor = common::actor(&arguments.order)?;
    let ledger = common::ledger(&common::plan(arguments.flags)?).await?;
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
