//! Real brokers, and processes that use them.

use tokio::process::Command;

use crate::environment::{absent, missing, variable};
use crate::program;

/// The variables by which a program reaches a broker.
pub type Broker = Vec<(&'static str, String)>;

/// `pull-secret` with these arguments, on that broker.
pub fn command(broker: &Broker, arguments: &[&str]) -> Command {
    let mut command = program::pull_secret(arguments);
    command.envs(broker.iter().cloned());
    command
}

/// RabbitMQ, if there is one.
pub fn rabbitmq() -> Option<Broker> {
    let Some(url) = variable("REAL_RABBITMQ_URL") else {
        return missing("REAL_RABBITMQ_URL is not set: no RabbitMQ; `make real-parts` starts one");
    };
    Some(vec![("BROKER_TYPE", "rabbitmq".to_owned()), ("BROKER_RABBITMQ_URL", url)])
}

/// Google's Pub/Sub emulator, if there is one.
pub fn pubsub() -> Option<Broker> {
    if let Some(why) = variable("REAL_PUBSUB_ABSENT") {
        return absent("Google's Pub/Sub emulator", &why);
    }
    let Some(host) = variable("REAL_PUBSUB_HOST") else {
        return missing("REAL_PUBSUB_HOST is not set: no Pub/Sub emulator; `make real-parts` starts it");
    };
    Some(vec![
        ("BROKER_TYPE", "googlepubsub".to_owned()),
        ("BROKER_GOOGLEPUBSUB_PROJECT_ID", "my-project-1".to_owned()),
        ("BROKER_GOOGLEPUBSUB_CREATE_TOPIC_IF_MISSING", "true".to_owned()),
        ("PUBSUB_EMULATOR_HOST", host),
    ])
}

/// The body of a successful GET of that address.
pub async fn fetch(url: &str) -> Option<String> {
    let output = Command::new("curl").args(["-sS", "--fail", "--noproxy", "*", url]).output().await.unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}
