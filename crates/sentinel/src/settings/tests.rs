//! What a configuration may say, and how it is refused.

use rstest::rstest;

use super::*;

const LEAST: &str = "{resource_type: clusters, clients: {hyperfleet_api: {base_url: http://api:8000}, \
                     broker: {topic: hyperfleet-clusters}}}";

fn plan(file: &str, environment: &[(&str, &str)]) -> Result<Plan, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.yaml");
    daemon::file::replace(&path, file.as_bytes()).unwrap();
    let environment: BTreeMap<&str, &str> = environment.iter().copied().collect();
    let flags = [("config", path.to_string_lossy().into_owned())].into();
    Settings::load(flags, &environment)?.plan()
}

fn faults(file: &str, environment: &[(&str, &str)]) -> String {
    plan(file, environment).unwrap_err().join("\n")
}

#[test]
fn the_least_is_enough() {
    let plan = plan(LEAST, &[]).unwrap();
    assert_eq!((plan.resource_type.as_str(), plan.topic.as_str()), ("clusters", "hyperfleet-clusters"));
    assert_eq!(plan.policy.resync, Duration::from_mins(30));
    assert_eq!(plan.shard, Shard::WHOLE);
}

#[test]
fn hyperfleets_variables_are_heard() {
    let environment = [
        ("HYPERFLEET_API_BASE_URL", "http://other:8000"),
        ("HYPERFLEET_API_TIMEOUT", "3s"),
        ("HYPERFLEET_BROKER_TOPIC", "other-topic"),
        ("HYPERFLEET_POLL_INTERVAL", "7s"),
        ("BROKER_TYPE", "rabbitmq"),
        ("BROKER_RABBITMQ_URL", "amqp://u:hunter2@h"),
    ];
    let plan = plan(LEAST, &environment).unwrap();
    assert_eq!(plan.client.base_url.as_str(), "http://other:8000/api/hyperfleet/v1");
    assert_eq!(plan.client.attempt_timeout, Duration::from_secs(3));
    assert_eq!((plan.topic.as_str(), plan.client.watch.poll_interval), ("other-topic", Duration::from_secs(7)));
    assert_eq!(plan.settings.broker.kind, Some(BrokerKind::RabbitMq));
    assert!(!format!("{plan:?}").contains("hunter2"));
}

#[rstest]
#[case::nothing("{}", "resource_type: is missing; give it in the file or as HYPERFLEET_RESOURCE_TYPE")]
#[case::nothing_of_the_api(
    "{}",
    "clients.hyperfleet_api.base_url: is missing; give it in the file or as HYPERFLEET_API_BASE_URL"
)]
#[case::empty_topic("{clients: {broker: {topic: ''}}}", "clients.broker.topic: is missing")]
#[case::blank_topic("{clients: {broker: {topic: '  '}}}", "clients.broker.topic: is missing")]
#[case::bad_topic("{clients: {broker: {topic: a b}}}", "clients.broker.topic: must have 3 to 255")]
#[case::bad_type("{resource_type: ../secrets}", "resource_type: must be what")]
#[case::bad_shard("{shard: 9/8}", "shard: must be PART/PARTS")]
#[case::short_gap("{decision: {gap: 10ms}}", "decision.gap: must be 1s or more")]
#[case::gaps("{decision: {gap: 2m}}", "decision.longest_gap: must not be shorter")]
#[case::namespace("{leader_election: {namespace: x}}", "leader_election.namespace: belongs to")]
#[case::lease("{leader_election: {method: lease}}", "leader_election.namespace: belongs to")]
#[case::postgres("{leader_election: {method: postgres}}", "leader_election.database_url: belongs to")]
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
fn what_does_not_fit_is_told_by_its_path(#[case] file: &str, #[case] expect: &str) {
    let told = faults(file, &[]);
    assert!(told.lines().any(|line| line.starts_with(expect)), "{told}");
}

#[rstest]
#[case("{message_decision: {result: 'true'}}", "message_decision: is not a key here: the decision is built in")]
#[case("{clients: {hyperfleet_api: {page_size: 20}}}", "clients.hyperfleet_api.page_size: is not a key here")]
#[case("{tracing_enabled: false}", "tracing_enabled: is not a key here")]
#[case("{nonsense: 1}", "nonsense: unknown field `nonsense`")]
#[case("{leader_election: {method: paxos}}", "leader_election.method: must be one of")]
fn what_has_no_effect_is_refused(#[case] file: &str, #[case] expect: &str) {
    let told = faults(file, &[]);
    assert!(told.starts_with(expect), "{told}");
}

#[test]
fn a_variable_is_named_as_it_was_given() {
    let told = faults(LEAST, &[("HYPERFLEET_API_TIMEOUT", "soon")]);
    assert!(told.starts_with("HYPERFLEET_API_TIMEOUT: must be a time"), "{told}");
}

#[test]
fn the_deployment_says_what_is_understood() {
    let manifest = include_str!("../../../../deploy/sentinel.yaml");
    let documents = manifest.split("\n---\n").map(|text| serde_saphyr::from_str::<serde_json::Value>(text).unwrap());
    let documents: Vec<_> = documents.collect();
    let config = documents[3]["data"]["config.yaml"].as_str().unwrap();
    let plan = plan(config, &[]).unwrap();
    assert_eq!(plan.settings.leader_election.method, Method::Lease);
    let arguments = &documents[4]["spec"]["template"]["spec"]["containers"][0]["args"];
    assert_eq!(arguments, &serde_json::json!(["sentinel", "--config", "/etc/hyperfleet/config/config.yaml"]));
}
