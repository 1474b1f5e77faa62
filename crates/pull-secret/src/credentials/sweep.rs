//! `pull-secret credentials sweep`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use credentials::credential::RegistryName;
use credentials::ledger::Ledger;
use credentials::settings::CheckedRegistry;
use credentials::state::State;
use credentials::sweep::{Stray, Sweep, Sweeping, Swept};
use daemon::output;
use jiff::Timestamp;
use registry_account::{Lists, Registry as _};
use serde_json::{Value, json};

use super::{common, page};
use crate::cli::{CredentialsSweepArguments, OutputFormat};

/// A stray account and its registry.
struct Found {
    registry: RegistryName,
    stray: Stray,
}

/// Names the accounts that should not be there.
pub(super) async fn sweep(arguments: CredentialsSweepArguments) -> anyhow::Result<ExitCode> {
    let checked = common::checked(arguments.flags)?;
    let ledger = common::ledger(&checked).await?;
    let is_meant =
        |configured: &&CheckedRegistry| arguments.registry.as_ref().is_none_or(|name| *name == configured.name);
    let registries: Vec<&CheckedRegistry> = checked.registries.iter().filter(is_meant).collect();
    ensure!(!registries.is_empty(), "--registry: no registry of that name is configured");
    let (mut found, mut accounts) = (Vec::new(), 0);
    for configured in registries {
        let swept = of_registry(&ledger, configured).await.with_context(|| format!("registry {}", configured.name))?;
        accounts += swept.accounts;
        found.extend(swept.strays.into_iter().map(|stray| Found { registry: configured.name.clone(), stray }));
    }
    output::print(text(&found, arguments.output))?;
    output::note(format_args!("{accounts} accounts looked at, {} that should not be there", found.len()));
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn of_registry(ledger: &Ledger, configured: &CheckedRegistry) -> anyhow::Result<Sweep> {
    let served = configured.connect()?;
    let (registry, prefix, name) = (&served.registry, &served.prefix, &configured.name);
    if registry.capabilities().lists == Lists::Nothing {
        output::note(format_args!("registry {name} has no list of accounts: none of it is looked at"));
    }
    let sweeping = Sweeping { ledger, registry, name, prefix, per_minute: served.rate() };
    let mut sweep = Sweep::default();
    loop {
        match sweep.next(&sweeping, Timestamp::now()).await? {
            Swept::More => {}
            Swept::Done => return Ok(sweep),
            Swept::Wait(until) => {
                let wait = Duration::try_from(until.duration_since(Timestamp::now())).unwrap_or_default();
                output::note(format_args!("the rate of registry {name} is exhausted; going on at {until}"));
                tokio::time::sleep(wait).await;
            }
        }
    }
}

fn text(found: &[Found], format: OutputFormat) -> String {
    let state = |stray: &Stray| stray.state.map_or("unknown", State::as_str);
    match format {
        OutputFormat::Json => {
            let object = |Found { registry, stray }: &Found| {
                json!({
                    "registry": registry.as_str(), "account": stray.account.as_str(), "created": stray.created,
                    "credential": stray.credential.map(|id| id.to_string()), "state": stray.state.map(State::as_str),
                })
            };
            format!("{:#}\n", found.iter().map(object).collect::<Value>())
        }
        OutputFormat::Table => {
            let row = |Found { registry, stray }: &Found| {
                let credential = stray.credential.map_or_else(|| "-".to_owned(), |id| id.to_string());
                [
                    registry.to_string(),
                    stray.account.to_string(),
                    page::time(stray.created),
                    credential,
                    state(stray).to_owned(),
                ]
            };
            output::table(["REGISTRY", "ACCOUNT", "CREATED", "CREDENTIAL", "STATE"], found.iter().map(row))
        }
    }
}
