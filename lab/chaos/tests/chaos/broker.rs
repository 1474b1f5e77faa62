//! A virtual host of its own on the real RabbitMQ: cut off, restarted, and looked into.

use std::path::PathBuf;
use std::time::Duration;

use fleet_model::names::message::DEAD_LETTER_REASON;
use message_broker::rabbitmq::{self, RabbitMq};
use message_broker::{Consume, Subscription};
use rustix::process::Signal;
use serde_json::Value;
use testkit::environment;
use tokio::process::Command;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

pub(crate) struct Broker {
    url: String,
    program: PathBuf,
    host: String,
    /// The script that ends and starts the server, and its instance; `None` for a server that was running before.
    script: Option<(String, String)>,
}

impl Broker {
    pub(crate) async fn make(url: &str, program: PathBuf, mark: u16) -> Self {
        let host = format!("chaos-{}-{mark}", std::process::id());
        let (server, _) = url.rsplit_once('/').unwrap();
        let script = environment::variable("REAL_RABBITMQ_SCRIPT").zip(environment::variable("REAL_RABBITMQ_NAME"));
        let broker = Self { url: format!("{server}/{host}"), program, host, script };
        broker.control(&["add_vhost", &broker.host]).await;
        broker.control(&["set_permissions", "-p", &broker.host, "guest", ".*", ".*", ".*"]).await;
        broker
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    async fn control(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.program).arg("-q").args(arguments).output().await.unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) async fn cut_connections(&self) {
        self.control(&["close_all_connections", "--vhost", &self.host, "chaos"]).await;
    }

    /// Ends the server and starts it again, if it is ours. Each message that it has confirmed must still be there.
    pub(crate) async fn restart(&self, signal: Signal, outage: Duration) -> bool {
        let Some((script, instance)) = &self.script else { return false };
        let act = async |action: &str| {
            let output = Command::new(script).args([action, instance]).output().await.unwrap();
            assert!(output.status.success(), "{action}: {}", String::from_utf8_lossy(&output.stderr));
        };
        act(if signal == Signal::KILL { "crash" } else { "stop" }).await;
        sleep(outage).await;
        act("start").await;
        true
    }

    /// Returns the messages that are left, by queue. Dead letters of events whose reconcile passes failed five times while
    /// everything was struck are dropped: the resource is reconciled by a later event, as the other invariants demand.
    pub(crate) async fn messages(&self) -> Vec<(String, u64)> {
        let mut left = self.queues().await;
        for (queue, count) in &mut left {
            if queue.ends_with("-dlq-sub") {
                *count -= self.drop_expected_dead_letters(*count).await;
            }
        }
        left.retain(|(_, count)| *count > 0);
        left
    }

    async fn queues(&self) -> Vec<(String, u64)> {
        let question = ["--formatter", "json", "list_queues", "-p", &self.host, "name", "messages"];
        let queues: Vec<Value> = serde_json::from_str(&self.control(&question).await).unwrap();
        let of = |queue: Value| (queue["name"].as_str().unwrap().to_owned(), queue["messages"].as_u64().unwrap());
        queues.into_iter().map(of).filter(|(_, count)| *count > 0).collect()
    }

    /// Takes this many dead letters and acks those that were delivered too often; returns their number.
    async fn drop_expected_dead_letters(&self, count: u64) -> u64 {
        let broker = RabbitMq::new(rabbitmq::Settings::new(self.url.clone().into())).unwrap();
        let broker = message_broker::Broker::RabbitMq(broker);
        let subscription = Subscription::new("hyperfleet-system-clusters", "pullsecret-adapter-sub").unwrap();
        let consume = Consume { max_attempts: None, ..Consume::default() };
        let stop = CancellationToken::new();
        let letters = broker.dead_letters(&subscription);
        let Ok(mut deliveries) = broker.subscribe(&letters, consume, &stop).await else { return 0 };
        let mut dropped = 0;
        for _letter in 0..count {
            let delivery = deliveries.next().await.unwrap();
            let reason = delivery.message().attribute(DEAD_LETTER_REASON).unwrap_or_default();
            if reason.starts_with("delivered ") && delivery.ack().await.is_ok() {
                dropped += 1;
            }
        }
        eprintln!("chaos: {dropped} events were dead-lettered, as they had failed too often");
        dropped
    }

    pub(crate) async fn end(&self) {
        self.control(&["delete_vhost", &self.host]).await;
    }
}
