//! An inspection of a project: the topic, the subscription, and what the identity may do with them.

use google_cloud_gax::retry_policy::NeverRetry;
use google_cloud_pubsub::client::SchemaService;
use tokio::time::timeout;

use crate::error::{BrokerError, ErrorKind, Operation};
use crate::inspection::{Inspection, Place, Queue, Topic};
use crate::name::Subscription;
use crate::pubsub::client::{PubSub, with_user_agent};
use crate::pubsub::errors;

/// The permissions of a publisher on a topic.
const PUBLISH: &str = "pubsub.topics.publish";
/// The permissions of a consumer on a subscription.
const CONSUME: &str = "pubsub.subscriptions.consume";

impl PubSub {
    pub(crate) async fn inspect(&self, subscription: &Subscription) -> Inspection {
        let place = Place::PubSub { project: self.settings().project.clone() };
        let dead_letters = self.dead_letters(subscription);
        let (topic, consumed) =
            (self.topic_path(subscription.topic.as_str()), self.subscription_path(&subscription.id));
        let look = async {
            let (topic_found, subscription, dead_letters, publish, receive) = tokio::join!(
                self.find_topic(&topic),
                self.find_subscription(subscription),
                self.find_subscription(&dead_letters),
                self.permitted(&topic, PUBLISH),
                self.permitted(&consumed, CONSUME),
            );
            let is_unreached = |error: &&BrokerError| {
                !matches!(error.kind, ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::Incompatible)
            };
            let unreached = topic_found.as_ref().err().filter(is_unreached).cloned();
            let reached = unreached.map_or(Ok(()), Err);
            Inspection {
                place: place.clone(),
                reached,
                topic: topic_found,
                subscription,
                dead_letters,
                publish,
                receive,
            }
        };
        let found = timeout(self.settings().attempt_timeout, Box::pin(look)).await;
        found.unwrap_or_else(|_elapsed| {
            Inspection::unreached(place.clone(), &BrokerError::new(Operation::Probe, &topic, ErrorKind::TimedOut))
        })
    }

    async fn find_topic(&self, path: &str) -> Result<Topic, BrokerError> {
        let failed = |error| errors::classify(Operation::Probe, path, &error);
        let clients = self.clients().await?;
        with_user_agent(clients.topics.get_topic().set_topic(path)).send().await.map_err(failed)?;
        let request = clients.topics.list_topic_subscriptions().set_topic(path);
        // Who may get a topic need not be allowed to list what is attached to it.
        let listed = with_user_agent(request).send().await.ok();
        Ok(Topic { subscriptions: listed.map(|listed| listed.subscriptions.len()) })
    }

    async fn find_subscription(&self, subscription: &Subscription) -> Result<Queue, BrokerError> {
        let path = self.subscription_path(&subscription.id);
        let failed = |error| errors::classify(Operation::Probe, &path, &error);
        let request = self.clients().await?.subscriptions.get_subscription().set_subscription(&path);
        let found = with_user_agent(request).send().await.map_err(failed)?;
        let topic = self.topic_path(subscription.topic.as_str());
        if found.topic != topic {
            let detail = format!("it is a subscription of {}, not of {topic}", found.topic);
            return Err(BrokerError::new(Operation::Probe, &path, ErrorKind::Incompatible).with_detail(detail));
        }
        Ok(Queue::default())
    }

    /// Requests of the server if the identity has a permission on a topic or a subscription.
    async fn permitted(&self, path: &str, permission: &str) -> Result<(), BrokerError> {
        let failed = |error| errors::classify(Operation::Probe, path, &error);
        let settings = self.settings();
        let credentials = settings
            .endpoint
            .credentials()
            .map_err(|_quotes_the_file| BrokerError::new(Operation::Connect, path, ErrorKind::Unauthenticated))?;
        let client = SchemaService::builder().with_endpoint(settings.endpoint.address()).with_credentials(credentials);
        let client = client
            .with_retry_policy(NeverRetry)
            .build()
            .await
            .map_err(|_error| BrokerError::new(Operation::Connect, path, ErrorKind::Unavailable))?;
        let request = client.test_iam_permissions().set_resource(path).set_permissions([permission]);
        let answer = with_user_agent(request).send().await.map_err(failed)?;
        if answer.permissions.iter().any(|held| held == permission) {
            return Ok(());
        }
        Err(BrokerError::new(Operation::Probe, path, ErrorKind::PermissionDenied).with_detail(permission))
    }
}
