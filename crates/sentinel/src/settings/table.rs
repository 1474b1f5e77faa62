//! Every setting that a flag or a variable can give; `docs/reference/sentinel-settings.md` is made from it.

use daemon::settings::{Kind, Row, Table};

/// All settings of the Sentinel.
pub const TABLE: Table = Table { variable, rows: &joined::<27, 7, 34>(OWN, BROKER), retired: RETIRED };

/// The settings of `pull-secret events`: which broker, and what is listened to.
pub const EVENTS: Table = Table { variable, rows: &joined::<2, 7, 9>(TAIL, BROKER), retired: RETIRED };

/// The variable of a setting: HyperFleet's own where it has one.
pub fn variable(path: &str) -> String {
    let (prefix, path) = if let Some(rest) = path.strip_prefix("clients.hyperfleet_api.") {
        ("HYPERFLEET_API", rest)
    } else if let Some(rest) = path.strip_prefix("clients.broker.") {
        ("HYPERFLEET_BROKER", rest)
    } else if let Some(rest) = path.strip_prefix("broker.") {
        ("BROKER", rest)
    } else {
        ("HYPERFLEET", path)
    };
    daemon::settings::variable(prefix, path)
}

/// Keys of HyperFleet's Sentinel and broker library that have no effect here.
const RETIRED: &[(&str, &str)] = &[
    ("debug_config", "use --dry-run to see what would be published, and why"),
    ("tracing_enabled", "no traces are exported yet; leave it out"),
    ("log.output", "the log is on stdout"),
    ("clients.hyperfleet_api.version", "the API has one version, v1"),
    ("clients.hyperfleet_api.page_size", "lists are read in the largest pages that the API has"),
    ("message_decision", "the decision is built in: set decision.gap, decision.resync and publish_when"),
    ("broker.log_config", "what is wrong with the settings is told by its place"),
    ("broker.rabbitmq.publisher_confirm", "every event is confirmed"),
    ("broker.rabbitmq.consumer_tag", "the Sentinel consumes nothing"),
    ("broker.googlepubsub.dead_letter_topic", "it belongs to the subscriber"),
    ("broker.googlepubsub.topic_retention_duration", "set it where the topic is made"),
    ("subscriber", "the Sentinel consumes nothing; leave it out"),
];

