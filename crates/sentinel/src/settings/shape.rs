//! The shape of the configuration file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::event::EventType;
use crate::shard::Selector;

/// The settings as the file has them, every scalar given or defaulted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Settings {
    pub sentinel: Naming,
    pub resource_type: Option<String>,
    pub shard: String,
    pub clients: Clients,
    #[serde(deserialize_with = "duration")]
    pub poll_interval: Duration,
    #[serde(deserialize_with = "duration")]
    pub sweep_interval: Duration,
    pub event_type: EventType,
    pub decision: Decision,
    pub publish: Publish,
    pub leader_election: LeaderElection,
    pub log: Logging,
    pub health: Address,
    pub metrics: Address,
    pub broker: Broker,
    #[serde(default)]
    pub resource_selector: Vec<Selector>,
    #[serde(default)]
    pub message_data: Option<Map<String, Value>>,
    #[serde(default)]
    pub publish_when: BTreeMap<String, String>,
}

/// The settings of `pull-secret events`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct EventsSettings {
    pub clients: EventsClients,
    pub broker: Broker,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct EventsClients {
    pub broker: Subscription,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Subscription {
    pub topic: Option<String>,
    pub subscription_id: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Naming {
    pub name: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Clients {
    pub hyperfleet_api: Api,
    #[serde(default)]
    pub broker: Topic,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Api {
    pub base_url: Option<String>,
    #[serde(deserialize_with = "duration")]
    pub timeout: Duration,
    pub ca_file: Option<PathBuf>,
    pub auth: Auth,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Auth {
    pub token_path: Option<PathBuf>,
    #[serde(deserialize_with = "duration")]
    pub token_cache_ttl: Duration,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Topic {
    pub topic: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Decision {
    #[serde(deserialize_with = "duration")]
    pub gap: Duration,
    #[serde(deserialize_with = "duration")]
    pub longest_gap: Duration,
    #[serde(deserialize_with = "duration")]
    pub resync: Duration,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Publish {
    pub concurrency: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct LeaderElection {
    pub method: Method,
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub identity: Option<String>,
    pub database_url: Option<SecretString>,
}

/// How one of several Sentinels is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// There is but one.
    None,
    /// By a Lease in Kubernetes.
    Lease,
    /// By an advisory lock in PostgreSQL.
    Postgres,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Logging {
    pub level: String,
    pub format: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Address {
    pub host: String,
    pub port: u16,
}

/// Which broker; the composition root makes one of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct Broker {
    #[serde(rename = "type")]
    pub kind: Option<BrokerKind>,
    pub rabbitmq: RabbitMq,
    pub googlepubsub: GooglePubSub,
}

/// Which broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BrokerKind {
    /// RabbitMQ.
    RabbitMq,
    /// Google Pub/Sub.
    #[serde(alias = "pubsub")]
    GooglePubSub,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct RabbitMq {
    pub url: Option<SecretString>,
    pub exchange: Option<String>,
    pub exchange_type: ExchangeType,
    pub routing_key: Option<String>,
}

/// What kind of exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "AMQP's names")]
pub enum ExchangeType {
    Topic,
    Fanout,
    Direct,
    Headers,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "`table` says what each setting does")]
pub struct GooglePubSub {
    pub project_id: Option<String>,
    pub create_topic_if_missing: bool,
}

/// A duration is milliseconds by the time that it gets here.
fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}
