//! An installation with the roles of docs/guides/gke.md: nothing fails, and the commands are those of that guide.

use message_broker::inspection::{Inspection, Place, Queue, Topic};
use message_broker::{BrokerError, ErrorKind, Operation, Subscription};
use rstest::rstest;
use secret_store::{Permission, StoreError};

use super::super::super::facts::{BrokerFacts, Facts, PermissionFacts, StoreFacts, StorePlace};
use super::super::super::{Group, Line, State, none_failed, text};
use super::super::store::{ADAPTERS_PERMISSIONS, JOBS_PERMISSIONS};
use super::{lines, sound};

const TOPIC: &str = "hyperfleet-system-clusters";
const SUBSCRIPTION: &str = "pullsecret-adapter-sub";

/// The permissions of a role that the checks are about.
const ROLES: [(&str, &[&str]); 4] = [
    ("roles/pubsub.viewer", &["pubsub.get"]),
    ("roles/pubsub.publisher", &["pubsub.publish"]),
    ("roles/pubsub.subscriber", &["pubsub.consume"]),
    (
        "roles/secretmanager.viewer",
        &[
            "secretmanager.secrets.list",
            "secretmanager.secrets.get",
            "secretmanager.versions.get",
            "secretmanager.versions.list",
        ],
    ),
];

/// The lines of the guide for the project p-1; a command is on one line.
fn guide() -> Vec<String> {
    let text = include_str!("../../../../../../docs/guides/gke.md").replace("\\\n", "").replace("$PROJECT", "p-1");
    text.lines().map(plain).collect()
}

/// A command without quotes, and without the project, which is in gcloud's configuration.
fn plain(command: &str) -> String {
    let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
    command.replace('"', "").replace(" --project p-1", "")
}

/// The resources and permissions that the guide grants to the adapter.
fn granted() -> Vec<(String, &'static str)> {
    let mut granted = Vec::new();
    for command in guide()
        .iter()
        .filter(|line| line.ends_with("--member serviceAccount:pullsecret-viewer@p-1.iam.gserviceaccount.com"))
    {
        let words: Vec<&str> = command.split(' ').collect();
        let after = |word| words[words.iter().position(|found| *found == word).unwrap() + 1];
        let (_, permissions) = ROLES.into_iter().find(|(role, _)| *role == after("--role")).unwrap();
        let resource = after("add-iam-policy-binding");
        granted.extend(permissions.iter().map(|permission| (resource.to_owned(), *permission)));
    }
    granted
}

fn name(permission: Permission) -> &'static str {
    match permission {
        Permission::Create => "secretmanager.secrets.create",
        Permission::Find => "secretmanager.secrets.get",
        Permission::List => "secretmanager.secrets.list",
        Permission::Update => "secretmanager.secrets.update",
        Permission::Delete => "secretmanager.secrets.delete",
        Permission::AddVersion => "secretmanager.versions.add",
        Permission::ReadVersion => "secretmanager.versions.access",
        Permission::FindVersion => "secretmanager.versions.get",
        Permission::ListVersions => "secretmanager.versions.list",
        Permission::DestroyVersion => "secretmanager.versions.destroy",
    }
}

/// The facts for an identity with these permissions, in a project that is as the guide makes it.
fn facts(granted: &[(String, &str)]) -> Facts {
    let holds = |resource: &str, permission| granted.iter().any(|held| *held == (resource.to_owned(), permission));
    let may = |resource: &str, permission| {
        let denied = || BrokerError::new(Operation::Probe, resource, ErrorKind::PermissionDenied);
        holds(resource, permission).then_some(()).ok_or_else(denied)
    };
    let inspection = Inspection {
        place: Place::PubSub { project: "p-1".to_owned() },
        reached: Ok(()),
        topic: may(TOPIC, "pubsub.get").map(|()| Topic::default()),
        subscription: may(SUBSCRIPTION, "pubsub.get").map(|()| Queue::default()),
        dead_letters: may("pullsecret-adapter-sub-dlq-sub", "pubsub.get").map(|()| Queue::default()),
        publish: may(TOPIC, "pubsub.publish"),
        receive: may(SUBSCRIPTION, "pubsub.consume"),
    };
    let held = |permission| {
        let name = name(permission);
        PermissionFacts { permission, name, is_held: Some(holds("p-1", name)) }
    };
    let permissions = ADAPTERS_PERMISSIONS.into_iter().chain(JOBS_PERMISSIONS).map(held).collect();
    let unlisted =
        || StoreError::new(secret_store::Operation::List, "projects/p-1", secret_store::ErrorKind::PermissionDenied);
    let listed = holds("p-1", name(Permission::List)).then_some(1).ok_or_else(unlisted);
    let subscription = Subscription::new(TOPIC, SUBSCRIPTION).unwrap();
    Facts {
        broker: Some(Ok(BrokerFacts { subscription, inspection })),
        store: Some(Ok(StoreFacts {
            place: StorePlace::Google { project: "p-1".to_owned() },
            listed,
            permissions: Some(Ok(permissions)),
        })),
        ..sound()
    }
}

/// The lines about Google's services.
fn of_google(facts: &Facts) -> Vec<Line> {
    lines(facts).into_iter().filter(|line| matches!(line.group, Group::Broker | Group::SecretStore)).collect()
}

#[rstest]
#[case::topic("topic", State::Skipped)]
#[case::subscription("subscription", State::Ok)]
#[case::dead_letters("dead letters", State::Skipped)]
#[case::publish("publish", State::Warning)]
#[case::subscribe("subscribe", State::Ok)]
#[case::list("list secrets", State::Ok)]
#[case::adapter("adapter's permissions", State::Ok)]
#[case::jobs("Jobs' permissions", State::Warning)]
fn with_the_roles_of_the_guide_nothing_fails(#[case] check: &str, #[case] expected: State) {
    let found = lines(&facts(&granted()));
    assert!(none_failed(&found), "{}", text(&found));
    let state = |line: &Line| line.check == check && line.state == expected;
    assert!(found.iter().any(state), "{}", text(&found));
}

/// Without any permission, nothing is granted that the guide does not grant.
#[test]
fn commands_grant_as_the_guide_does() {
    let (guide, found) = (guide(), of_google(&facts(&[])));
    let fixed: Vec<&Line> = found.iter().filter(|line| line.fix.is_some()).collect();
    assert_eq!(fixed.len(), 6, "{}", text(&found));
    for command in fixed.iter().flat_map(|line| line.fix.as_deref().unwrap().split("; ")) {
        assert!(guide.contains(&plain(command)), "{command}");
    }
}
