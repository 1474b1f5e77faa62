//! The checks of the message broker.

use message_broker::inspection::{Place, Queue};
use message_broker::{BrokerError, Consume, ErrorKind, Subscription, commands};

use super::checks::Checks;
use crate::doctor::facts::BrokerFacts;
use crate::doctor::{Group, Line};

const REACHABLE: &str = "reachable";
const TOPIC: &str = "topic";
const SUBSCRIPTION: &str = "subscription";
const DEAD_LETTERS: &str = "dead letters";
const PUBLISH: &str = "publish";
const SUBSCRIBE: &str = "subscribe";

/// The settings that name a broker.
const SET_BROKER: &str = "export BROKER_TYPE=rabbitmq BROKER_RABBITMQ_URL=amqps://USER:PASSWORD@HOST:5671/VHOST \
                          HYPERFLEET_BROKER_TOPIC=TOPIC";

pub(super) fn lines(facts: Option<&Result<BrokerFacts, String>>) -> Vec<Line> {
    let mut checks = Checks::of(Group::Broker);
    let facts = match facts {
        Some(Ok(facts)) => facts,
        Some(Err(fault)) => {
            checks.failed("settings", fault, SET_BROKER);
            return checks.lines;
        }
        None => {
            checks.skipped(REACHABLE, "no broker is set");
            checks.fix(SET_BROKER);
            return checks.lines;
        }
    };
    let place = &facts.inspection.place;
    if let Err(error) = &facts.inspection.reached {
        let (message, fix) = unreached(place, error);
        checks.failed(REACHABLE, message, fix);
        for check in [TOPIC, SUBSCRIPTION, DEAD_LETTERS, PUBLISH, SUBSCRIBE] {
            checks.skipped(check, "the broker does not answer this identity");
        }
        return checks.lines;
    }
    checks.ok(
        REACHABLE,
        match place {
            Place::RabbitMq { server, vhost, user } => {
                format!("RabbitMQ at {server} accepts {user} in the vhost {vhost}")
            }
            Place::PubSub { project } => format!("Pub/Sub answers for the project {project}"),
        },
    );
    topic(&mut checks, facts);
    subscription(&mut checks, facts);
    dead_letters(&mut checks, facts);
    permissions(&mut checks, facts);
    checks.lines
}

/// The cause for which there is no answer, and the command that fixes it.
fn unreached(place: &Place, error: &BrokerError) -> (String, String) {
    match (place, error.kind) {
        (Place::RabbitMq { vhost, user, .. }, ErrorKind::PermissionDenied) => {
            let message = format!("the vhost {vhost} does not exist, or {user} may not use it ({error})");
            let fix = format!(
                "rabbitmqctl add_vhost '{vhost}' && rabbitmqctl set_permissions --vhost '{vhost}' '{user}' '.*' '.*' '.*'"
            );
            (message, fix)
        }
        (Place::RabbitMq { user, .. }, ErrorKind::Unauthenticated) => {
            (error.to_string(), format!("rabbitmqctl authenticate_user '{user}'  # then put its password into the URL"))
        }
        (Place::RabbitMq { server, .. }, _) => {
            let (host, port) = server.rsplit_once(':').unwrap_or((server, "5672"));
            (error.to_string(), format!("nc -vz {host} {port}  # then start it, or correct BROKER_RABBITMQ_URL"))
        }
        (Place::PubSub { .. }, ErrorKind::Unauthenticated) => {
            (error.to_string(), "gcloud auth application-default login".to_owned())
        }
        (Place::PubSub { project }, _) => {
            (error.to_string(), format!("gcloud services enable pubsub.googleapis.com --project {project}"))
        }
    }
}

/// The topic. The Sentinel makes an exchange with its first event, so that before it none is there.
fn topic(checks: &mut Checks, facts: &BrokerFacts) {
    let name = &facts.subscription.topic;
    match (&facts.inspection.topic, &facts.inspection.place) {
        (Ok(topic), Place::PubSub { project }) if topic.subscriptions == Some(0) => {
            let message = format!("{name} has no subscription, so that its events are lost");
            checks.failed(TOPIC, message, creation(project, facts));
        }
        (Ok(topic), _) => {
            let subscriptions =
                topic.subscriptions.map(|count| format!("; subscriptions: {count}")).unwrap_or_default();
            checks.ok(TOPIC, format!("{name} exists{subscriptions}"));
        }
        (Err(error), Place::RabbitMq { vhost, .. }) if error.kind == ErrorKind::NotFound => {
            let message = format!("the exchange {name} does not exist: the Sentinel creates it with its first event");
            let fix = format!("rabbitmqadmin --vhost='{vhost}' declare exchange name={name} type=topic durable=true");
            checks.warning(TOPIC, message, fix);
        }
        (Err(error), Place::PubSub { project }) if error.kind == ErrorKind::NotFound => {
            let fix = format!("gcloud pubsub topics create {name} --project {project}");
            checks.failed(TOPIC, format!("{name} does not exist"), fix);
        }
        // The Sentinel publishes, and the adapter receives, without a role that would allow it.
        (Err(error), Place::PubSub { .. }) if error.kind == ErrorKind::PermissionDenied => {
            checks.skipped(TOPIC, format!("this identity may not read the topic {name}, and need not"));
        }
        (Err(error), _) => denied_or_skipped(checks, TOPIC, error, facts),
    }
}

