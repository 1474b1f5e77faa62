//! Topics and subscriptions of Pub/Sub as another program creates them.

use google_cloud_auth::credentials::anonymous;
use google_cloud_pubsub::client::{SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::model::{DeadLetterPolicy, Subscription as Wire};
use message_broker::Subscription;

use crate::rig::variable;

/// Clients of the emulator's administration.
pub(crate) struct Admin {
    topics: TopicAdmin,
    subscriptions: SubscriptionAdmin,
}

impl Admin {
    pub(crate) async fn connect() -> Self {
        let address = format!("http://{}", variable("REAL_PUBSUB_HOST").unwrap());
        let credentials = anonymous::Builder::new().build();
        let topics = TopicAdmin::builder().with_endpoint(&address).with_credentials(credentials.clone());
        let subscriptions = SubscriptionAdmin::builder().with_endpoint(&address).with_credentials(credentials);
        Self { topics: topics.build().await.unwrap(), subscriptions: subscriptions.build().await.unwrap() }
    }

    /// Creates topic and subscription as `HyperFleet`'s broker library does: at most with a dead-letter topic, which has no
    /// subscription.
    pub(crate) async fn create(&self, subscription: &Subscription, has_dead_letter_topic: bool) {
        let path = |kind: &str, name: &str| format!("projects/real-parts/{kind}/{name}");
        let topic = path("topics", subscription.topic.as_str());
        // Cases of one test may share the topic.
        drop(self.topics.create_topic().set_name(&topic).send().await);
        let mut wire = Wire::new().set_name(path("subscriptions", subscription.id.as_str())).set_topic(topic);
        if has_dead_letter_topic {
            let dead_letters = path("topics", &format!("{}-dlq", subscription.id));
            self.topics.create_topic().set_name(&dead_letters).send().await.unwrap();
            wire = wire.set_dead_letter_policy(
                DeadLetterPolicy::new().set_dead_letter_topic(dead_letters).set_max_delivery_attempts(5),
            );
        }
        self.subscriptions.create_subscription().with_request(wire).send().await.unwrap();
    }
}
