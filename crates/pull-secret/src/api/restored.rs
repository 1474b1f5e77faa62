//! `pull-secret api restored`: the act that follows a restore of the database from a backup.

use std::process::ExitCode;

use anyhow::Context as _;
use daemon::environment::ProcessEnvironment;
use daemon::faults::Faults;
use daemon::output;
use hyperfleet_api::decide::restore::RAISE;
use hyperfleet_api::restore::restored as begin_anew;
use hyperfleet_api::service::Service;
use hyperfleet_api::settings::Settings;
use hyperfleet_api::spec_schema::SpecSchemas;
use hyperfleet_api::store::Store;
use jiff::Timestamp;
use serde_json::json;

use crate::cli::OutputFormat;

/// Migrates the restored database, begins a new epoch of the change stream and raises all generations.
pub(super) fn restored(settings: &Settings, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        let registry = settings.registry().map_err(Faults::of_configuration)?;
        let source = settings.database.source(&ProcessEnvironment).map_err(anyhow::Error::msg)?;
        let store = Store::open(&source, settings.database.pool.into())?;
        // The backup may be of an earlier version.
        store.migrate(settings.database.pool.advisory_lock_timeout, Timestamp::now()).await?;
        let service = Service::new(store, registry, SpecSchemas::default(), None).map_err(anyhow::Error::msg)?;
        let epoch = format!("{:08x}", rand::random::<u32>());
        let done = begin_anew(&service, &epoch, Timestamp::now()).await?;
        let (number, begins) = (done.raised, done.begins);
        Ok(output::print(match format {
            OutputFormat::Json => {
                let done = json!({ "raised": number, "raisedBy": RAISE, "begins": begins.to_string() });
                format!("{done:#}\n")
            }
            OutputFormat::Table => format!(
                "generations of {number} resources raised by {RAISE}; the change stream begins anew at {begins}\n"
            ),
        })?)
    })
}
