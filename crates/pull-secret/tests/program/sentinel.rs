//! API, Sentinel and listener as three processes, on the real brokers.

use std::process::Stdio;
use std::time::Duration;

use daemon::retry::Budget;
use message_broker::rabbitmq::{RabbitMq, Settings};
use message_broker::{Consume, Event, Subscription};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use testkit::api;
use testkit::broker::{Broker, command as program, pubsub, rabbitmq};
use testkit::program::path;

/// A listener that is subscribed, and what it prints.
async fn listener(broker: &Broker, topic: &str) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = program(broker, &["events", "tail", "--output", "json", "--broker-topic", topic]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).await.unwrap();
    assert!(line.starts_with("listening as "), "{line}");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

async fn curl(arguments: &[&str]) {
    let output = Command::new("curl").args(["-sS", "--fail", "--noproxy", "*"]).args(arguments).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn a_change_reaches_who_listens(broker: Broker) {
    let folder = tempfile::tempdir().unwrap();
    let (_api, address) = api::server(folder.path()).await;
    let topic =
        format!("clusters-{}", folder.path().file_name().unwrap().to_string_lossy().replace('.', "t").to_lowercase());
    let (_listener, mut events) = listener(&broker, &topic).await;
    let base = format!("http://{address}");
    let clusters = format!("{base}/api/hyperfleet/v1/clusters");
    let arguments =
        ["sentinel", "--resource-type", "clusters", "--hyperfleet-api-base-url", &base, "--broker-topic", &topic];
    let ports = ["--health-port", "0", "--metrics-port", "0"];
    let mut sentinel = program(&broker, &[&arguments[..], &ports[..]].concat());
    let _sentinel = sentinel.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    curl(&[&clusters, "-d", r#"{"kind": "Cluster", "id": "cls-1", "name": "one", "spec": {}}"#]).await;
    curl(&["-X", "PATCH", &format!("{clusters}/cls-1"), "-d", r#"{"spec": {"changed": true}}"#]).await;
    // The first state may be overtaken by the second before it is published.
    loop {
        let line = events.next_line().await.unwrap().unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["type"], "com.redhat.hyperfleet.cluster.reconcile");
        assert_eq!(event["data"]["id"], "cls-1");
        if event["data"]["generation"] == 2 {
            break;
        }
    }
    let dry = [&arguments[..], &ports[..], &["--dry-run", "--id", "cls-1"]].concat();
    let output = program(&broker, &dry).output().await.unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("cls-1"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reaches_who_listens_on_rabbitmq() {
    if let Some(broker) = rabbitmq() {
        a_change_reaches_who_listens(broker).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reaches_who_listens_on_pubsub() {
    if let Some(broker) = pubsub() {
        a_change_reaches_who_listens(broker).await;
    }
}

/// The likeliest mistake: a credential where something else belongs; and a broker that is not there.
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_in_the_wrong_place_is_not_printed() {
    const PASSWORD: &str = "Zq7wordThatMustNotShow";
    let values = [
        PASSWORD.to_owned(),
        format!(r#"{{"auths":{{"quay.io":{{"auth":"{PASSWORD}"}}}}}}"#),
        format!("amqp://user:{PASSWORD}@127.0.0.1:1/"),
        format!("postgresql://user:{PASSWORD}@127.0.0.1:1/name"),
    ];
    let variables = [
        "BROKER_TYPE",
        "BROKER_RABBITMQ_URL",
        "BROKER_RABBITMQ_EXCHANGE",
        "BROKER_GOOGLEPUBSUB_PROJECT_ID",
        "HYPERFLEET_API_BASE_URL",
        "HYPERFLEET_API_AUTH_TOKEN_PATH",
        "HYPERFLEET_BROKER_TOPIC",
        "HYPERFLEET_RESOURCE_TYPE",
        "HYPERFLEET_SHARD",
        "HYPERFLEET_LEADER_ELECTION_METHOD",
        "HYPERFLEET_LEADER_ELECTION_DATABASE_URL",
    ];
    // Names are printed on purpose. Text that is not a valid name must not be taken for one.
    let names = ["BROKER_RABBITMQ_EXCHANGE", "HYPERFLEET_BROKER_TOPIC", "HYPERFLEET_RESOURCE_TYPE"];
    let sentinel = ["sentinel", "--health-port", "0", "--metrics-port", "0"];
    for variable in variables {
        for value in values.iter().skip(usize::from(names.contains(&variable))) {
            for arguments in [&sentinel[..], &["events", "tail"]] {
                let broker: Broker = vec![
                    ("BROKER_TYPE", "rabbitmq".to_owned()),
                    ("BROKER_RABBITMQ_URL", "amqp://guest:guest@127.0.0.1:1/".to_owned()),
                    ("HYPERFLEET_API_BASE_URL", "http://127.0.0.1:1".to_owned()),
                    ("HYPERFLEET_BROKER_TOPIC", "demo".to_owned()),
                    ("HYPERFLEET_RESOURCE_TYPE", "clusters".to_owned()),
                    (variable, value.clone()),
                ];
                let mut command = Command::new("timeout");
                command.args(["--signal=KILL", "0.4", path("pull-secret").to_str().unwrap()]).args(arguments);
                let output = command.env_clear().envs(broker).output().await.unwrap();
                let stdout = [output.stdout, output.stderr].concat();
                let stdout = String::from_utf8_lossy(&stdout);
                assert!(!stdout.contains(&PASSWORD[4..]), "{variable}: {stdout}");
            }
        }
    }
}

/// `events tail` prints at once that there is no broker; commands about dead letters do not print that there are none.
#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_broker_is_reported_at_once() {
    let away: Broker = vec![
        ("BROKER_TYPE", "rabbitmq".to_owned()),
        ("BROKER_RABBITMQ_URL", format!("amqp://guest:{}@127.0.0.1:1/", testkit::leaks::PASSWORD)),
    ];
    let mut tail = program(&away, &["events", "tail", "--broker-topic", "demo"]).spawn().unwrap();
    let mut said = BufReader::new(tail.stderr.take().unwrap()).lines();
    loop {
        let line = said.next_line().await.unwrap().unwrap();
        testkit::leaks::check("tail", &line);
        if line.starts_with("the broker is unavailable, retrying: ") {
            break;
        }
    }
    testkit::rig::signal(&tail, testkit::rig::Signal::INT);
    assert_eq!(tail.wait().await.unwrap().code(), Some(0));
    for command in [&["list"][..], &["show"], &["replay"], &["drop", "--all", "--yes"]] {
        let dead = ["events", "dead-letters", command[0], "pullsecret-adapter-sub", "--broker-topic", "demo"];
        let output = program(&away, &[&dead, &command[1..]].concat()).output().await.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        testkit::leaks::check("dead letters", &stderr);
        assert!(output.status.code() == Some(75) && stderr.contains("error: "), "{stderr}");
    }
}

/// A dead letter of an adapter is published again.
#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_replayed() {
    let Some(broker) = rabbitmq() else { return };
    let url = broker.iter().find(|(name, _)| *name == "BROKER_RABBITMQ_URL").unwrap().1.clone();
    let client = message_broker::Broker::RabbitMq(RabbitMq::new(Settings::new(url.into())).unwrap());
    let topic = format!("replayed-{}", std::process::id());
    let subscription = Subscription::new(&topic, "pullsecret-adapter-sub").unwrap();
    let stop = CancellationToken::new();
    let mut deliveries = client.subscribe(&subscription, Consume::default(), &stop).await.unwrap();
    let event = Event::new(
        "s",
        "t",
        jiff::Timestamp::now(),
        serde_json::json!({"id": "cls-1", "note": testkit::leaks::PASSWORD}),
    );
    let budget = Budget::new(Duration::from_mins(1), stop.clone());
    client.publish(&subscription.topic, &event, &budget).await.unwrap();
    deliveries.next().await.unwrap().reject("an outage").await.unwrap();
    let named = ["--broker-topic", topic.as_str(), "--idle", "15"];
    let run = async |arguments: &[&str]| {
        let dead = ["events", "dead-letters", arguments[0], "pullsecret-adapter-sub"];
        program(&broker, &[&dead, &arguments[1..], &named].concat()).output().await.unwrap()
    };
    let listed = run(&["list", "--output", "json"]).await;
    let letter: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&letter["id"], &letter["reason"]), (&event.id.clone().into(), &"an outage".into()), "{letter}");
    let shown = run(&["show", &event.id]).await;
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.contains("\"cls-1\"") && text.contains("(not shown: "), "{text}");
    let unknown = run(&["drop", "unknown", "--yes"]).await;
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no dead letter has the id unknown"));
    let dry = run(&["drop", "--all"]).await;
    assert!(String::from_utf8_lossy(&dry.stdout).starts_with("would delete  "), "{dry:?}");
    for output in [&listed, &shown, &unknown, &dry] {
        testkit::leaks::check("dead letters", &String::from_utf8_lossy(&output.stdout));
        testkit::leaks::check("dead letters", &String::from_utf8_lossy(&output.stderr));
    }
    let output = run(&["replay"]).await;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && stdout.starts_with(&format!("replayed  {}  an outage  ", event.id)),
        "{stdout}{stderr}"
    );
    assert!(stderr.contains("1 replayed, 0 kept"), "{stderr}");
    let again = deliveries.next().await.unwrap();
    assert_eq!(again.event().unwrap().id, event.id);
    again.ack().await.unwrap();
    let empty = run(&["list"]).await;
    assert_eq!((empty.status.code(), empty.stdout), (Some(0), Vec::new()));
}
