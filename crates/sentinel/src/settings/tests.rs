//! Configurations that are accepted, and the faults of others.

use std::time::Duration;

use rstest::rstest;

use super::*;

const LEAST: &str = "{resource_type: clusters, clients: {hyperfleet_api: {base_url: http://api:8000}, \
                     broker: {topic: hyperfleet-clusters}}}";

fn check(file: &str, environment: &[(&str, &str)]) -> Result<Checked, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    daemon::file::replace(&path, file.as_bytes()).unwrap();
    let environment: BTreeMap<&str, &str> = environment.iter().copied().collect();
    let flags = [("config", path.to_string_lossy().into_owned())].into();
    Checked::load(flags, &environment)
}

fn faults(file: &str, environment: &[(&str, &str)]) -> String {
    check(file, environment).unwrap_err().join("\n")
}

#[test]
fn the_least_is_enough() {
    let checked = check(LEAST, &[]).unwrap();
    assert_eq!((checked.resource_type.as_str(), checked.topic.as_str()), ("clusters", "hyperfleet-clusters"));
    assert_eq!(checked.policy.resync, Duration::from_mins(30));
    assert_eq!(checked.shard, Shard::WHOLE);
}

#[test]
fn hyperfleets_variables_are_accepted() {
    let environment = [
        ("HYPERFLEET_API_BASE_URL", "http://other:8000"),
        ("HYPERFLEET_API_TIMEOUT", "3s"),
        ("HYPERFLEET_BROKER_TOPIC", "other-topic"),
        ("HYPERFLEET_POLL_INTERVAL", "7s"),
        ("BROKER_TYPE", "rabbitmq"),
        ("BROKER_RABBITMQ_URL", "amqp://u:hunter2@h"),
    ];
    let checked = check(LEAST, &environment).unwrap();
    assert_eq!(checked.client.base_url.as_str(), "http://other:8000/api/hyperfleet/v1");
    assert_eq!(checked.client.attempt_timeout, Duration::from_secs(3));
    assert_eq!((checked.topic.as_str(), checked.client.watch.poll_interval), ("other-topic", Duration::from_secs(7)));
    assert_eq!(checked.settings.broker.kind, Some(BrokerKind::RabbitMq));
    assert!(!format!("{checked:?}").contains("hunter2"));
}

#[test]
fn traces_are_switched_as_hyperfleet_does() {
    let endpoint = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")];
    let exports = |file: &str| check(file, &endpoint).unwrap().settings.tracing.export().unwrap().is_some();
    assert!(exports(LEAST));
    assert!(!exports(&LEAST.replacen('{', "{tracing_enabled: false, ", 1)));
    assert_eq!(
        faults(LEAST, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]),
        "OTEL_EXPORTER_OTLP_PROTOCOL: must be one of http/protobuf"
    );
}

#[rstest]
#[case::nothing("{}", "resource_type: missing; set HYPERFLEET_RESOURCE_TYPE or --resource-type")]
#[case::nothing_of_the_api(
    "{}",
    "clients.hyperfleet_api.base_url: missing; set HYPERFLEET_API_BASE_URL or --hyperfleet-api-base-url"
)]
#[case::empty_topic("{clients: {broker: {topic: ''}}}", "clients.broker.topic: missing")]
#[case::blank_topic("{clients: {broker: {topic: '  '}}}", "clients.broker.topic: missing")]
#[case::bad_topic("{clients: {broker: {topic: a b}}}", "clients.broker.topic: must have 3 to 255")]
#[case::bad_type("{resource_type: ../secrets}", "resource_type: must be a plural")]
#[case::bad_shard("{shard: 9/8}", "shard: must be PART/PARTS")]
#[case::short_interval("{decision: {min_interval: 10ms}}", "decision.min_interval: must be a duration of 1s or more")]
#[case::short_resync("{decision: {resync: 10s}}", "decision.resync: must be a duration of 1m or more")]
#[case::poll("{poll_interval: 10ms}", "poll_interval: must be a duration of 1s or more")]
#[case::sweep("{sweep_interval: 1s}", "sweep_interval: must be a duration of 10s or more")]
#[case::concurrency("{publish: {concurrency: 1001}}", "publish.concurrency: must be a whole number from 1 to 1000")]
#[case::intervals("{decision: {min_interval: 2m}}", "decision.max_interval: must not be shorter")]
#[case::namespace("{leader_election: {namespace: x}}", "leader_election.namespace: must be set with")]
#[case::lease("{leader_election: {method: lease}}", "leader_election.namespace: must be set with")]
#[case::postgres("{leader_election: {method: postgres}}", "leader_election.database_url: must be set with")]
#[case::exchange(
    "{broker: {type: googlepubsub, rabbitmq: {exchange: other}}}",
    "broker.rabbitmq.exchange: has no effect"
)]
#[case::routing_key(
    "{broker: {type: googlepubsub, rabbitmq: {routing_key: other}}}",
    "broker.rabbitmq.routing_key: has no effect"
)]
#[case::creation(
    "{broker: {type: rabbitmq, googlepubsub: {create_topic_if_missing: true}}}",
    "broker.googlepubsub.create_topic_if_missing: has no effect"
)]
#[case::expression("{publish_when: {dns: 'status.'}}", "publish_when.dns: line 1, column")]
#[case::data("{message_data: {a: {b: resource.spec}}}", "message_data.a.b: must name a member")]
#[case::selector("{resource_selector: [{label: \"a' or\", value: b}]}", "resource_selector[0].label: must be the name")]
fn contradictions_are_named_by_their_key(#[case] file: &str, #[case] expect: &str) {
    let faults = faults(file, &[]);
    assert!(faults.lines().any(|line| line.starts_with(expect)), "{faults}");
}

#[rstest]
#[case("{message_decision: {result: 'true'}}", "message_decision: not a key of this program: the decision is built in")]
#[case("{clients: {hyperfleet_api: {page_size: 20}}}", "clients.hyperfleet_api.page_size: not a key of this program")]
#[case("{nonsense: 1}", "nonsense: unknown key")]
#[case("{leader_election: {method: paxos}}", "leader_election.method: must be one of")]
fn keys_without_effect_are_refused(#[case] file: &str, #[case] expect: &str) {
    let faults = faults(file, &[]);
    assert!(faults.lines().any(|line| line.starts_with(expect)), "{faults}");
}

#[test]
fn a_faulty_variable_is_named() {
    let faults = faults(LEAST, &[("HYPERFLEET_API_TIMEOUT", "soon"), ("HYPERFLEET_API_TIMOUT", "1s")]);
    assert!(faults.starts_with("HYPERFLEET_API_TIMEOUT: must be a duration"), "{faults}");
    assert!(
        faults.ends_with("HYPERFLEET_API_TIMOUT: unknown variable; did you mean HYPERFLEET_API_TIMEOUT?"),
        "{faults}"
    );
}

#[test]
fn the_deployment_is_accepted() {
    let manifest = include_str!("../../../../deploy/sentinel.yaml");
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(manifest).unwrap();
    let of_kind = |kind: &str| documents.iter().find(|document| document["kind"] == kind).unwrap();
    let config = of_kind("ConfigMap")["data"]["config.yaml"].as_str().unwrap();
    let checked = check(config, &[]).unwrap();
    assert_eq!(checked.settings.leader_election.method, Method::Lease);
    let arguments = &of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(arguments, &serde_json::json!(["sentinel", "--config", "/etc/hyperfleet/config/config.yaml"]));
}
