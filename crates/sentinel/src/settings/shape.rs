//! Declares the Sentinel's settings: each with its key, flag, type, default, bounds and sentence.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use daemon::settings::common::{self, Address, Log};
use daemon::settings::traces::Tracing;
use daemon::settings::{Kind, Row};
use hyperfleet_client::Api;
use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::event::EventType;
use crate::shard::Selector;

daemon::settings! {
    /// Settings of the Sentinel, every one given or defaulted.
    pub struct Settings {
        /// The Sentinel itself
        pub sentinel: Naming,
        /// Resources to watch, by their plural in the API's paths, such as `clusters`
        pub resource_type: Option<String> = Row::at("resource_type").flag("resource-type").required(),
        /// Share of the resources that this Sentinel publishes, such as `2/8`
        pub shard: String = Row::at("shard").flag("shard").default("1/1"),
        /// Clients
        pub clients: Clients,
        /// Interval of lists where the API has no change stream
        pub poll_interval: Duration = Row::at("poll_interval").flag("poll-interval").default("5s").least("1s"),
        /// Interval of complete lists beside the change stream
        pub sweep_interval: Duration = Row::at("sweep_interval").flag("sweep-interval").default("5m").least("10s"),
        /// Type of events: HyperFleet's `….reconcile`, or the specification's `cluster.create`, `.update`, `.delete`
        pub event_type: EventType = Row::at("event_type").flag("event-type").default("reconcile"),
        /// Intervals of events
        pub decision: Decision,
        /// Publishing
        pub publish: Publish,
        /// Leader election
        pub leader_election: LeaderElection,
        /// The log
        pub log: Log,
        /// Traces
        pub tracing: Tracing,
        /// Probes
        pub health: Address = common::HEALTH,
        /// Metrics
        pub metrics: Address = common::METRICS,
        /// The broker
        pub broker: Broker,
        /// Labels of the resources to watch
        #[serde(default)]
        pub resource_selector: Vec<Selector> = Row::at("resource_selector"),
        /// Members of an event's data
        #[serde(default)]
        pub message_data: Option<Map<String, Value>> = Row::at("message_data"),
        /// Expressions by adapter: an event is published while one of them is met
        #[serde(default)]
        pub publish_when: BTreeMap<String, String> = Row::at("publish_when"),
    }
}

impl daemon::settings::Setting for EventType {
    const KIND: Kind = Kind::Choice(&[&["reconcile"], &["specification"]]);
}

daemon::settings! {
    /// Settings of `pull-secret events`.
    pub struct EventsSettings {
        /// Clients
        pub clients: EventsClients,
        /// The broker
        pub broker: Broker,
    }
}

daemon::settings! {
    /// Clients of `pull-secret events`.
    pub struct EventsClients {
        /// The subscription
        pub broker: Subscription,
    }
}

daemon::settings! {
    /// The subscription of `pull-secret events`.
    pub struct Subscription {
        /// Topic to subscribe to
        pub topic: Option<String> = Row::at("clients.broker.topic").flag("broker-topic").required(),
        /// Name of a subscription that stays when `events tail` ends, and in which events wait; subscribers of the same name share
        /// its events. Without it, one of its own, of which nothing is left
        pub subscription_id: Option<String> =
            Row::at("clients.broker.subscription_id").flag("broker-subscription-id"),
    }
}

daemon::settings! {
    /// The Sentinel itself.
    pub struct Naming {
        /// Name sent in User-Agent
        pub name: String = Row::at("sentinel.name").flag("name").default("hyperfleet-sentinel"),
    }
}

daemon::settings! {
    /// Clients of the Sentinel.
    pub struct Clients {
        /// The HyperFleet API
        pub hyperfleet_api: Api,
        /// The broker
        pub broker: Topic,
    }
}

daemon::settings! {
    /// The topic.
    pub struct Topic {
        /// Topic that events are published to
        pub topic: Option<String> = Row::at("clients.broker.topic").flag("broker-topic").required(),
    }
}