/// The subscription of the adapter, and its consumers.
fn subscription(checks: &mut Checks, facts: &BrokerFacts) {
    let id = &facts.subscription.id;
    match (&facts.inspection.subscription, &facts.inspection.place) {
        (Ok(Queue { consumers: Some(0), messages }), _) => {
            let message = format!("no adapter receives from {id}; {} messages wait", messages.unwrap_or_default());
            let fix = "kubectl --namespace hyperfleet-system rollout status deployment/pullsecret-adapter";
            checks.failed(SUBSCRIPTION, message, fix);
        }
        (Ok(Queue { consumers, messages }), _) => {
            let counts = [(consumers, "consumers"), (messages, "messages that wait")].into_iter();
            let counts = counts.filter_map(|(count, noun)| count.as_ref().map(|count| format!("; {noun}: {count}")));
            checks.ok(SUBSCRIPTION, format!("{id} exists{}", counts.collect::<String>()));
        }
        (Err(error), Place::RabbitMq { .. }) if error.kind == ErrorKind::NotFound => {
            let message = format!("{} does not exist: the adapter creates it when it starts", error.resource);
            let fix = "kubectl --namespace hyperfleet-system rollout restart deployment/pullsecret-adapter";
            checks.warning(SUBSCRIPTION, message, fix);
        }
        (Err(error), Place::PubSub { project }) if error.kind == ErrorKind::NotFound => {
            checks.failed(SUBSCRIPTION, format!("{id} does not exist"), creation(project, facts));
        }
        (Err(error), Place::PubSub { project }) if error.kind == ErrorKind::Incompatible => {
            let fix = format!("gcloud pubsub subscriptions describe {id} --project {project}");
            checks.failed(SUBSCRIPTION, error.to_string(), fix);
        }
        (Err(error), _) => denied_or_skipped(checks, SUBSCRIPTION, error, facts),
    }
}

/// The dead letters of the adapter.
fn dead_letters(checks: &mut Checks, facts: &BrokerFacts) {
    let id = &facts.subscription.id;
    let list = format!("pull-secret events dead-letters list {id} --broker-topic {}", facts.subscription.topic);
    match &facts.inspection.dead_letters {
        Ok(Queue { messages: Some(0), .. }) => checks.ok(DEAD_LETTERS, "none"),
        Ok(Queue { messages: Some(count), .. }) => {
            checks.warning(DEAD_LETTERS, format!("{count} events of {id} could not be handled"), list);
        }
        Ok(Queue { messages: None, .. }) => {
            checks.skipped(DEAD_LETTERS, "Pub/Sub does not count messages for its clients");
            checks.fix(list);
        }
        Err(error) if error.kind == ErrorKind::NotFound => {
            checks.skipped(DEAD_LETTERS, format!("{id} has no place for them yet"));
        }
        Err(error) => checks.skipped(DEAD_LETTERS, error.to_string()),
    }
}

/// The permissions of the Sentinel and of the adapter.
fn permissions(checks: &mut Checks, facts: &BrokerFacts) {
    match &facts.inspection.publish {
        Ok(()) => checks.ok(PUBLISH, "allowed"),
        Err(error) if error.kind == ErrorKind::PermissionDenied => {
            checks.warning(
                PUBLISH,
                format!("{error}; only the Sentinel's identity needs it"),
                allowing(PUBLISH, facts),
            );
        }
        Err(error) => denied_or_skipped(checks, PUBLISH, error, facts),
    }
    match &facts.inspection.receive {
        Ok(()) => checks.ok(SUBSCRIBE, "allowed"),
        Err(error) => denied_or_skipped(checks, SUBSCRIBE, error, facts),
    }
}

fn denied_or_skipped(checks: &mut Checks, check: &str, error: &BrokerError, facts: &BrokerFacts) {
    match error.kind {
        ErrorKind::PermissionDenied => {}
        // That has a line of its own.
        ErrorKind::NotFound => return checks.skipped(check, "what it is about does not exist"),
        _ => return checks.skipped(check, format!("not known: {error}")),
    }
    checks.failed(check, error.to_string(), allowing(check, facts));
}

/// The command that allows what a check is about, at Pub/Sub as docs/guides/gke.md does.
fn allowing(check: &str, facts: &BrokerFacts) -> String {
    let project = match &facts.inspection.place {
        Place::RabbitMq { vhost, user, .. } => {
            return format!("rabbitmqctl set_permissions --vhost '{vhost}' '{user}' '.*' '.*' '.*'");
        }
        Place::PubSub { project } => project,
    };
    let Subscription { topic, id } = &facts.subscription;
    let (resource, role, account) = match check {
        PUBLISH => (format!("topics add-iam-policy-binding {topic}"), "publisher", "pullsecret-sentinel"),
        SUBSCRIBE => (format!("subscriptions add-iam-policy-binding {id}"), "subscriber", "pullsecret-viewer"),
        _ => (format!("subscriptions add-iam-policy-binding {id}"), "viewer", "pullsecret-viewer"),
    };
    format!(
        "gcloud pubsub {resource} --role roles/pubsub.{role} --member serviceAccount:{account}@{project}.iam.gserviceaccount.com \
         --project {project}"
    )
}

/// The commands that create the adapter's subscription at Pub/Sub, and the place of its dead letters.
fn creation(project: &str, facts: &BrokerFacts) -> String {
    commands::create_subscription(project, &facts.subscription, Consume::default().max_attempts)
}
