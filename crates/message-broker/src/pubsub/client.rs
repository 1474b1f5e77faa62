//! The client of Pub/Sub: publishes, checks the health, and names the objects of a project.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use google_cloud_gax::options::RequestOptionsBuilder;
use google_cloud_gax::retry_policy::{NeverRetry, RetryPolicyExt as _};
use google_cloud_pubsub::client::{BasePublisher, Publisher, Subscriber, SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::model::Message as Wire;
use google_cloud_pubsub::retry_policy::RetryableErrors;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::timeout;

use crate::commands;
use crate::error::{BrokerError, ErrorKind, Operation};
use crate::health::{Health, HealthEntry, HealthReporter, Register};
use crate::message::Message;
use crate::name::{Name, Subscription};
use crate::pubsub::errors;
use crate::pubsub::settings::{Provision, Settings};
use fleet_model::names::message::HEALTH_PROBE;

/// Maximum time of a health check.
const PROBE: Duration = Duration::from_secs(3);

/// Time for which the client batches messages before it sends them. The library's default of 10 ms would dominate the
/// latency of a single publication.
const BATCH_DELAY: Duration = Duration::from_millis(2);

/// The Pub/Sub of a project.
#[derive(Clone)]
pub struct PubSub(Arc<Inner>);

struct Inner {
    settings: Settings,
    clients: OnceCell<Clients>,
    publishers: Mutex<BTreeMap<Name, Publisher>>,
    register: Register,
}

/// The clients, created at the first use, as that may need credentials.
pub(super) struct Clients {
    pub(super) topics: TopicAdmin,
    pub(super) subscriptions: SubscriptionAdmin,
    publisher: BasePublisher,
    pub(super) subscriber: Subscriber,
}

// === impl PubSub ===

impl PubSub {
    /// Sets up the client without sending a request.
    pub fn new(settings: Settings) -> Self {
        let (clients, publishers, register) = (OnceCell::new(), Mutex::default(), Register::default());
        Self(Arc::new(Inner { settings, clients, publishers, register }))
    }

    pub(crate) async fn send(&self, topic: &Name, message: &Message) -> Result<(), BrokerError> {
        let attempt = async {
            let publisher = self.publisher(topic).await?;
            let wire = Wire::new().set_data(message.body.clone()).set_attributes(message.attributes.clone());
            let published = publisher.publish(wire).await;
            published.map(drop).map_err(|error| errors::of_publication(topic.as_str(), &error))
        };
        let sent = timeout(self.0.settings.attempt_timeout, attempt).await;
        let sent =
            sent.unwrap_or_else(|_elapsed| Err(BrokerError::new(Operation::Publish, topic, ErrorKind::TimedOut)));
        if let Err(error) = &sent
            && error.kind == ErrorKind::NotFound
        {
            // The topic was deleted; the next attempt creates it if that is allowed.
            self.0.publishers.lock().await.remove(topic);
            if self.0.settings.provision == Provision::Create {
                return sent.map_err(|error| BrokerError { kind: ErrorKind::Unavailable, ..error });
            }
        }
        sent
    }

    #[expect(clippy::unused_self, reason = "each broker derives these names in its own way")]
    pub(crate) fn dead_letters(&self, subscription: &Subscription) -> Subscription {
        commands::dead_letters(subscription)
    }

    pub(crate) async fn health(&self) -> Health {
        let name = self.topic_path(HEALTH_PROBE);
        let probe = async {
            let answer = with_user_agent(self.clients().await?.topics.get_topic().set_topic(&name)).send().await;
            match answer.map_err(|error| errors::classify(Operation::Probe, &name, &error)) {
                Ok(_) => Ok(()),
                // Pub/Sub answers and accepts the identity. A publisher may lack the permission to get a topic.
                Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::PermissionDenied) => Ok(()),
                Err(error) => Err(error),
            }
        };
        let publisher = timeout(PROBE, probe).await;
        let publisher =
            publisher.unwrap_or_else(|_elapsed| Err(BrokerError::new(Operation::Probe, &name, ErrorKind::TimedOut)));
        let mut subscribers = self.0.register.states();
        if let Err(error) = &publisher {
            // The client retries silently when its stream breaks off.
            for state in subscribers.values_mut().filter(|state| state.is_ok()) {
                *state = Err(error.clone());
            }
        }
        Health { publisher, subscribers }
    }

    async fn publisher(&self, topic: &Name) -> Result<Publisher, BrokerError> {
        let mut publishers = self.0.publishers.lock().await;
        if let Some(publisher) = publishers.get(topic) {
            return Ok(publisher.clone());
        }
        if self.0.settings.provision == Provision::Create {
            self.create_topic(topic).await?;
        }
        let base = &self.clients().await?.publisher;
        let publisher = base.publisher(self.topic_path(topic.as_str())).set_delay_threshold(BATCH_DELAY).build();
        publishers.insert(topic.clone(), publisher.clone());
        Ok(publisher)
    }

    /// Creates a topic, unless it exists.
    pub(super) async fn create_topic(&self, topic: &Name) -> Result<(), BrokerError> {
        let path = self.topic_path(topic.as_str());
        let created = with_user_agent(self.clients().await?.topics.create_topic().set_name(&path)).send().await;
        errors::accept_existing(&path, created.map(drop))
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Registers a subscription for the health check.
    pub(super) fn register(
        &self,
        subscription: &Subscription,
        state: Result<(), BrokerError>,
    ) -> (HealthEntry, HealthReporter) {
        self.0.register.add(&subscription.to_string(), state)
    }

    pub(super) async fn clients(&self) -> Result<&Clients, BrokerError> {
        self.0.clients.get_or_try_init(|| Clients::connect(&self.0.settings)).await
    }

    pub(super) fn topic_path(&self, topic: &str) -> String {
        format!("projects/{}/topics/{topic}", self.0.settings.project)
    }

    pub(super) fn subscription_path(&self, subscription: &Name) -> String {
        format!("projects/{}/subscriptions/{subscription}", self.0.settings.project)
    }
}

impl fmt::Debug for PubSub {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PubSub").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

// === impl Clients ===

impl Clients {
    async fn connect(settings: &Settings) -> Result<Self, BrokerError> {
        let (address, time_limit) = (settings.endpoint.address(), settings.attempt_timeout);
        let failed = |detail: &str| {
            BrokerError::new(Operation::Connect, "Pub/Sub", ErrorKind::Unauthenticated).with_detail(detail)
        };
        let credentials = settings.endpoint.credentials();
        // The library's messages quote the file.
        let credentials = credentials.map_err(|_quotes| failed("the credentials cannot be used"))?;
        let unset = |_error| failed("the client cannot be set up: check the endpoint");
        // Admin calls are not retried here, as their callers retry; a publication is retried within its attempt, as the
        // library would otherwise continue for ten minutes after the caller has given up.
        let topics = TopicAdmin::builder().with_endpoint(&address).with_credentials(credentials.clone());
        let subscriptions = SubscriptionAdmin::builder().with_endpoint(&address).with_credentials(credentials.clone());
        let publisher = BasePublisher::builder().with_endpoint(&address).with_credentials(credentials.clone());
        let subscriber = Subscriber::builder().with_endpoint(&address).with_credentials(credentials);
        Ok(Self {
            topics: topics.with_retry_policy(NeverRetry).build().await.map_err(unset)?,
            subscriptions: subscriptions.with_retry_policy(NeverRetry).build().await.map_err(unset)?,
            publisher: publisher
                .with_retry_policy(RetryableErrors.with_time_limit(time_limit))
                .build()
                .await
                .map_err(unset)?,
            subscriber: subscriber.build().await.map_err(unset)?,
        })
    }
}

/// Sets the `User-Agent`.
pub(super) fn with_user_agent<R: RequestOptionsBuilder>(request: R) -> R {
    request.with_user_agent(format!("{}/{}", fleet_model::names::client::PULL_SECRET, env!("CARGO_PKG_VERSION")))
}
