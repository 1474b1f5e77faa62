//! Google Pub/Sub, through Google's own client library; and Google's emulator.

mod consumer;
mod fault;
mod provision;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use google_cloud_auth::credentials::{self, Credentials};
use google_cloud_gax::options::RequestOptionsBuilder;
use google_cloud_gax::retry_policy::{NeverRetry, RetryPolicyExt as _};
use google_cloud_pubsub::client::{BasePublisher, Publisher, Subscriber, SubscriptionAdmin, TopicAdmin};
use google_cloud_pubsub::model::Message as Wire;
use google_cloud_pubsub::retry_policy::RetryableErrors;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::consumer::Consumer;
pub(crate) use self::consumer::Handle;
use crate::deliveries::Deliveries;
use crate::error::{Action, BrokerError, Fault};
use crate::health::{Health, Register};
use crate::message::Message;
use crate::name::{Name, Subscription};
use crate::settings::Consume;
use fleet_model::names::message::{DEAD_LETTER_SUFFIX, HEALTH_PROBE};

/// How long a probe may take.
const PROBE: Duration = Duration::from_secs(3);

/// How long the client gathers messages before it sends them. The library's 10 ms would be most of what a lone
/// publication takes.
const GATHER: Duration = Duration::from_millis(2);

/// Which Pub/Sub, and what may be done there.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The project.
    pub project: String,
    /// Where to send requests.
    pub endpoint: Endpoint,
    /// Whether what is missing is created.
    pub provision: Provision,
    /// How long one attempt may take.
    pub attempt_timeout: Duration,
}

/// Where requests go, and with which identity.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Endpoint {
    /// Google's own, with application default credentials.
    #[default]
    Google,
    /// An emulator: `HOST:PORT`, plain HTTP, no identity. What `PUBSUB_EMULATOR_HOST` says.
    Emulator(String),
}

/// What is done about topics and subscriptions that are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Provision {
    /// They are an error that says how to make them.
    #[default]
    Check,
    /// They are created: topic, subscription, dead-letter topic and its subscription.
    Create,
}

/// A project's Pub/Sub.
#[derive(Clone)]
pub struct PubSub(Arc<Inner>);

struct Inner {
    settings: Settings,
    clients: OnceCell<Clients>,
    publishers: Mutex<BTreeMap<Name, Publisher>>,
    register: Register,
}

/// The clients, made at the first use: making them may ask for an identity.
struct Clients {
    topics: TopicAdmin,
    subscriptions: SubscriptionAdmin,
    publisher: BasePublisher,
    subscriber: Subscriber,
}

// === impl Settings ===

impl Settings {
    /// Google's own Pub/Sub, where everything is there already.
    pub fn new(project: &str) -> Self {
        Self {
            project: project.to_owned(),
            endpoint: Endpoint::default(),
            provision: Provision::default(),
            attempt_timeout: Duration::from_secs(5),
        }
    }
}

// === impl Endpoint ===

impl Endpoint {
    fn address(&self) -> String {
        match self {
            Self::Google => "https://pubsub.googleapis.com".to_owned(),
            Self::Emulator(host) => format!("http://{host}"),
        }
    }

    fn credentials(&self) -> Result<Credentials, google_cloud_auth::build_errors::Error> {
        match self {
            Self::Google => credentials::Builder::default().build(),
            Self::Emulator(_) => Ok(credentials::anonymous::Builder::new().build()),
        }
    }
}

// === impl PubSub ===

impl PubSub {
    /// Sets the client up. Nothing is sent.
    pub fn new(settings: Settings) -> Self {
        let (clients, publishers, register) = (OnceCell::new(), Mutex::default(), Register::default());
        Self(Arc::new(Inner { settings, clients, publishers, register }))
    }

    pub(crate) async fn send(&self, topic: &Name, message: &Message) -> Result<(), BrokerError> {
        let attempt = async {
            let publisher = self.publisher(topic).await?;
            let wire = Wire::new().set_data(message.body.clone()).set_attributes(message.attributes.clone());
            let published = publisher.publish(wire).await;
            published.map(drop).map_err(|error| fault::of_publication(topic.as_str(), &error))
        };
        let sent = timeout(self.0.settings.attempt_timeout, attempt).await;
        let sent = sent.unwrap_or_else(|_elapsed| Err(BrokerError::new(Action::Publish, topic, Fault::TimedOut)));
        if let Err(error) = &sent
            && error.fault == Fault::NotFound
        {
            // Deleted meanwhile; the next attempt looks, and creates it if it may.
            self.0.publishers.lock().await.remove(topic);
            if self.0.settings.provision == Provision::Create {
                return sent.map_err(|error| BrokerError { fault: Fault::Unavailable, ..error });
            }
        }
        sent
    }

