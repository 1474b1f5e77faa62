//! The commands that create Pub/Sub's topics and subscriptions, as docs/guides/gke.md has them.

use fleet_model::names::message::{DEAD_LETTER_SUBSCRIPTION, DEAD_LETTER_TOPIC, filled};

use crate::name::{Name, Subscription};

/// Time after which Pub/Sub delivers the message of a crashed consumer to another one.
pub(crate) const ACK_DEADLINE_SECONDS: i32 = 60;

/// Returns the topic of a subscription's dead letters, and the subscription that keeps them.
pub(crate) fn dead_letters(subscription: &Subscription) -> Subscription {
    let name = |pattern| Name::derived(filled(pattern, &[("subscription", subscription.id.as_str())]));
    Subscription { topic: name(DEAD_LETTER_TOPIC), id: name(DEAD_LETTER_SUBSCRIPTION) }
}

/// Returns the commands that create a subscription of a topic that exists, and the place of its dead letters. One that finds its object
/// fails, and does not prevent the others.
pub fn create_subscription(project: &str, subscription: &Subscription, max_attempts: Option<u32>) -> String {
    let (before, dead) = max_attempts.map_or_else(Default::default, |attempts| {
        let letters = dead_letters(subscription);
        let dead = format!(" --dead-letter-topic {} --max-delivery-attempts {attempts}", letters.topic);
        (create_dead_letters(project, &letters) + "; ", dead)
    });
    let Subscription { topic, id } = subscription;
    format!(
        "{before}gcloud pubsub subscriptions create {id} --topic {topic} --ack-deadline {ACK_DEADLINE_SECONDS} --expiration-period never \
         --min-retry-delay 10s{dead} --project {project}"
    )
}

/// Returns the commands that create the topic of dead letters and the subscription that keeps them.
pub(crate) fn create_dead_letters(project: &str, letters: &Subscription) -> String {
    let Subscription { topic, id } = letters;
    format!(
        "gcloud pubsub topics create {topic} --project {project}; gcloud pubsub subscriptions create {id} --topic {topic} \
         --expiration-period never --project {project}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guide's commands have the project from gcloud's configuration, and create both topics at once.
    #[test]
    fn the_commands_are_those_of_the_guide() {
        let guide = include_str!("../../../docs/guides/gke.md").replace("\\\n", "");
        let guide: Vec<String> =
            guide.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let subscription = Subscription::new("hyperfleet-system-clusters", "pullsecret-adapter-sub").unwrap();
        let commands = create_subscription("p-1", &subscription, Some(5)).replace(" --project p-1", "");
        let commands: Vec<&str> = commands.split("; ").collect();
        let [topic, subscriptions @ ..] = commands.as_slice() else { panic!("{commands:?}") };
        assert_eq!(*topic, "gcloud pubsub topics create pullsecret-adapter-sub-dlq");
        assert_eq!(subscriptions.len(), 2);
        for command in subscriptions {
            assert!(guide.iter().any(|line| line == command), "{command}");
        }
        assert!(!create_subscription("p-1", &subscription, None).contains("dead-letter"));
    }
}
