//! `pull-secret sentinel`: the Sentinel as a process.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use daemon::environment::ProcessEnvironment;
use daemon::faults::Faults;
use daemon::output;
use fleet_model::names::trace::SERVICE_SENTINEL;
use hyperfleet_client::Client;
use kubernetes::Cluster;
use precondition::Outcome;
use sentinel::leader::Election;
use sentinel::position::PositionStore;
use sentinel::publisher::TopicPublisher;
use sentinel::run::{Explained, dry_run};
use sentinel::settings::{LeaderElection, Method};
use sentinel::{Checked, Sentinel};
use serde_json::json;

use crate::broker::broker;
use crate::cli::{self, OutputFormat, SentinelArguments, SentinelCommand};

/// The crates whose events are logged.
const CRATES: &[&str] = &["daemon", "hyperfleet_client", "kubernetes", "message_broker", "pull_secret", "sentinel"];

/// Does what the arguments say.
pub(crate) fn sentinel(arguments: SentinelArguments) -> anyhow::Result<ExitCode> {
    if let Some(SentinelCommand::ConfigDump(arguments)) = arguments.command {
        let dump = Checked::dump(arguments.flags.0, &ProcessEnvironment).map_err(Faults::of_configuration)?;
        return Ok(output::print(dump.render(arguments.output))?);
    }
    let checked = Checked::load(arguments.flags.0, &ProcessEnvironment).map_err(Faults::of_configuration)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start tokio")?;
    if arguments.dry_run {
        return runtime.block_on(explain(&checked, arguments.id.as_deref(), arguments.output));
    }
    let _traces = cli::start(checked.settings.log.of(CRATES), &checked.settings.tracing, SERVICE_SENTINEL)?;
    runtime.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
        let broker = broker(checked.settings.broker.clone()).context("invalid configuration")?;
        let publisher = TopicPublisher { broker, topic: checked.topic.clone() };
        let (election, positions) = election(&checked).await?;
        let (what, topic) = (checked.resource_type.clone(), checked.topic.clone());
        let sentinel = Sentinel::prepare(checked, publisher, election, cli::build().0).await?.with_positions(positions);
        output::note(format_args!(
            "Sentinel of {what}, events to {topic}, probes on {}, metrics on {}. Ctrl-C stops it.",
            sentinel.health_address(),
            sentinel.metrics_address(),
        ));
        Box::pin(sentinel.run(stop)).await;
        Ok(ExitCode::SUCCESS)
    })
}

/// The election, and the place where a leader's position is kept for its successor.
async fn election(checked: &Checked) -> anyhow::Result<(Election, Option<PositionStore>)> {
    let LeaderElection { method, name, namespace, identity, database_url, position_file } =
        checked.settings.leader_election.clone();
    let shard = checked.shard.to_string().replace('/', "-of-");
    let name = name.unwrap_or_else(|| format!("{}-{}-{shard}", checked.settings.sentinel.name, checked.resource_type));
    Ok(match method {
        Method::None => (Election::Alone, position_file.map(PositionStore::File)),
        Method::Lease => {
            let call_timeout = Duration::from_secs(3);
            let settings = kubernetes::Settings { call_timeout, ..kubernetes::Settings::default() };
            let cluster = Cluster::connect(&settings).await.context("leader_election.method: lease")?;
            let holder = identity.unwrap_or_else(|| format!("sentinel-{:016x}", rand::random::<u64>()));
            let namespace = namespace.unwrap_or_default();
            let positions = PositionStore::lease(cluster.clone(), namespace.clone(), &name);
            (Election::by_lease(cluster, namespace, name, holder), Some(positions))
        }
        Method::Postgres => {
            let url = database_url.context("leader_election.database_url: is missing")?;
            let positions = PositionStore::row(url.clone(), name.clone());
            (Election::by_lock(url, &name), Some(positions))
        }
    })
}

async fn explain(checked: &Checked, id: Option<&str>, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let client = Client::new(checked.client.clone())?;
    let mut count = 0_u64;
    let mut written = Ok(ExitCode::SUCCESS);
    dry_run(checked, &client, id, |explained| {
        count += 1;
        written = output::print(match format {
            OutputFormat::Table => text(&explained),
            OutputFormat::Json => line(&explained),
        });
        written.is_ok()
    })
    .await?;
    if let (Some(id), 0) = (id, count) {
        bail!("there is no {id} among the {}", checked.resource_type);
    }
    Ok(written?)
}

fn text(Explained { id, because, conditions, .. }: &Explained) -> String {
    let mut text = format!("{id}  {because}\n");
    for (adapter, outcome, why) in conditions {
        // Writing to a String cannot fail, here and below.
        let _infallible = writeln!(text, "  publish_when.{adapter}: {}", word(*outcome));
        for line in why.lines() {
            let _infallible = writeln!(text, "    {line}");
        }
    }
    text
}

fn line(Explained { id, reason, because, conditions }: &Explained) -> String {
    let condition = |(adapter, outcome, why): &(String, Outcome, String)| json!({ "adapter": adapter, "outcome": word(*outcome), "why": why });
    let conditions: Vec<_> = conditions.iter().map(condition).collect();
    let object = json!({
        "id": id, "reason": reason.to_string(), "publishes": reason.publishes(), "because": because,
        "publishWhen": conditions,
    });
    format!("{object}\n")
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Met => "met",
        Outcome::NotMet => "not met",
        Outcome::Unanswerable => "cannot be answered",
    }
}
