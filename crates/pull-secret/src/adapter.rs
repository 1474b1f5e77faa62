//! `pull-secret adapter`: the Pull Secret Adapter as a process.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use adapter::config::{BrokerKind, ExchangeType};
use adapter::dry_run::{DryRun, dry_run};
use adapter::{Adapter, Checked, Parts, Stores};
use anyhow::{Context as _, bail, ensure};
use daemon::environment::ProcessEnvironment;
use daemon::faults::Faults;
use daemon::output;
use fleet_model::names::trace::SERVICE_ADAPTER;
use hyperfleet_client::Resource;
use jiff::Timestamp;
use kubernetes::leadership::Leadership;
use kubernetes::{Cluster, cluster};
use message_broker::rabbitmq::Exchange;
use message_broker::{Event, Message};
use secret_store::Endpoint;

use crate::broker::{self, Connection};
use crate::cli::{self, AdapterArguments, AdapterCommand, AdapterFlags, DryRunArguments, OutputFormat};

/// The crates whose events are logged.
const CRATES: &[&str] = &["adapter", "daemon", "hyperfleet_client", "kubernetes", "message_broker", "pull_secret"];

/// Does what the arguments say; without a command, works on events.
pub(crate) fn adapter(arguments: AdapterArguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        None => serve(arguments.flags),
        Some(AdapterCommand::Serve(flags)) => serve(flags),
        Some(AdapterCommand::DryRun(arguments)) => explain(arguments),
        Some(AdapterCommand::ConfigDump(arguments)) => {
            let dump = Checked::dump(arguments.flags.0, &ProcessEnvironment).map_err(Faults::of_configuration)?;
            Ok(output::print(dump.render(arguments.output))?)
        }
        Some(AdapterCommand::Schema) => Ok(output::print(format_args!("{:#}\n", adapter::config::schema()))?),
    }
}

fn serve(flags: AdapterFlags) -> anyhow::Result<ExitCode> {
    let config = checked(flags)?;
    let _traces = cli::start(config.given.log.of(CRATES), &config.given.tracing, SERVICE_ADAPTER)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
        let parts = parts(&config).await?;
        let what = format!("{} of {}", config.name, config.resource_type);
        let subscription = config.subscription.clone();
        let adapter = Box::pin(Adapter::prepare(config, parts, cli::build().0)).await?;
        output::note(format_args!(
            "{what}, events from {subscription}, probes on {}, metrics on {}. Ctrl-C stops it.",
            adapter.health_address(),
            adapter.metrics_address(),
        ));
        Box::pin(adapter.run(stop)).await;
        Ok(ExitCode::SUCCESS)
    })
}

/// Connects the adapter to broker and Kubernetes as configured.
async fn parts(config: &Checked) -> anyhow::Result<Parts> {
    let settings = config.given.spec.broker.clone();
    let connection = Connection {
        rabbitmq_url: settings.url,
        exchange: settings.exchange,
        exchange_kind: settings.exchange_type.map(|kind| match kind {
            ExchangeType::Topic => Exchange::Topic,
            ExchangeType::Fanout => Exchange::Fanout,
            ExchangeType::Direct => Exchange::Direct,
            ExchangeType::Headers => Exchange::Headers,
        }),
        queue: settings.queue,
        project: settings.project_id,
        may_create: settings.create_if_missing,
        ..Connection::default()
    };
    let broker = match settings.kind {
        None => bail!("broker type: missing; set BROKER_TYPE or spec.broker.type to rabbitmq or googlepubsub"),
        Some(BrokerKind::RabbitMq) => broker::rabbitmq(connection)?,
        Some(BrokerKind::GooglePubSub) => broker::pubsub(connection)?,
    };
    let given = &config.given.spec.kubernetes;
    let settings = cluster::Settings {
        kubeconfig: given.kubeconfig.clone(),
        context: given.context.clone(),
        call_timeout: given.timeout,
        context_setting: Some("spec.kubernetes.context"),
        ..cluster::Settings::default()
    };
    let cluster = Cluster::connect(&settings).await.context("spec.kubernetes")?;
    let leadership = given.lease.clone().map(|lease| {
        let made_up = || format!("{}-{:016x}", config.name, rand::random::<u64>());
        let holder = given.identity.clone().unwrap_or_else(made_up);
        Leadership::new(cluster.clone(), config.namespace.clone(), lease, holder)
    });
    let stores = Some(stores(config)?);
    Ok(Parts { broker, cluster, leadership, stores })
}

/// Returns the secret stores as this process's identity sees them.
fn stores(config: &Checked) -> anyhow::Result<Stores> {
    let endpoint = config.given.spec.store_check.endpoint.as_deref();
    let custom = endpoint.map(|endpoint| endpoint.parse().map(Endpoint::Custom));
    let custom = custom.transpose().context("spec.storeCheck.endpoint")?;
    let endpoint = match custom {
        Some(custom) => custom,
        None => crate::store::endpoint()?,
    };
    let stores: Vec<_> = config.stores.all().into_values().chain(&config.mirror).cloned().collect();
    let faults: Vec<_> = stores.iter().filter_map(|store| crate::store::fault_of(store.kind())).collect();
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(crate::store::stores(endpoint, stores))
}

fn checked(flags: AdapterFlags) -> anyhow::Result<Checked> {
    Checked::load(flags.0, &ProcessEnvironment).map_err(|faults| Faults::of_configuration(faults).into())
}

fn explain(arguments: DryRunArguments) -> anyhow::Result<ExitCode> {
    let DryRunArguments { event, cluster, output, flags } = arguments;
    let mut flags = flags;
    // A dry run asks no server, so no address is needed.
    flags.0.entry("hyperfleet-api-base-url").or_insert_with(|| "http://localhost:8000".to_owned());
    let config = checked(flags)?;
    let event = event.map(|path| read(&path, "--event")).transpose()?;
    let event =
        event.map(|body| Event::decode(&Message { body, ..Message::default() })).transpose().context("--event")?;
    let resource: Resource = serde_json::from_slice(&read(&cluster, "--cluster")?).map_err(|error| {
        anyhow::anyhow!("--cluster: is no cluster as JSON (line {}, column {})", error.line(), error.column())
    })?;
    let decided = dry_run(&config, event.as_ref(), &resource, Timestamp::now())?;
    match output {
        OutputFormat::Json => output::print(format_args!("{:#}\n", decided.json()))?,
        OutputFormat::Table => output::print(readable(&decided))?,
    };
    Ok(if decided.plan.starts_run().is_some() || decided.unmet.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn read(path: &Path, flag: &str) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| anyhow::anyhow!("{flag}: cannot be read: {}", error.kind()))
}

fn readable(decided: &DryRun) -> String {
    let plan = &decided.plan;
    let mut text = format!("{}  {}\n  {}\n", decided.id, plan.reason, plan.because);
    // Writing to a String cannot fail, here and below.
    text.push_str("actions\n");
    let actions = decided.actions();
    if actions.is_empty() {
        text.push_str("  none\n");
    }
    for action in actions {
        let _infallible = writeln!(text, "  {action}");
    }
    text.push_str("report\n");
    for condition in &plan.conditions {
        let (kind, status, reason) = (condition.kind, condition.status.as_str(), &condition.reason);
        let _infallible = writeln!(text, "  {kind:<10} {status:<8} {reason}: {}", condition.message);
    }
    for unmet in &decided.unmet {
        let _infallible = writeln!(text, "not met: {}", unmet.line);
        for line in unmet.detail.iter().flat_map(|detail| detail.lines()) {
            let _infallible = writeln!(text, "  {line}");
        }
    }
    text
}