daemon::settings! {
    /// Intervals of events.
    #[derive(Copy)]
    pub struct Decision {
        /// Time until the event of a resource that is not reconciled is published again; doubles each time
        pub min_interval: Duration = Row::at("decision.min_interval")
            .flag("min-interval")
            .default("10s")
            .least("1s"),
        /// Maximum time until the event of a resource that is not reconciled is published again
        pub max_interval: Duration = Row::at("decision.max_interval")
            .flag("max-interval")
            .default("1m"),
        /// Interval of events of a reconciled resource
        pub resync: Duration = Row::at("decision.resync").flag("resync").default("30m").least("1m"),
    }
}

daemon::settings! {
    /// Publishing.
    #[derive(Copy)]
    pub struct Publish {
        /// Maximum in-flight publishes
        pub concurrency: usize = Row::at("publish.concurrency").default("32").within("1", "1000"),
    }
}

daemon::settings! {
    /// Leader election among several Sentinels.
    pub struct LeaderElection {
        /// Leader election: by a Lease of Kubernetes or by an advisory lock of PostgreSQL
        pub method: Method = Row::at("leader_election.method").flag("leader-election").default("none"),
        /// Name of the Lease or lock
        pub name: Option<String> =
            Row::at("leader_election.name").unset("made of `sentinel.name`, `resource_type` and `shard`"),
        /// Namespace of the Lease
        pub namespace: Option<String> = Row::at("leader_election.namespace"),
        /// Holder identity in the Lease, such as the Pod's name
        pub identity: Option<String> = Row::at("leader_election.identity").unset("generated"),
        /// File that keeps the position of a Sentinel without election, so that a restart publishes only what was not published
        pub position_file: Option<PathBuf> = Row::at("leader_election.position_file"),
        /// URL of the PostgreSQL database that holds the lock
        pub database_url: Option<SecretString> = Row::at("leader_election.database_url"),
    }
}

daemon::choices! {
    /// Method of leader election.
    pub enum Method {
        /// No election: this is the only Sentinel.
        None = "none",
        /// A Lease of Kubernetes.
        Lease = "lease",
        /// An advisory lock of PostgreSQL.
        Postgres = "postgres",
    }
}

daemon::settings! {
    /// The broker; the composition root connects to it.
    pub struct Broker {
        /// Message broker
        #[serde(rename = "type")]
        pub kind: Option<BrokerKind> = Row::at("broker.type").flag("broker-type").unset("required"),
        /// RabbitMQ
        pub rabbitmq: RabbitMq,
        /// Google Pub/Sub
        pub googlepubsub: GooglePubSub,
    }
}

daemon::choices! {
    /// A message broker.
    pub enum BrokerKind {
        /// RabbitMQ.
        RabbitMq = "rabbitmq",
        /// Google Pub/Sub.
        GooglePubSub = "googlepubsub" | "gcp-pubsub" | "pubsub",
    }
}

daemon::settings! {
    /// RabbitMQ.
    pub struct RabbitMq {
        /// Address of RabbitMQ: `amqp://USER:PASSWORD@HOST:PORT/VHOST`, or `amqps://`
        pub url: Option<SecretString> = Row::at("broker.rabbitmq.url"),
        /// Name of the exchange
        pub exchange: Option<String> = Row::at("broker.rabbitmq.exchange").unset("the topic"),
        /// Type of the exchange
        pub exchange_type: ExchangeType = Row::at("broker.rabbitmq.exchange_type").default("topic"),
        /// Routing key of published events
        pub routing_key: Option<String> = Row::at("broker.rabbitmq.routing_key"),
    }
}

daemon::choices! {
    /// Type of an exchange, by AMQP's names.
    pub enum ExchangeType {
        /// By patterns of routing keys.
        Topic = "topic",
        /// To every queue.
        Fanout = "fanout",
        /// By routing keys.
        Direct = "direct",
        /// By headers.
        Headers = "headers",
    }
}

daemon::settings! {
    /// Google Pub/Sub.
    pub struct GooglePubSub {
        /// Google Cloud project of Pub/Sub; `PUBSUB_EMULATOR_HOST` selects an emulator
        pub project_id: Option<String> = Row::at("broker.googlepubsub.project_id"),
        /// Create the topic, and for `events tail` the subscription, where they do not exist
        pub create_topic_if_missing: bool =
            Row::at("broker.googlepubsub.create_topic_if_missing").default("false"),
    }
}
