//! `pull-secret events`: prints the events that the Sentinel publishes, and replays dead letters.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::environment::ProcessEnvironment;
use daemon::faults::Faults;
use daemon::output::{self, plain};
use daemon::settings::Loaded;
use fleet_model::names::message::DEAD_LETTER_REASON;
use jiff::Timestamp;
use message_broker::replay::Fate;
use message_broker::{Consume, Delivery, Event, Format, Subscription};
use sentinel::settings::table::EVENTS;
use sentinel::settings::{self, EventsSettings};

use crate::broker::{broker, broker_of_queues};
use crate::cli::{EventsCommand, ReplayArguments, TailArguments};

/// Does what the arguments say.
pub(crate) fn events(command: EventsCommand) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start tokio")?;
    match command {
        EventsCommand::Tail(arguments) => runtime.block_on(tail(arguments)),
        EventsCommand::Replay(arguments) => runtime.block_on(replay(arguments)),
    }
}

fn settings(flags: BTreeMap<&'static str, String>) -> anyhow::Result<EventsSettings> {
    let loaded = settings::read(&EVENTS, flags, &ProcessEnvironment);
    Ok(loaded.and_then(Loaded::done).map_err(Faults::of_configuration)?)
}

/// Publishes dead letters again, and prints a line for each.
async fn replay(arguments: ReplayArguments) -> anyhow::Result<ExitCode> {
    let ReplayArguments { subscription, queue, idle, flags } = arguments;
    let settings = settings(flags.0)?;
    let topic = settings.clients.broker.topic.unwrap_or_default();
    let subscription = Subscription::new(&topic, &subscription).context("the topic's or subscription's name")?;
    let broker = broker_of_queues(settings.broker, queue)?;
    let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
    let (mut replayed, mut kept, mut printed) = (0_u64, 0_u64, Ok(()));
    let each = |letter: &Delivery, fate| {
        let (count, word) = match fate {
            Fate::Replayed => (&mut replayed, "replayed"),
            Fate::Kept => (&mut kept, "kept"),
        };
        *count += 1;
        let reason = letter.message().attribute(DEAD_LETTER_REASON).unwrap_or("out of attempts");
        let shown = output::print(format_args!("{word}  {}  {}", plain(reason), line(letter, false)));
        printed = std::mem::replace(&mut printed, Ok(())).and(shown.map(drop));
    };
    message_broker::replay::replay(&broker, &subscription, Duration::from_secs(idle), &stop, each).await?;
    printed?;
    output::note(format_args!("{replayed} replayed, {kept} kept"));
    Ok(ExitCode::SUCCESS)
}

async fn tail(arguments: TailArguments) -> anyhow::Result<ExitCode> {
    let TailArguments { json, count, flags } = arguments;
    let settings = settings(flags.0)?;
    let names = settings.clients.broker;
    let topic = names.topic.unwrap_or_default();
    let subscription =
        Subscription::new(&topic, &names.subscription_id).context("the topic's or subscription's name")?;
    let broker = broker(settings.broker)?;
    let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
    let consume = Consume { max_attempts: None, ..Consume::default() };
    let mut deliveries = broker.subscribe(&subscription, consume, &stop).await?;
    output::note(format_args!("listening as {subscription}; Ctrl-C stops it"));
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0 {
        let Some(delivery) = deliveries.next().await else { break };
        output::print(line(&delivery, json))?;
        delivery.ack().await?;
        left -= 1;
    }
    // An unacknowledged event is delivered again, to the next subscriber.
    let _comes_again = deliveries.drain(Duration::from_secs(3)).await;
    Ok(ExitCode::SUCCESS)
}

/// The line that is printed for a delivery.
fn line(delivery: &Delivery, json: bool) -> String {
    match delivery.event() {
        Ok(event) if json => String::from_utf8_lossy(&event.encode(Format::Structured).body).into_owned() + "\n",
        Ok(event) => readable(event, Timestamp::now()),
        Err(malformed) => format!("{malformed}\n"),
    }
}

fn readable(event: &Event, now: Timestamp) -> String {
    let time = event.time.unwrap_or(now).strftime("%H:%M:%S%.3f");
    let subject = event.subject.as_deref().unwrap_or("-");
    let data = event.json().map(ToString::to_string).unwrap_or_default();
    let data = plain(&data);
    format!("{time}  {}  {}  {data}\n", plain(&event.kind), plain(subject))
}
