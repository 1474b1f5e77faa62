//! `pull-secret events`: prints the events that the Sentinel publishes, and handles dead letters.

mod common;
mod dead_letters;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::output::{self, plain};
use jiff::Timestamp;
use message_broker::{Broker, Consume, Delivery, Event, Format, Subscription};

use crate::broker::broker;
use crate::cli::{EventsCommand, OutputFormat, TailArguments};

/// Time between two looks at whether the broker is there.
const LOOK: Duration = Duration::from_secs(2);

/// Does what the arguments say.
pub(crate) fn events(command: EventsCommand) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start tokio")?;
    match command {
        EventsCommand::Tail(arguments) => runtime.block_on(tail(arguments)),
        EventsCommand::DeadLetters { command } => runtime.block_on(dead_letters::handle(command)),
    }
}

async fn tail(arguments: TailArguments) -> anyhow::Result<ExitCode> {
    let TailArguments { output: format, count, context, flags } = arguments;
    let settings = common::settings(flags.0, &context)?;
    let names = settings.clients.broker;
    let topic = names.topic.unwrap_or_default();
    let is_temporary = names.subscription_id.is_none();
    let own = || format!("events-tail-{:08x}", rand::random::<u32>());
    let subscription = Subscription::new(&topic, &names.subscription_id.unwrap_or_else(own))
        .context("the topic's or subscription's name")?;
    let broker = broker(settings.broker)?;
    let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
    let consume = Consume { max_attempts: None, is_temporary, ..Consume::default() };
    let mut deliveries = broker.subscribe(&subscription, consume, &stop).await?;
    let mut unavailable = None;
    say(&broker, &subscription, &mut unavailable, true).await;
    let mut look = tokio::time::interval(LOOK);
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0 {
        let delivery = tokio::select! {
            biased;
            delivery = deliveries.next() => delivery,
            _tick = look.tick() => {
                say(&broker, &subscription, &mut unavailable, false).await;
                continue;
            }
        };
        let Some(delivery) = delivery else { break };
        output::print(line(&delivery, format))?;
        delivery.ack().await?;
        left -= 1;
    }
    // An unacknowledged event is delivered again, to the next subscriber.
    let _comes_again = deliveries.drain(Duration::from_secs(3)).await;
    Ok(ExitCode::SUCCESS)
}

/// Says that the subscription receives, or why it does not, where that is `new` or has changed since `unavailable` was noted.
async fn say(broker: &Broker, subscription: &Subscription, unavailable: &mut Option<String>, new: bool) {
    let subscribers = broker.health().await.subscribers;
    let now = subscribers.into_values().find_map(Result::err).map(|error| plain(&error.to_string()));
    if now.is_some() == unavailable.is_some() && !new {
        return;
    }
    match &now {
        None => output::note(format_args!("listening as {subscription}; Ctrl-C stops it")),
        Some(error) => output::note(format_args!("the broker is unavailable, retrying: {error}; Ctrl-C stops it")),
    }
    *unavailable = now;
}

/// The line that is printed for a delivery.
fn line(delivery: &Delivery, format: OutputFormat) -> String {
    match delivery.event() {
        Ok(event) if format == OutputFormat::Json => {
            String::from_utf8_lossy(&event.encode(Format::Structured).body).into_owned() + "\n"
        }
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
