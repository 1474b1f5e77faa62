//! HyperFleet's Go services beside ours on the real brokers: their subscriber reads our Sentinel's events, our adapter reconciles
//! after their Sentinel's, and a subscription passes from one adapter to the other and back.
//!
//! They are played by `lab/interop/go/broker`, which is written with the libraries that they are written with.

use std::process::Stdio;
use std::time::Duration;

use emulators::kubernetes::{Kubernetes, Settings};
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use testkit::broker::{self, Broker};
use testkit::fleet::{self, Player, condition, document, view};
use testkit::rig::{Signal, signal};
use testkit::{go, program};

use crate::processes::{self, Servers};

/// Variables whose values another test must not have: neither they nor the subscriptions of a project have the topic's name.
const OWN: [&str; 3] = ["BROKER_GOOGLEPUBSUB_PROJECT_ID", "BROKER_RABBITMQ_EXCHANGE", "BROKER_RABBITMQ_QUEUE"];
/// Longer than any event takes.
const TIMEOUT: Duration = Duration::from_mins(4);
/// The subscription of our adapter, unless another one is set.
const SUBSCRIPTION: &str = "pullsecret-adapter-sub";

/// An API, and a topic of this test alone on a broker.
struct Fleet {
    player: Player,
    address: String,
    topic: String,
    broker: Broker,
    _api: Child,
    folder: TempDir,
}

/// A Go service's subscriber, and the events that it decodes.
struct Subscriber {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Fleet {
    /// `None`, with a line that says what is missing, without the broker or without the Go programs.
    async fn new(name: &str, broker: Option<Broker>) -> Option<Self> {
        let (mut broker, _program) = (broker?, go::command("broker")?);
        let topic = format!("interop-{name}-{}-clusters", std::process::id());
        for (_, value) in broker.iter_mut().filter(|(variable, _)| OWN.contains(variable)) {
            *value = format!("{value}-{topic}");
        }
        let folder = fleet::folder();
        let (api, address) = processes::api(folder.path(), &[]).await;
        Some(Self { player: Player::of(&address), address, topic, broker, _api: api, folder })
    }

    /// HyperFleet's side of the broker.
    fn theirs(&self, arguments: &[&str]) -> Command {
        let mut command = go::command("broker").unwrap();
        command.args(arguments).envs(self.broker.iter().cloned());
        command
    }

    /// HyperFleet's Sentinel publishes that a cluster has this generation.
    async fn they_publish(&self, id: &str, generation: u32) {
        succeeds(self.theirs(&["publish", &self.topic, id, &generation.to_string()])).await;
    }

    async fn they_subscribe(&self, subscription: &str) -> Subscriber {
        let mut child =
            self.theirs(&["subscribe", &self.topic, subscription]).stderr(Stdio::inherit()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("subscribed"));
        Subscriber { _child: child, lines }
    }

