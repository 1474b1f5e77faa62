//! Shared parts of the commands of `credentials`: settings, ledger, the person who orders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use credentials::credential::{Credential, RegistryName};
use credentials::ledger::Ledger;
use credentials::run::Sources;
use credentials::server::open_existing;
use credentials::settings::{CONFIG_VARIABLE, Checked, CheckedRegistry, SEARCHED};
use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::faults::Faults;
use jiff::Timestamp;
use registry_account::CredentialId;

use crate::cli::{CredentialsFlags, OrderFlags};

/// The longest reason and the longest name of a person, in bytes.
const LONGEST_TEXT: usize = 500;

/// The clock of this host, and its randomness.
pub(super) fn sources() -> Sources {
    Sources { now: Arc::new(Timestamp::now), random: Arc::new(rand::random::<u128>) }
}

/// Reads the settings.
pub(super) fn checked(flags: CredentialsFlags) -> anyhow::Result<Checked> {
    Checked::load(flags.0, &ProcessEnvironment).map_err(|faults| Faults::of_configuration(faults).into())
}

/// Reads the settings of the service where they are given, set by its variable, or at their place; `None` elsewhere.
pub(crate) fn checked_if_set(config: Option<&PathBuf>) -> anyhow::Result<Option<Result<Checked, String>>> {
    let given = config.map(|file| ("config", file.to_string_lossy().into_owned()));
    let is_set = given.is_some() || ProcessEnvironment.text(CONFIG_VARIABLE)?.is_some() || Path::new(SEARCHED).exists();
    let checked = is_set.then(|| Checked::load(given.into_iter().collect(), &ProcessEnvironment));
    Ok(checked.map(|checked| checked.map_err(|faults| faults.join("; "))))
}

/// Opens the ledger, whose schema must be up to date.
pub(super) async fn ledger(checked: &Checked) -> anyhow::Result<Ledger> {
    Ok(open_existing(checked, &ProcessEnvironment).await?)
}

/// Reads a credential.
pub(super) async fn find(ledger: &Ledger, id: CredentialId) -> anyhow::Result<Credential> {
    ledger.get(id).await?.with_context(|| format!("there is no credential {id} in the ledger"))
}

/// Reads a credential for an order that the service has to carry out.
pub(super) async fn find_served(checked: &Checked, ledger: &Ledger, id: CredentialId) -> anyhow::Result<Credential> {
    let credential = find(ledger, id).await?;
    configured(checked, &credential.registry)?;
    Ok(credential)
}

/// Returns the settings of a registry. Without them no service calls it, and no order about its credentials is carried out.
pub(super) fn configured<'a>(checked: &'a Checked, registry: &RegistryName) -> anyhow::Result<&'a CheckedRegistry> {
    let configured = checked.registries.iter().find(|configured| configured.name == *registry);
    configured.with_context(|| format!("registry {registry} is not configured: add it to `registries`"))
}

/// The person behind an order.
pub(super) fn actor(order: &OrderFlags) -> anyhow::Result<String> {
    let given = match &order.actor {
        Some(actor) => Some(actor.clone()),
        None => ProcessEnvironment.text("USER")?,
    };
    let Some(actor) = given else { bail!("who orders it is not known: give --as") };
    for (flag, text) in [("--as", &actor), ("--reason", &order.reason)] {
        let fits = !text.trim().is_empty() && text.len() <= LONGEST_TEXT && !text.chars().any(char::is_control);
        ensure!(fits, "{flag}: must be one line of 1 to {LONGEST_TEXT} bytes");
    }
    Ok(actor)
}
