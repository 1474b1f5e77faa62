//! `pull-secret api rekey`: the rotation of the keys that encrypt pull secrets.

use std::process::ExitCode;

use anyhow::Context as _;
use daemon::environment::ProcessEnvironment;
use daemon::faults::Faults;
use daemon::output;
use hyperfleet_api::decide::change::RequestInfo;
use hyperfleet_api::rekey::{keys_in_use, missing, rekey as encrypt_anew, remove_lost};
use hyperfleet_api::service::Service;
use hyperfleet_api::settings::Settings;
use hyperfleet_api::spec_schema::SpecSchemas;
use hyperfleet_api::store::Store;
use hyperfleet_api::store::schema::SCHEMA;
use jiff::Timestamp;

use crate::cli::OutputFormat;
use crate::rekeyed::Rekeyed;

/// Encrypts every stored pull secret with the first key; exits with 1 if some cannot be decrypted.
pub(super) fn rekey(lost_key: Option<&str>, settings: &Settings, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        let source = settings.database.source(&ProcessEnvironment).map_err(anyhow::Error::msg)?;
        let keyring =
            settings.keyring().map_err(anyhow::Error::msg)?.context("pull_secret.keys: no key is configured")?;
        let store = Store::open(&source, settings.database.pool.into())?;
        let pending = SCHEMA.pending(store.database()).await?;
        anyhow::ensure!(pending.is_empty(), "the schema is not up to date: run `pull-secret api migrate` first");
        let mut removed = Vec::new();
        if let Some(key) = lost_key {
            anyhow::ensure!(
                !keyring.has(key),
                "--remove-lost-key: {key} is in pull_secret.keys, and what it encrypts can be read"
            );
            removed = remove(key, store.clone(), settings).await?;
        }
        if let Some(missing) = missing(&keys_in_use(&store).await?, Some(&keyring)) {
            output::note(format_args!("error: {missing}"));
        }
        let done = encrypt_anew(&store, &keyring).await?;
        output::note(format_args!("{} pull secrets encrypted anew", done.resealed));
        for id in &done.unopened {
            output::note(format_args!("error: the pull secret of {id} cannot be decrypted and stays as it is"));
        }
        let keys = keys_in_use(&store).await?;
        Rekeyed { done: done.resealed, failed: done.unopened, removed, keys }.print(format)
    })
}

/// Removes what is encrypted with a lost key, and prints the ids of its resources.
async fn remove(key: &str, store: Store, settings: &Settings) -> anyhow::Result<Vec<String>> {
    let registry = settings.registry().map_err(Faults::of_configuration)?;
    let service = Service::new(store, registry, SpecSchemas::default(), None).map_err(anyhow::Error::msg)?;
    let removed = remove_lost(&service, key, &RequestInfo::of_operator(Timestamp::now())).await?;
    for id in &removed {
        output::note(format_args!("the pull secret of {id} is removed: send its content again"));
    }
    output::note(format_args!("{} pull secrets removed", removed.len()));
    Ok(removed)
}