    async fn our_sentinel(&self) -> Child {
        let mut command = program::pull_secret(&["sentinel", "--resource-type=clusters"]);
        command.args(["--health-port=0", "--metrics-port=0", "--broker-topic", &self.topic]);
        command.args(["--hyperfleet-api-base-url", &self.address]).envs(self.broker.iter().cloned());
        processes::started(command, "Sentinel of clusters").await.0
    }
}

/// RabbitMQ as HyperFleet's charts use it.
fn of_the_charts() -> Option<Broker> {
    Some(with(broker::rabbitmq()?, &[("BROKER_RABBITMQ_EXCHANGE_TYPE", "topic")]))
}

/// RabbitMQ with the exchange's type that HyperFleet's services use by default, and with names of exchange and queue.
fn with_other_names() -> Option<Broker> {
    let settings = [
        ("BROKER_RABBITMQ_EXCHANGE_TYPE", "fanout"),
        ("BROKER_RABBITMQ_EXCHANGE", "events"),
        ("BROKER_RABBITMQ_QUEUE", "work"),
    ];
    Some(with(broker::rabbitmq()?, &settings))
}

fn with(mut broker: Broker, settings: &[(&'static str, &str)]) -> Broker {
    broker.extend(settings.iter().map(|(variable, value)| (*variable, (*value).to_owned())));
    broker
}

impl Subscriber {
    async fn next(&mut self) -> Value {
        let Ok(line) = timeout(TIMEOUT, self.lines.next_line()).await else { panic!("no event has come") };
        serde_json::from_str(&line.unwrap().unwrap()).unwrap()
    }
}

#[rstest]
#[case::rabbitmq("rabbitmq", of_the_charts())]
#[case::rabbitmq_with_other_names("names", with_other_names())]
#[case::pubsub("pubsub", broker::pubsub())]
#[tokio::test(flavor = "multi_thread")]
async fn their_adapters_read_what_our_sentinel_publishes(#[case] name: &str, #[case] broker: Option<Broker>) {
    let Some(fleet) = Fleet::new(&format!("{name}-read"), broker).await else { return };
    let (mut validation, mut dns) =
        (fleet.they_subscribe("validation-adapter-sub").await, fleet.they_subscribe("dns-adapter-sub").await);
    let _sentinel = fleet.our_sentinel().await;
    let id = fleet.player.create("cls-1", &document("a")).await.id;
    for subscriber in [&mut validation, &mut dns] {
        let event = subscriber.next().await;
        assert_eq!(event.get("invalid"), None, "{event}");
        assert_eq!(event["specversion"], "1.0");
        assert_eq!(event["type"], "com.redhat.hyperfleet.cluster.reconcile");
        assert_eq!(event["source"], "hyperfleet-sentinel");
        assert_eq!(event["datacontenttype"], "application/json");
        let href = format!("/api/hyperfleet/v1/clusters/{id}");
        assert_eq!(event["data"], json!({"id": id, "kind": "Cluster", "href": href, "generation": 1}));
        assert_eq!(event["uuid"], event["id"]);
        assert!(event["time"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{event}");
    }
}

#[rstest]
#[case::rabbitmq("rabbitmq", of_the_charts())]
#[case::rabbitmq_with_other_names("names", with_other_names())]
#[case::pubsub("pubsub", broker::pubsub())]
#[tokio::test(flavor = "multi_thread")]
async fn our_adapter_takes_over_from_theirs_and_gives_back(#[case] name: &str, #[case] broker: Option<Broker>) {
    let Some(fleet) = Fleet::new(&format!("{name}-reconcile"), broker).await else { return };
    let kubernetes = Kubernetes::start(Settings::default()).await.unwrap();
    let kubeconfig = fleet.folder.path().join("kubeconfig");
    daemon::file::replace(&kubeconfig, kubernetes.kubeconfig().as_bytes()).unwrap();
    let cluster = fleet::cluster(&kubeconfig).await;
    cluster.ensure_namespace(&fleet.topic).await.unwrap();

    // The subscription is theirs, and an event waits in it.
    succeeds(fleet.theirs(&["declare", &fleet.topic, SUBSCRIPTION])).await;
    let id = fleet.player.create("cls-1", &document("a")).await.id;
    fleet.they_publish(&id, 1).await;
    let servers = Servers { api: &fleet.address, topic: &fleet.topic, kubeconfig: &kubeconfig };
    let mut adapter = processes::adapter(fleet.folder.path(), servers, &fleet.broker).await;
    fleet.player.until(&id, |cluster| !view(cluster).is_null()).await;
    fleet.player.make_ready(&cluster, &id, 1).await;
    fleet.they_publish(&id, 1).await;
    fleet.player.until(&id, |cluster| condition(cluster, "Applied")["status"] == "True").await;

    signal(&adapter, Signal::TERM);
    assert!(adapter.wait().await.unwrap().success());
    fleet.they_publish("cls-2", 7).await;
    let mut theirs = fleet.they_subscribe(SUBSCRIPTION).await;
    // Events are delivered at least once: one of the first cluster may come again.
    let event = loop {
        let event = theirs.next().await;
        if event["data"]["id"] != id {
            break event;
        }
    };
    assert_eq!((&event["data"]["id"], &event["data"]["generation"]), (&json!("cls-2"), &json!(7)), "{event}");
    kubernetes.shutdown().await;
}

/// Runs a command to its end, which must be a good one.
async fn succeeds(mut command: Command) {
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