/// The rows of the Sentinel itself. What is a list or a mapping (`resource_selector`, `message_data`, `publish_when`) is in
/// the file only.
const OWN: [Row; 27] = [
    Row::new("sentinel.name", Some("name"), Kind::Text, "hyperfleet-sentinel", "How it calls itself to the API"),
    Row::new(
        "resource_type",
        Some("resource-type"),
        Kind::Text,
        "",
        "What it watches, as paths have it: `clusters` [required]",
    ),
    Row::new("shard", Some("shard"), Kind::Text, "1/1", "Which part of the resources is its own, such as `2/8`"),
    Row::new(
        "clients.hyperfleet_api.base_url",
        Some("hyperfleet-api-base-url"),
        Kind::Text,
        "",
        "Where the HyperFleet API is: `http://HOST:PORT` [required]",
    ),
    Row::new(
        "clients.hyperfleet_api.timeout",
        Some("hyperfleet-api-timeout"),
        Kind::Duration,
        "10s",
        "One request may take so long",
    ),
    Row::new("clients.hyperfleet_api.ca_file", None, Kind::Path, "", "The certificate authorities to trust, PEM"),
    Row::new("clients.hyperfleet_api.auth.token_path", None, Kind::Path, "", "The file with the bearer token"),
    Row::new(
        "clients.hyperfleet_api.auth.token_cache_ttl",
        None,
        Kind::Duration,
        "30s",
        "It is read again after this time",
    ),
    Row::new("clients.broker.topic", Some("broker-topic"), Kind::Text, "", "The topic that events go to [required]"),
    Row::new(
        "poll_interval",
        Some("poll-interval"),
        Kind::Duration,
        "5s",
        "How often lists are compared where the API has no change stream; 1s or more",
    ),
    Row::new(
        "sweep_interval",
        Some("sweep-interval"),
        Kind::Duration,
        "5m",
        "How often everything is read again beside the change stream, for what it may have missed; 10s or more",
    ),
    Row::new(
        "event_type",
        Some("event-type"),
        Kind::Text,
        "reconcile",
        "`reconcile` or `specification`: how events are named",
    ),
    Row::new(
        "decision.gap",
        Some("gap"),
        Kind::Duration,
        "10s",
        "What is not reconciled gets the same event again after this time, then after twice the time, and so on",
    ),
    Row::new("decision.longest_gap", Some("longest-gap"), Kind::Duration, "1m", "But never later than this"),
    Row::new(
        "decision.resync",
        Some("resync"),
        Kind::Duration,
        "30m",
        "What is reconciled gets an event this often; 1m or more",
    ),
    Row::new("publish.concurrency", None, Kind::Number, "32", "So many events are on the way at once; 1 to 1000"),
    Row::new(
        "leader_election.method",
        Some("leader-election"),
        Kind::Text,
        "none",
        "`none`, `lease` or `postgres`: how one of several is chosen",
    ),
    Row::new(
        "leader_election.name",
        None,
        Kind::Text,
        "",
        "What they compete for; without it, a name made of `sentinel.name`, `resource_type` and `shard`",
    ),
    Row::new("leader_election.namespace", None, Kind::Text, "", "The namespace of the Lease"),
    Row::new(
        "leader_election.identity",
        None,
        Kind::Text,
        "",
        "Who claims the Lease, such as the pod's name; made up if not given",
    ),
    Row::new("leader_election.database_url", None, Kind::Secret, "", "The PostgreSQL that gives the lock"),
    Row::new("log.level", Some("log-level"), Kind::Text, "info", "`debug`, `info`, `warn` or `error`"),
    Row::new("log.format", Some("log-format"), Kind::Text, "json", "`json` or `text`"),
    Row::new("health.host", Some("health-host"), Kind::Text, "localhost", "Where probes are answered"),
    Row::new("health.port", Some("health-port"), Kind::Number, "8080", "On which port; 0 takes a free one"),
    Row::new("metrics.host", Some("metrics-host"), Kind::Text, "localhost", "Where metrics are served"),
    Row::new("metrics.port", Some("metrics-port"), Kind::Number, "9090", "On which port; 0 takes a free one"),
];

/// The rows that say which broker.
const BROKER: [Row; 7] = [
    Row::new("broker.type", Some("broker-type"), Kind::Text, "", "`rabbitmq` or `googlepubsub` [required]"),
    Row::new("broker.rabbitmq.url", None, Kind::Secret, "", "`amqp://USER:PASSWORD@HOST:PORT/VHOST`, or `amqps://`"),
    Row::new("broker.rabbitmq.exchange", None, Kind::Text, "", "The exchange, if it is not named as the topic"),
    Row::new("broker.rabbitmq.exchange_type", None, Kind::Text, "topic", "`topic`, `fanout`, `direct` or `headers`"),
    Row::new("broker.rabbitmq.routing_key", None, Kind::Text, "", "What events are published with"),
    Row::new("broker.googlepubsub.project_id", None, Kind::Text, "", "The project; `PUBSUB_EMULATOR_HOST` is honoured"),
    Row::new(
        "broker.googlepubsub.create_topic_if_missing",
        None,
        Kind::Switch,
        "false",
        "Make what is not there: the topic, and for `events tail` the subscription",
    ),
];

/// The rows of `pull-secret events`.
const TAIL: [Row; 2] = [
    Row::new("clients.broker.topic", Some("broker-topic"), Kind::Text, "", "The topic that is listened to [required]"),
    Row::new(
        "clients.broker.subscription_id",
        Some("broker-subscription-id"),
        Kind::Text,
        "events-tail",
        "The subscription; whoever uses the same one shares its events",
    ),
];

const fn joined<const A: usize, const B: usize, const BOTH: usize>(first: [Row; A], second: [Row; B]) -> [Row; BOTH] {
    let mut rows = [Row::new("", None, Kind::Text, "", ""); BOTH];
    let (start, end) = rows.split_at_mut(A);
    start.copy_from_slice(&first);
    end.copy_from_slice(&second);
    rows
}
