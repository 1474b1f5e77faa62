//! `up` and `demo`: the whole fleet plane in one process.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::faults::Faults;
use daemon::log::{self, Components, Format};
use daemon::settings::traces::Export;
use daemon::traces::{self, Program, ProgramExport, StartError, Traces};
use daemon::{output, proxy};
use emulators::real_registry::{Programs, VARIABLES};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;

use crate::cli::{DemoArguments, Story, StreamFormat, UpArguments};
use crate::demo;
use crate::demo::credentials::Scene;
use crate::fleet::{Clients, Fleet, Places};
use crate::options::{self, Options, Store};
use crate::scenario::Scenario;
use crate::simulate;
use crate::store::StorePlace;

/// The component of a crate's log events outside of any part.
const COMPONENTS: Components = &[
    ("adapter", "adapter"),
    ("credentials", "credentials"),
    ("daemon", "local"),
    ("database", "api"),
    (hyperfleet_api::audit::TARGET, "api"),
    ("hyperfleet_api", "api"),
    ("hyperfleet_client", "client"),
    ("kubernetes", "cluster"),
    ("message_broker", "broker"),
    ("pull_secret_local", "local"),
    ("registry_account", "credentials"),
    ("sentinel", "sentinel"),
];

/// The crates whose events are logged.
const CRATES: &[&str] = &[
    "adapter",
    "credentials",
    "daemon",
    "database",
    hyperfleet_api::audit::TARGET,
    "hyperfleet_api",
    "hyperfleet_client",
    "kubernetes",
    "message_broker",
    "pull_secret_local",
    "registry_account",
    "sentinel",
];

/// Maximum wait for blocking threads at the end.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Runs the whole fleet plane until it is stopped.
pub(crate) fn up(arguments: &UpArguments) -> anyhow::Result<ExitCode> {
    let options = Options::of(arguments, &ProcessEnvironment).map_err(Faults::of_options)?;
    leave_proxies()?;
    let output = arguments.output;
    let _traces = start_log(options.level, output, options.export.clone())?;
    on_runtime(async |stop| {
        let mut fleet = tokio::select! {
            fleet = Fleet::start(&options) => fleet?,
            () = stop.cancelled() => return Ok(ExitCode::SUCCESS),
        };
        let clients = fleet.clients();
        let store = fleet.places.store.clone();
        let prepared = async {
            match (options.scenario, &store) {
                (Some(Scenario::OnCall), StorePlace::SecretManager(endpoint)) => {
                    simulate::all(&clients, endpoint).await
                }
                // The options refuse a scenario with another store.
                _ => Ok(()),
            }
        };
        let prepared = tokio::select! {
            () = stop.cancelled() => Err(None),
            failure = fleet.failure() => Err(Some(failure)),
            prepared = Box::pin(prepared) => {
                prepared.context("the scenario cannot be prepared").map_err(Some)
            }
        };
        let failure = if let Err(ended) = prepared {
            ended
        } else {
            print_ready(&fleet, &options, output)?;
            tokio::select! {
                () = stop.cancelled() => None,
                failure = fleet.failure() => Some(failure),
                never = kept(options.scenario, &clients) => match never {},
            }
        };
        drop(clients);
        fleet.stop().await;
        Ok(match failure {
            None => ExitCode::SUCCESS,
            Some(failure) => failed(&failure),
        })
    })
}

/// Plays what a scenario has going wrong again and again; does not end without one.
async fn kept(scenario: Option<Scenario>, clients: &Clients) -> Infallible {
    match scenario {
        Some(Scenario::OnCall) => simulate::prune(clients).await,
        None => std::future::pending().await,
    }
}

/// Shows the main job on embedded parts, or another story.
pub(crate) fn demo(arguments: &DemoArguments) -> anyhow::Result<ExitCode> {
    let (shown, programs) = match &arguments.story {
        None => (&arguments.shown, None),
        Some(Story::Credentials(shown)) => (shown, Some(registry_programs()?)),
    };
    let level = shown.log_level.as_deref().map(log::level).transpose().context("--log-level")?;
    leave_proxies()?;
    let _traces = level.map(|level| start_log(level, shown.output, None)).transpose()?;
    on_runtime(async |stop| {
        let store = options::store(arguments.store.store, &ProcessEnvironment);
        let store = store.map_err(|fault| Faults::of_options(vec![fault]))?;
        let options = Options { store, ..Options::embedded(level.unwrap_or(LevelFilter::OFF)) };
        let mut fleet = tokio::select! {
            fleet = Fleet::start(&options) => fleet?,
            () = stop.cancelled() => return Ok(interrupted()),
        };
        let scene = tokio::select! {
            scene = Box::pin(scene(&mut fleet, programs)) => Some(scene),
            () = stop.cancelled() => None,
        };
        let Some(scene) = scene else {
            fleet.stop().await;
            return Ok(interrupted());
        };
        let (places, clients) = (fleet.places.clone(), fleet.clients());
        let simulated = async {
            let mut printer = demo::Printer::new(shown.output);
            match &scene? {
                None => Box::pin(demo::run(&places, &clients, &mut printer)).await,
                Some(scene) => Box::pin(demo::credentials::run(scene, &places, &clients, &mut printer)).await,
            }
        };
        let result = tokio::select! {
            result = simulated => result.map(|()| ExitCode::SUCCESS),
            failure = fleet.failure() => Err(failure),
            () = stop.cancelled() => Ok(interrupted()),
        };
        fleet.stop().await;
        Ok(result.unwrap_or_else(|error| failed(&error)))
    })
}

