//! `pull-secret api`: the HyperFleet API as a process.

mod grants;
mod rekey;
mod restored;

use std::process::ExitCode;

use anyhow::Context as _;
use daemon::environment::ProcessEnvironment;
use daemon::faults::Faults;
use daemon::output;
use fleet_model::names::trace::SERVICE_API;
use hyperfleet_api::audit;
use hyperfleet_api::reload::Source;
use hyperfleet_api::server::{Build, Server};
use hyperfleet_api::settings::Settings;
use hyperfleet_api::store::Store;
use hyperfleet_api::store::schema::SCHEMA;
use jiff::Timestamp;
use serde_json::json;

use crate::cli::{self, ApiArguments, ApiCommand, ApiFlags, GrantsArguments, MigrateArguments, OutputFormat};

/// The crates whose events are logged.
const CRATES: &[&str] = &[audit::TARGET, "daemon", "database", "hyperfleet_api", "pull_secret"];

/// Does what the arguments say; without a command, serves.
pub(crate) fn api(arguments: ApiArguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        None => serve(arguments.flags),
        Some(ApiCommand::Serve(flags)) => serve(flags),
        Some(ApiCommand::Migrate(arguments)) => migrate(arguments),
        Some(ApiCommand::Rekey(arguments)) => {
            rekey::rekey(arguments.remove_lost_key.as_deref(), &settings(arguments.flags)?, arguments.output)
        }
        Some(ApiCommand::Restored(arguments)) => restored::restored(&settings(arguments.flags)?, arguments.output),
        Some(ApiCommand::Grants(GrantsArguments { identity, flags })) => grants::grants(identity, &settings(flags)?),
        Some(ApiCommand::ConfigDump(arguments)) => {
            let dump = Settings::dump(arguments.flags.0, &ProcessEnvironment).map_err(Faults::of_configuration)?;
            Ok(output::print(dump.render(arguments.output))?)
        }
        Some(ApiCommand::Openapi(flags)) => {
            let registry = settings(flags)?.registry().map_err(Faults::of_configuration)?;
            let document = hyperfleet_api::openapi::document(&registry, cli::build().0);
            Ok(output::print(format_args!("{document:#}\n"))?)
        }
    }
}

fn serve(flags: ApiFlags) -> anyhow::Result<ExitCode> {
    let file = Settings::file(&flags.0, &ProcessEnvironment);
    let source = Source::new(file, move || Settings::load(flags.0.clone(), &ProcessEnvironment));
    let (settings, files) = source.read().map_err(Faults::of_configuration)?;
    let _traces = cli::start(settings.log.of(CRATES), &settings.tracing, SERVICE_API)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
        let (version, time) = cli::build();
        let scheme = if settings.server.tls.enabled { "https" } else { "http" };
        let server =
            Server::prepare(settings, &ProcessEnvironment, Build { version, time }).await?.reloading(source, files);
        output::note(format_args!(
            "HyperFleet API on {scheme}://{}, probes on {}, metrics on {}. Ctrl-C stops it.",
            server.address(),
            server.health_address(),
            server.metrics_address(),
        ));
        Box::pin(server.run(stop)).await.context("the database cannot be used")?;
        Ok(ExitCode::SUCCESS)
    })
}

fn migrate(arguments: MigrateArguments) -> anyhow::Result<ExitCode> {
    let settings = settings(arguments.flags)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        let source = settings.database.source(&ProcessEnvironment).map_err(anyhow::Error::msg)?;
        let store = Store::open(&source, settings.database.pool.into())?;
        if arguments.check {
            let pending = SCHEMA.pending(store.database()).await?;
            if arguments.output == OutputFormat::Json {
                output::print(format_args!("{:#}\n", json!({ "pending": pending })))?;
            } else if pending.is_empty() {
                output::note("the schema is up to date");
            } else {
                output::print(pending.join("\n") + "\n")?;
            }
            return Ok(if pending.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        let timeout = settings.database.pool.advisory_lock_timeout;
        let taken = store.migrate(timeout, Timestamp::now()).await?;
        match taken.as_slice() {
            taken if arguments.output == OutputFormat::Json => {
                output::print(format_args!("{:#}\n", json!({ "applied": taken })))?;
            }
            [] => output::note("the schema was up to date"),
            taken => drop(output::print(taken.join("\n") + "\n")?),
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn settings(flags: ApiFlags) -> anyhow::Result<Settings> {
    Settings::load(flags.0, &ProcessEnvironment).map_err(|faults| Faults::of_configuration(faults).into())
}
