//! Broker, Secret Manager, and files.

use message_broker::inspection::{Inspection, Place, Queue, Topic};
use message_broker::{BrokerError, Operation, Subscription};
use rstest::rstest;
use secret_store::StoreError;

use super::super::super::State;
use super::super::super::facts::{BrokerFacts, Facts, FileFacts, PermissionFacts, StoreFacts, StorePlace};
use super::super::store::{ADAPTERS_PERMISSIONS, JOBS_PERMISSIONS};
use super::{Expected, check};

pub(super) fn broker() -> BrokerFacts {
    let place =
        Place::RabbitMq { server: "rabbitmq:5671".to_owned(), vhost: "fleet".to_owned(), user: "jane".to_owned() };
    let queue = |consumers| Ok(Queue { consumers: Some(consumers), messages: Some(0) });
    BrokerFacts {
        subscription: Subscription::new("clusters", "adapter-sub").unwrap(),
        inspection: Inspection {
            place,
            reached: Ok(()),
            topic: Ok(Topic { subscriptions: None }),
            subscription: queue(2),
            dead_letters: queue(0),
            publish: Ok(()),
            receive: Ok(()),
        },
    }
}

pub(super) fn store() -> StoreFacts {
    let all = ADAPTERS_PERMISSIONS.into_iter().chain(JOBS_PERMISSIONS);
    let held = |permission| PermissionFacts { permission, name: "secretmanager.some.permission", is_held: Some(true) };
    StoreFacts {
        place: StorePlace::Google { project: "p-1".to_owned() },
        listed: Ok(1),
        permissions: Some(Ok(all.map(held).collect())),
    }
}

pub(super) fn file() -> FileFacts {
    let certificate_end = Ok(Some("2027-01-01T00:00:00Z".parse().unwrap()));
    FileFacts { setting: "--ca-file", path: "ca.crt".into(), certificate_end }
}

fn inspection(facts: &mut Facts) -> &mut Inspection {
    &mut facts.broker.as_mut().unwrap().as_mut().unwrap().inspection
}

fn stored(facts: &mut Facts) -> &mut StoreFacts {
    facts.store.as_mut().unwrap().as_mut().unwrap()
}

fn permissions(facts: &mut Facts) -> &mut Vec<PermissionFacts> {
    stored(facts).permissions.as_mut().unwrap().as_mut().unwrap()
}

fn refused<T>(kind: message_broker::ErrorKind) -> Result<T, BrokerError> {
    Err(BrokerError::new(Operation::Probe, "something", kind))
}

fn in_project(facts: &mut Facts) -> &mut Inspection {
    inspection(facts).place = Place::PubSub { project: "p-1".to_owned() };
    inspection(facts)
}

fn unlisted(facts: &mut Facts, kind: secret_store::ErrorKind) {
    let error = StoreError::new(secret_store::Operation::List, "projects/p-1", kind);
    *stored(facts) = StoreFacts { listed: Err(error), permissions: None, ..store() };
}

