//! Ensures that topics and subscriptions exist and are compatible, or reports the commands that create them.

use std::time::Duration;

use google_cloud_pubsub::model::{DeadLetterPolicy, ExpirationPolicy, RetryPolicy, Subscription as Found};
use google_cloud_wkt::Duration as WireDuration;

use crate::commands::{self, ACK_DEADLINE_SECONDS};
use crate::error::{BrokerError, ErrorKind, Operation};
use crate::name::{Name, Subscription};
use crate::pubsub::client::{PubSub, with_user_agent};
use crate::pubsub::errors;
use crate::pubsub::settings::Provision;
use crate::settings::Consume;

/// Maximum back-off of Pub/Sub.
const LONGEST_BACKOFF: Duration = Duration::from_mins(10);

/// The differences between a subscription and the desired one.
#[derive(Debug, Default)]
struct Findings {
    /// Those that prevent its use.
    wrong: Vec<String>,
    /// Those that lose dead letters, each with the command that completes it.
    incomplete: Vec<String>,
}

/// The time without a consumer after which a temporary subscription expires: the shortest that Pub/Sub has. Others never do.
fn expiration(consume: Consume) -> ExpirationPolicy {
    const DAY: Duration = Duration::from_hours(24);
    let never = ExpirationPolicy::new();
    if consume.is_temporary { never.set_ttl(WireDuration::try_from(DAY).unwrap_or_default()) } else { never }
}

impl PubSub {
    /// Deletes a temporary subscription, if it may have been created.
    pub(super) async fn end(&self, subscription: &Subscription, consume: Consume) {
        if !consume.is_temporary || self.settings().provision != Provision::Create {
            return;
        }
        let path = self.subscription_path(&subscription.id);
        let Ok(clients) = self.clients().await else { return };
        let request = clients.subscriptions.delete_subscription().set_subscription(&path);
        if let Err(error) = with_user_agent(request).send().await {
            let error = errors::classify(Operation::Settle, &path, &error);
            tracing::warn!(%subscription, %error, "the temporary subscription is not deleted; it expires in a day");
        }
    }

