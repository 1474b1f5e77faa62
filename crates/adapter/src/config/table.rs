//! Every setting that a flag or a variable can give; `docs/reference/adapter-settings.md` is made from it.

use daemon::settings::{Kind, Row, Table};

/// The settings that a flag or a variable can give, and those with a default.
pub const TABLE: Table = Table { variable, rows: ROWS, retired: RETIRED };

/// The variable of a setting: HyperFleet's own where it has one.
pub fn variable(path: &str) -> String {
    let named = match path {
        "spec.hyperfleetAPI.url" => "HYPERFLEET_API_BASE_URL",
        "spec.hyperfleetAPI.timeout" => "HYPERFLEET_API_TIMEOUT",
        "spec.hyperfleetAPI.tokenPath" => "HYPERFLEET_API_AUTH_TOKEN_PATH",
        "spec.hyperfleetAPI.caFile" => "HYPERFLEET_API_CA_FILE",
        "spec.hyperfleetAPI.reportMethod" => "HYPERFLEET_API_REPORT_METHOD",
        "spec.broker.type" => "BROKER_TYPE",
        "spec.broker.topic" => "HYPERFLEET_BROKER_TOPIC",
        "spec.broker.subscription" => "HYPERFLEET_BROKER_SUBSCRIPTION_ID",
        "spec.broker.projectId" => "BROKER_GOOGLEPUBSUB_PROJECT_ID",
        "spec.broker.createIfMissing" => "BROKER_GOOGLEPUBSUB_CREATE_IF_MISSING",
        "spec.broker.url" => "BROKER_RABBITMQ_URL",
        "spec.broker.exchange" => "BROKER_RABBITMQ_EXCHANGE",
        "spec.kubernetes.kubeconfig" => "HYPERFLEET_KUBERNETES_KUBE_CONFIG_PATH",
        "spec.kubernetes.identity" => "HYPERFLEET_KUBERNETES_IDENTITY",
        "spec.jobTemplate.image" => "HYPERFLEET_JOB_IMAGE",
        "spec.log.level" => "LOG_LEVEL",
        "spec.log.format" => "LOG_FORMAT",
        _ => return daemon::settings::variable("HYPERFLEET_ADAPTER", &capitals_apart(path)),
    };
    named.to_owned()
}

/// `spec.limits.writesPerMinute` is `limits.writes_per_minute`.
fn capitals_apart(path: &str) -> String {
    let path = path.strip_prefix("spec.").unwrap_or(path);
    let mut text = String::new();
    for char in path.chars() {
        if char.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(char.to_ascii_lowercase());
    }
    text
}

/// Keys that other editions know.
const RETIRED: &[(&str, &str)] = &[
    ("spec.criteria.ruleEngine", "expressions are the specification's; leave it out"),
    ("spec.hyperfleetApi", "it is called spec.hyperfleetAPI"),
    ("spec.messageBroker", "it is called spec.broker"),
    ("spec.params", "map values to variables with spec.jobTemplate.env"),
    ("spec.resources", "describe the Job with spec.jobTemplate"),
    ("spec.post", "reports are built in"),
];

