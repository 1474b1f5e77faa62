//! The tables of the Sentinel's settings; `docs/reference/sentinel-settings.md` and `--help` are generated from them.

use daemon::settings::{Section as _, Table};

use super::shape::{EventsSettings, Settings};

/// All settings of the Sentinel.
pub const TABLE: Table = Table {
    variable,
    rows: Settings::ROWS,
    retired: RETIRED,
    families: &["HYPERFLEET_", "BROKER_"],
    further: &["HYPERFLEET_CONFIG", "PUBSUB_EMULATOR_HOST"],
};

/// The settings of `pull-secret events`.
pub const EVENTS: Table = Table { rows: EventsSettings::ROWS, ..TABLE };

/// The variable of a setting: HyperFleet's own where it has one.
fn variable(path: &str) -> String {
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
    ("log.output", "the log is written to stdout"),
    ("clients.hyperfleet_api.version", "the API has one version, v1"),
    ("clients.hyperfleet_api.page_size", "lists are read in the largest pages that the API has"),
    ("message_decision", "the decision is built in: set decision.min_interval, decision.resync and publish_when"),
    ("broker.log_config", "faults of settings name their key"),
    ("broker.rabbitmq.publisher_confirm", "every event is confirmed"),
    ("broker.rabbitmq.consumer_tag", "the Sentinel consumes nothing"),
    ("broker.googlepubsub.dead_letter_topic", "it belongs to the subscriber"),
    ("broker.googlepubsub.topic_retention_duration", "set it where the topic is created"),
    ("subscriber", "the Sentinel consumes nothing; leave it out"),
];