/// Sets the scene of the story that needs a real registry.
async fn scene(fleet: &mut Fleet, programs: Option<Programs>) -> anyhow::Result<Option<Scene>> {
    match programs {
        None => Ok(None),
        Some(programs) => Scene::set(fleet, programs).await.map(Some),
    }
}

/// Returns the programs of a real registry, which the environment names.
fn registry_programs() -> anyhow::Result<Programs> {
    let missing = || {
        format!(
            "a real registry is missing: {} are not all set; `make demo-credentials` gets the programs and sets them",
            VARIABLES.join(", ")
        )
    };
    Programs::of(&ProcessEnvironment)?.with_context(missing)
}

fn interrupted() -> ExitCode {
    ExitCode::from(143)
}

fn failed(error: &anyhow::Error) -> ExitCode {
    output::note(format_args!("error: {error:#}"));
    ExitCode::FAILURE
}

/// Runs with a token that is cancelled by SIGTERM or SIGINT.
fn on_runtime(work: impl AsyncFnOnce(CancellationToken) -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start tokio")?;
    let ended = runtime.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
        Box::pin(work(stop)).await
    });
    runtime.shutdown_timeout(LAST_WAIT);
    ended
}

/// All plain HTTP here is on loopback and must not pass a proxy: if one is set, the process executes itself again without it.
fn leave_proxies() -> anyhow::Result<()> {
    if !proxy::VARIABLES.iter().any(|name| matches!(ProcessEnvironment.text(name), Ok(Some(_)))) {
        return Ok(());
    }
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut command = std::process::Command::new(program);
    for name in proxy::VARIABLES {
        command.env_remove(name);
    }
    Err(command.args(arguments).exec()).context("cannot start without proxies")
}

/// The log, for people on stderr, for programs on stdout; and the traces of all parts, as those of one service.
fn start_log(level: LevelFilter, output: StreamFormat, export: Option<Export>) -> Result<Traces, StartError> {
    let (format, writer): (_, Box<dyn Write + Send>) = match output {
        StreamFormat::Text => (Format::Text, Box::new(io::stderr())),
        StreamFormat::Json => (Format::Json, Box::new(io::stdout())),
    };
    let settings = log::Settings { format, level, crates: CRATES };
    let program = Program { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") };
    traces::start_for(COMPONENTS, settings, writer, export.map(|export| ProgramExport { export, program }))
}

/// Says where everything is.
fn print_ready(fleet: &Fleet, options: &Options, output: StreamFormat) -> anyhow::Result<()> {
    let places = &fleet.places;
    let store = places.store.address();
    if output == StreamFormat::Json {
        let listeners = places.listeners.iter().map(|(name, address)| (name.replace(' ', "_"), address.to_string()));
        let ready = json!({
            "event": "ready",
            "api": places.api,
            "kubernetes": places.kubernetes,
            "kubeconfig": places.kubeconfig,
            (places.store.key()): store,
            (format!("{}_token_file", places.store.key())): places.store.token_file(),
            "mirror": places.mirror.as_ref().map(|mirror| json!({
                (mirror.key()): mirror.address(), (format!("{}_token_file", mirror.key())): mirror.token_file(),
            })),
            "data_dir": fleet.folder.root(),
            "scenario": options.scenario.map(Scenario::name),
            "listeners": listeners.collect::<std::collections::BTreeMap<_, _>>(),
        });
        output::print(format_args!("{ready}\n"))?;
        return Ok(());
    }
    let is = |real: bool, embedded: &str| if real { "yours".to_owned() } else { embedded.to_owned() };
    let database = is(options.database.is_some(), "embedded, SQLite");
    let row = |name: &str, place: &str, what: String| [name.to_owned(), place.to_owned(), what];
    let mut rows = vec![
        row("HyperFleet API", &places.api, format!("database: {database}")),
        row(
            "Kubernetes",
            &places.kubernetes,
            is(options.kubeconfig.is_some(), "emulator; Jobs are processes of pull-secret"),
        ),
        row(
            places.store.name(),
            &store,
            is(!matches!(options.store, Store::Embedded | Store::EmbeddedAzure), "emulator"),
        ),
        row("broker", "-", is(options.broker.is_some(), "within this process, with a journal")),
    ];
    rows.extend(places.mirror.as_ref().map(|mirror| row(mirror.name(), &mirror.address(), "mirror".to_owned())));
    for (name, address) in places.listeners.iter().filter(|(name, _)| name.contains(' ')) {
        let path = if name.ends_with("health") { "readyz" } else { "metrics" };
        rows.push(row(name, &format!("http://{address}/{path}"), String::new()));
    }
    output::note(format_args!("\n{}", output::table(["PART", "PLACE", ""], rows)));
    let fate = if fleet.folder.is_kept() { "kept" } else { "removed at the end; keep it with --data-dir" };
    output::note(format_args!(
        "Data: {} ({fate}). For development and tests only. Ctrl-C ends it.",
        fleet.folder.root().display()
    ));
    for warning in options.warnings() {
        output::note(format_args!("warning: {warning}"));
    }
    if let Some(scenario) = options.scenario {
        output::note(scenario.exercise().trim_end());
    }
    output::print(exports(places))?;
    Ok(())
}

/// The lines that point other programs at the parts.
fn exports(places: &Places) -> String {
    let mut exports =
        format!("export HYPERFLEET_API_BASE_URL={}\nexport KUBECONFIG={}\n", places.api, quoted(&places.kubeconfig));
    for (name, value) in [&places.store].into_iter().chain(&places.mirror).flat_map(StorePlace::variables) {
        exports = format!("{exports}export {name}={}\n", quoted(Path::new(&value)));
    }
    exports
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = path.chars().all(|char| char.is_ascii_alphanumeric() || "/._-".contains(char));
    if is_plain { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}