const ROWS: &[Row] = &[
    Row::new("spec.resourceType", None, Kind::Text, "clusters", "What it works on, as the API's paths have it"),
    Row::new(
        "spec.hyperfleetAPI.url",
        Some("hyperfleet-api-base-url"),
        Kind::Text,
        "",
        "Where the HyperFleet API is: `http://HOST:PORT` [required]",
    ),
    Row::new(
        "spec.hyperfleetAPI.timeout",
        Some("hyperfleet-api-timeout"),
        Kind::Duration,
        "10s",
        "One request may take so long",
    ),
    Row::new("spec.hyperfleetAPI.tokenPath", None, Kind::Path, "", "The file with the bearer token"),
    Row::new("spec.hyperfleetAPI.caFile", None, Kind::Path, "", "The certificate authorities to trust, PEM"),
    Row::new(
        "spec.hyperfleetAPI.reportMethod",
        None,
        Kind::Text,
        "auto",
        "`auto`, `put` or `post`: how reports are sent; `auto` puts, and posts where the API refuses that",
    ),
    Row::new("spec.broker.type", Some("broker-type"), Kind::Text, "", "`rabbitmq` or `gcp-pubsub` [required]"),
    Row::new(
        "spec.broker.topic",
        Some("broker-topic"),
        Kind::Text,
        "hyperfleet-system-clusters",
        "The topic that the Sentinel publishes to",
    ),
    Row::new(
        "spec.broker.subscription",
        Some("broker-subscription-id"),
        Kind::Text,
        "",
        "This adapter's subscription, which its replicas share; `{adapterType}-adapter-sub` if not given",
    ),
    Row::new(
        "spec.broker.projectId",
        None,
        Kind::Text,
        "",
        "Google Pub/Sub: the project; `PUBSUB_EMULATOR_HOST` is honoured",
    ),
    Row::new(
        "spec.broker.createIfMissing",
        None,
        Kind::Switch,
        "false",
        "Google Pub/Sub: make topic, subscription and dead-letter topic where they are missing",
    ),
    Row::new(
        "spec.broker.url",
        None,
        Kind::Secret,
        "",
        "RabbitMQ: `amqp://USER:PASSWORD@HOST:PORT/VHOST`, or `amqps://`",
    ),
    Row::new("spec.broker.exchange", None, Kind::Text, "", "RabbitMQ: the exchange, if it is not named as the topic"),
    Row::new(
        "spec.broker.maxAttempts",
        None,
        Kind::Number,
        "5",
        "An event that failed so often goes among the dead letters; 5 to 100",
    ),
    Row::new(
        "spec.kubernetes.kubeconfig",
        Some("kubeconfig"),
        Kind::Path,
        "",
        "A kubeconfig; without one the pod's service account, outside a pod the user's own",
    ),
    Row::new("spec.kubernetes.context", None, Kind::Text, "", "The context of the kubeconfig"),
    Row::new("spec.kubernetes.timeout", None, Kind::Duration, "10s", "One call to Kubernetes may take so long"),
    Row::new(
        "spec.kubernetes.lease",
        None,
        Kind::Text,
        "",
        "The Lease by which one of several replicas is chosen to report the ends of Jobs; without it each does",
    ),
    Row::new(
        "spec.kubernetes.identity",
        None,
        Kind::Text,
        "",
        "Who claims the Lease, such as the pod's name; made up if not given",
    ),
    Row::new("spec.jobTemplate.image", Some("job-image"), Kind::Text, "", "The image of the Jobs"),
    Row::new(
        "spec.jobTemplate.backoffLimit",
        None,
        Kind::Number,
        "3",
        "So many more Pods are tried after a failure that may pass",
    ),
    Row::new("spec.jobTemplate.activeDeadline", None, Kind::Duration, "30m", "A Job that takes longer has failed"),
    Row::new("spec.jobTemplate.keepFinished", None, Kind::Duration, "1h", "A Job that is over is kept so long"),
    Row::new("spec.limits.concurrency", None, Kind::Number, "32", "So many resources are worked on at once; 1 to 1000"),
    Row::new(
        "spec.limits.writesPerMinute",
        None,
        Kind::Number,
        "600",
        "So many writes a minute this replica may cause in one project; divide a project's quota by the number of replicas; 0 \
         is no limit",
    ),
    Row::new("spec.limits.writesPerRun", None, Kind::Number, "3", "So many of them one run needs"),
    Row::new(
        "spec.limits.runsPerProject",
        None,
        Kind::Number,
        "100",
        "So many runs may go on at once in one project; 0 is no limit",
    ),
    Row::new(
        "spec.limits.clusterIdLabel",
        None,
        Kind::Switch,
        "false",
        "Give metrics the label `cluster_id`: one series for each, so only in small fleets",
    ),
    Row::new(
        "spec.retry.transientAfter",
        None,
        Kind::Duration,
        "1m",
        "A run that failed for a reason that may pass is repeated after this time, then after twice the time, up to an hour",
    ),
    Row::new(
        "spec.retry.permanentAfter",
        None,
        Kind::Duration,
        "30m",
        "One that failed for a reason that somebody must remove is repeated this often, in case somebody has",
    ),
    Row::new("spec.log.level", Some("log-level"), Kind::Text, "info", "`debug`, `info`, `warn` or `error`"),
    Row::new("spec.log.format", Some("log-format"), Kind::Text, "json", "`json` or `text`"),
    Row::new("spec.health.host", Some("health-host"), Kind::Text, "localhost", "Where probes are answered"),
    Row::new("spec.health.port", Some("health-port"), Kind::Number, "8080", "On which port; 0 takes a free one"),
    Row::new("spec.metrics.host", Some("metrics-host"), Kind::Text, "localhost", "Where metrics are served"),
    Row::new("spec.metrics.port", Some("metrics-port"), Kind::Number, "9090", "On which port; 0 takes a free one"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_hyperfleets_or_follow_the_path() {
        assert_eq!(variable("spec.hyperfleetAPI.url"), "HYPERFLEET_API_BASE_URL");
        assert_eq!(variable("spec.limits.writesPerMinute"), "HYPERFLEET_ADAPTER_LIMITS_WRITES_PER_MINUTE");
        let mut names: Vec<_> = ROWS.iter().map(|row| variable(row.path)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), ROWS.len());
    }
}