#[rstest]
#[case::none(
    |facts: &mut Facts| facts.broker = None,
    ("reachable", State::Skipped, "no broker is set", "export BROKER_TYPE=rabbitmq")
)]
#[case::settings(
    |facts: &mut Facts| facts.broker = Some(Err("clients.broker.topic: missing".to_owned())),
    ("settings", State::Failed, "clients.broker.topic: missing", "HYPERFLEET_BROKER_TOPIC=TOPIC")
)]
#[case::down(
    |facts: &mut Facts| inspection(facts).reached = refused(message_broker::ErrorKind::Unavailable),
    ("reachable", State::Failed, "the broker is unavailable", "nc -vz rabbitmq 5671")
)]
#[case::vhost(
    |facts: &mut Facts| inspection(facts).reached = refused(message_broker::ErrorKind::PermissionDenied),
    ("reachable", State::Failed, "the vhost fleet does not exist, or jane may not use it", "rabbitmqctl add_vhost 'fleet'")
)]
#[case::password(
    |facts: &mut Facts| inspection(facts).reached = refused(message_broker::ErrorKind::Unauthenticated),
    ("reachable", State::Failed, "not authenticated", "rabbitmqctl authenticate_user 'jane'")
)]
#[case::exchange(
    |facts: &mut Facts| inspection(facts).topic = refused(message_broker::ErrorKind::NotFound),
    ("topic", State::Warning, "the exchange clusters does not exist", "declare exchange name=clusters type=topic")
)]
#[case::queue(
    |facts: &mut Facts| inspection(facts).subscription = refused(message_broker::ErrorKind::NotFound),
    ("subscription", State::Warning, "the adapter creates it", "rollout restart deployment/pullsecret-adapter")
)]
#[case::no_consumer(
    |facts: &mut Facts| inspection(facts).subscription = Ok(Queue { consumers: Some(0), messages: Some(7) }),
    ("subscription", State::Failed, "no adapter receives from adapter-sub; 7 messages wait", "rollout status deployment/pullsecret-adapter")
)]
#[case::dead_letters(
    |facts: &mut Facts| inspection(facts).dead_letters = Ok(Queue { consumers: Some(0), messages: Some(3) }),
    ("dead letters", State::Warning, "3 events", "pull-secret events dead-letters list adapter-sub --broker-topic clusters")
)]
#[case::publish(
    |facts: &mut Facts| inspection(facts).publish = refused(message_broker::ErrorKind::PermissionDenied),
    ("publish", State::Warning, "only the Sentinel's identity needs it", "rabbitmqctl set_permissions --vhost 'fleet' 'jane'")
)]
#[case::topic(
    |facts: &mut Facts| in_project(facts).topic = refused(message_broker::ErrorKind::NotFound),
    ("topic", State::Failed, "clusters does not exist", "gcloud pubsub topics create clusters --project p-1")
)]
#[case::no_subscription(
    |facts: &mut Facts| in_project(facts).topic = Ok(Topic { subscriptions: Some(0) }),
    ("topic", State::Failed, "clusters has no subscription", "--max-delivery-attempts 5 --project p-1")
)]
#[case::subscription(
    |facts: &mut Facts| in_project(facts).subscription = refused(message_broker::ErrorKind::NotFound),
    ("subscription", State::Failed, "adapter-sub does not exist", "gcloud pubsub topics create adapter-sub-dlq --project p-1; ")
)]
#[case::subscriber(
    |facts: &mut Facts| in_project(facts).receive = refused(message_broker::ErrorKind::PermissionDenied),
    ("subscribe", State::Failed, "permission denied", "gcloud pubsub subscriptions add-iam-policy-binding adapter-sub --role roles/pubsub.subscriber")
)]
#[case::no_project(
    |facts: &mut Facts| facts.store = None,
    ("reachable", State::Skipped, "no project is given, and no other store", "pull-secret doctor --project PROJECT")
)]
#[case::disabled(
    |facts: &mut Facts| unlisted(facts, secret_store::ErrorKind::ApiDisabled),
    ("reachable", State::Failed, "not enabled", "gcloud services enable secretmanager.googleapis.com --project p-1")
)]
#[case::login(
    |facts: &mut Facts| unlisted(facts, secret_store::ErrorKind::Unauthenticated),
    ("reachable", State::Failed, "not authenticated", "gcloud auth application-default login")
)]
#[case::no_credentials(
    |facts: &mut Facts| {
        unlisted(facts, secret_store::ErrorKind::Unavailable);
        stored(facts).listed.as_mut().unwrap_err().detail = Some("no token: no metadata server".to_owned());
    },
    ("reachable", State::Failed, "no token", "gcloud auth application-default login")
)]
#[case::quota(
    |facts: &mut Facts| unlisted(facts, secret_store::ErrorKind::QuotaExceeded),
    ("reachable", State::Failed, "quota exceeded", "gcloud services quota list")
)]
#[case::list(
    |facts: &mut Facts| unlisted(facts, secret_store::ErrorKind::PermissionDenied),
    ("list secrets", State::Failed, "permission denied", "gcloud projects add-iam-policy-binding p-1 --condition None --role roles/secretmanager.viewer")
)]
#[case::adapters(
    |facts: &mut Facts| permissions(facts)[0].is_held = Some(false),
    ("adapter's permissions", State::Failed, "missing: secretmanager.some.permission", "--role roles/secretmanager.viewer")
)]
#[case::jobs(
    |facts: &mut Facts| permissions(facts).last_mut().unwrap().is_held = Some(false),
    ("Jobs' permissions", State::Warning, "secretmanager.some.permission", "--role projects/p-1/roles/pullsecretManager")
)]
#[case::file(
    |facts: &mut Facts| facts.files[0].certificate_end = Err("No such file or directory".to_owned()),
    ("--ca-file", State::Failed, "ca.crt cannot be used: No such file", "ls -l ca.crt")
)]
#[case::expiring(
    |facts: &mut Facts| facts.files[0].certificate_end = Ok(Some("2026-01-02T00:00:00Z".parse().unwrap())),
    ("--ca-file", State::Warning, "the first certificate of ca.crt expires in 24 h", "openssl x509 -in ca.crt")
)]
#[case::expired(
    |facts: &mut Facts| facts.files[0].certificate_end = Ok(Some("2025-12-31T00:00:00Z".parse().unwrap())),
    ("--ca-file", State::Failed, "expired at 2025-12-31", "openssl x509 -in ca.crt")
)]
fn a_fault_is_named_with_the_command_that_fixes_it(#[case] change: fn(&mut Facts), #[case] expected: Expected) {
    check(change, expected);
}