    pub(crate) async fn subscribe(
        &self,
        subscription: &Subscription,
        consume: Consume,
        stop: &CancellationToken,
    ) -> Result<Deliveries, BrokerError> {
        if consume.max_attempts.is_some_and(|attempts| !(5..=100).contains(&attempts)) {
            return Err(BrokerError::new(Action::Prepare, subscription, Fault::Misfit)
                .with_detail("Pub/Sub puts a message among the dead letters after 5 to 100 deliveries"));
        }
        let (watch, teller) = self.0.register.watch(
            &subscription.to_string(),
            Err(BrokerError::new(Action::Connect, subscription, Fault::Unavailable).with_detail("not connected yet")),
        );
        let mut consumer = Consumer::new(self.clone(), subscription.clone(), consume, teller);
        consumer.try_to_begin().await?;
        Ok(Deliveries::begin(consumer, subscription, consume, stop, watch))
    }

    #[expect(clippy::unused_self, reason = "every broker has names of its own for them")]
    pub(crate) fn dead_letters(&self, subscription: &Subscription) -> Subscription {
        let topic = subscription.id.with(DEAD_LETTER_SUFFIX);
        Subscription { id: topic.with("-sub"), topic }
    }

    pub(crate) async fn health(&self) -> Health {
        let name = self.topic_path(HEALTH_PROBE);
        let probe = async {
            let answer = ours(self.clients().await?.topics.get_topic().set_topic(&name)).send().await;
            match answer.map_err(|error| fault::classify(Action::Probe, &name, &error)) {
                Ok(_) => Ok(()),
                // It answers, and knows who we are. Who may only publish may not look.
                Err(error) if matches!(error.fault, Fault::NotFound | Fault::PermissionDenied) => Ok(()),
                Err(error) => Err(error),
            }
        };
        let publisher = timeout(PROBE, probe).await;
        let publisher =
            publisher.unwrap_or_else(|_elapsed| Err(BrokerError::new(Action::Probe, &name, Fault::TimedOut)));
        let mut subscribers = self.0.register.states();
        if let Err(error) = &publisher {
            // The client goes on silently when its stream breaks off.
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
        let publisher = base.publisher(self.topic_path(topic.as_str())).set_delay_threshold(GATHER).build();
        publishers.insert(topic.clone(), publisher.clone());
        Ok(publisher)
    }

    async fn clients(&self) -> Result<&Clients, BrokerError> {
        self.0.clients.get_or_try_init(|| Clients::connect(&self.0.settings)).await
    }

    fn topic_path(&self, topic: &str) -> String {
        format!("projects/{}/topics/{topic}", self.0.settings.project)
    }

    fn subscription_path(&self, subscription: &Name) -> String {
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
        let (address, patience) = (settings.endpoint.address(), settings.attempt_timeout);
        let failed =
            |words: &str| BrokerError::new(Action::Connect, "Pub/Sub", Fault::Unauthenticated).with_detail(words);
        let credentials = settings.endpoint.credentials();
        // The library's texts quote the file.
        let credentials = credentials.map_err(|_quotes| failed("the credentials cannot be used"))?;
        let unset = |_error| failed("the client cannot be set up: check the endpoint");
        // Admin calls are tried once, as the callers try again; a publication for as long as its attempt may take, as the
        // library would otherwise go on for ten minutes after the caller has given up.
        let topics = TopicAdmin::builder().with_endpoint(&address).with_credentials(credentials.clone());
        let subscriptions = SubscriptionAdmin::builder().with_endpoint(&address).with_credentials(credentials.clone());
        let publisher = BasePublisher::builder().with_endpoint(&address).with_credentials(credentials.clone());
        let subscriber = Subscriber::builder().with_endpoint(&address).with_credentials(credentials);
        Ok(Self {
            topics: topics.with_retry_policy(NeverRetry).build().await.map_err(unset)?,
            subscriptions: subscriptions.with_retry_policy(NeverRetry).build().await.map_err(unset)?,
            publisher: publisher
                .with_retry_policy(RetryableErrors.with_time_limit(patience))
                .build()
                .await
                .map_err(unset)?,
            subscriber: subscriber.build().await.map_err(unset)?,
        })
    }
}

/// Says who calls.
fn ours<R: RequestOptionsBuilder>(request: R) -> R {
    request.with_user_agent(concat!("pull-secret/", env!("CARGO_PKG_VERSION")))
}