    /// Creates missing topics and subscriptions, if that is allowed, and checks that all are compatible.
    pub(super) async fn prepare(&self, subscription: &Subscription, consume: Consume) -> Result<(), BrokerError> {
        let dead = consume.max_attempts.map(|attempts| (self.dead_letters(subscription), attempts));
        if self.settings().provision == Provision::Create {
            self.create_topic(&subscription.topic).await?;
            if let Some((dead_letters, _)) = &dead {
                self.create_topic(&dead_letters.topic).await?;
                // A topic without a subscription stores nothing.
                self.create_subscription(self.desired(dead_letters, consume, None)).await?;
            }
            let dead = dead.as_ref().map(|(dead_letters, attempts)| (&dead_letters.topic, *attempts));
            self.create_subscription(self.desired(subscription, consume, dead)).await?;
        }
        let max_attempts = dead.as_ref().map(|(_, attempts)| *attempts);
        let mut findings = Findings::default();
        let policy = self.check(subscription, max_attempts, &mut findings).await?;
        if let Some(policy) = policy {
            self.check_dead_letter_topic(&policy, &mut findings).await?;
        }
        let Findings { wrong, incomplete } = findings;
        // HyperFleet's broker library makes subscriptions like this: they work, but lose dead letters.
        for what in incomplete {
            tracing::warn!(%subscription, "the subscription is incomplete: {what}");
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(BrokerError::new(Operation::Prepare, subscription, ErrorKind::Incompatible).with_detail(wrong.join("; ")))
    }

    async fn create_subscription(&self, desired: Found) -> Result<(), BrokerError> {
        let path = desired.name.clone();
        let request = self.clients().await?.subscriptions.create_subscription().with_request(desired);
        errors::accept_existing(&path, with_user_agent(request).send().await.map(drop))
    }

    fn desired(&self, subscription: &Subscription, consume: Consume, dead: Option<(&Name, u32)>) -> Found {
        let backoff = |wait: Duration| WireDuration::try_from(wait.min(LONGEST_BACKOFF)).unwrap_or_default();
        let found = Found::new()
            .set_name(self.subscription_path(&subscription.id))
            .set_topic(self.topic_path(subscription.topic.as_str()))
            .set_ack_deadline_seconds(ACK_DEADLINE_SECONDS)
            .set_expiration_policy(expiration(consume))
            .set_retry_policy(
                RetryPolicy::new()
                    .set_minimum_backoff(backoff(consume.backoff.first))
                    .set_maximum_backoff(backoff(consume.backoff.cap)),
            );
        match dead {
            None => found,
            Some((topic, attempts)) => found.set_dead_letter_policy(
                DeadLetterPolicy::new()
                    .set_dead_letter_topic(self.topic_path(topic.as_str()))
                    .set_max_delivery_attempts(attempts.cast_signed()),
            ),
        }
    }

    /// Records differences; returns the dead-letter topic of the subscription.
    async fn check(
        &self,
        subscription: &Subscription,
        attempts: Option<u32>,
        findings: &mut Findings,
    ) -> Result<Option<String>, BrokerError> {
        let path = self.subscription_path(&subscription.id);
        let request = self.clients().await?.subscriptions.get_subscription().set_subscription(&path);
        let found = match with_user_agent(request)
            .send()
            .await
            .map_err(|error| errors::classify(Operation::Prepare, &path, &error))
        {
            Ok(found) => found,
            Err(error) if error.kind == ErrorKind::PermissionDenied => {
                tracing::warn!(%subscription, "cannot be checked; grant roles/pubsub.viewer");
                return Ok(None);
            }
            Err(error) if error.kind == ErrorKind::NotFound => {
                let command = commands::create_subscription(&self.settings().project, subscription, attempts);
                return Err(BrokerError { hint: Some(format!("create it, or allow creation: {command}")), ..error });
            }
            Err(error) => return Err(error),
        };
        let topic = self.topic_path(subscription.topic.as_str());
        if found.topic != topic {
            findings.wrong.push(format!("it is a subscription of {}, not of {topic}", found.topic));
        }
        if found.push_config.is_some_and(|push| !push.push_endpoint.is_empty()) {
            findings.wrong.push("it pushes; it must be pulled from".to_owned());
        }
        match (attempts, found.dead_letter_policy) {
            (None, _) => Ok(None),
            (Some(_), Some(policy)) => Ok(Some(policy.dead_letter_topic)),
            (Some(attempts), None) => {
                let dead_letters = self.dead_letters(subscription);
                let project = &self.settings().project;
                findings.incomplete.push(format!(
                    "it has no dead-letter topic, so that a message that always fails is delivered for ever: {}; gcloud pubsub \
                     subscriptions update {} --dead-letter-topic {} --max-delivery-attempts {attempts} --project {project}",
                    commands::create_dead_letters(project, &dead_letters),
                    subscription.id,
                    dead_letters.topic,
                ));
                Ok(None)
            }
        }
    }

    /// Records if the dead-letter topic, whatever its name, does not exist or has no subscription.
    async fn check_dead_letter_topic(&self, path: &str, findings: &mut Findings) -> Result<(), BrokerError> {
        let request = self.clients().await?.topics.list_topic_subscriptions().set_topic(path);
        let topic = path.rsplit('/').next().unwrap_or(path);
        let subscribe =
            format!("gcloud pubsub subscriptions create {topic}-sub --topic={path} --expiration-period=never");
        match with_user_agent(request).send().await.map_err(|error| errors::classify(Operation::Prepare, path, &error))
        {
            Ok(found) if found.subscriptions.is_empty() => {
                findings.incomplete.push(format!(
                    "its dead-letter topic {path} has no subscription, so that dead letters are lost: {subscribe}"
                ));
                Ok(())
            }
            Err(error) if error.kind == ErrorKind::NotFound => {
                findings.incomplete.push(format!(
                    "its dead-letter topic {path} does not exist: gcloud pubsub topics create {path} && {subscribe}"
                ));
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) if error.kind == ErrorKind::PermissionDenied => Ok(()),
            Err(error) => Err(error),
        }
    }
}
