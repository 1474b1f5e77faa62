//! Runs with a mirror on two stores in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use daemon::retry::Budget;
use fleet_model::job::Reason;
use rstest::rstest;
use secrecy::ExposeSecret as _;
use secret_store::{
    ErrorKind, LiveVersion, NewSecret, Replica, Replication, SecretId, SecretStore as _, StoreSettings, Version,
    VersionState,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{report, settings};

mod double;

use double::{Double, Effect, Fault};

/// The first store and the mirror.
struct Rig {
    first: Double,
    mirror: Double,
    calls: Arc<Mutex<Vec<String>>>,
    files: TempDir,
}

/// A live version: its content and its record.
type Held = (String, BTreeMap<String, String>);

fn pull_secret(name: &str) -> String {
    json!({"auths": {"quay.io": {"auth": docker_config_auth(name)}}}).to_string()
}

/// `a:a`, `b:b`, … in base64.
fn docker_config_auth(name: &str) -> &'static str {
    match name {
        "a" => "YTph",
        "b" => "Yjpi",
        _ => "Yzpj",
    }
}

fn secret() -> SecretId {
    "hyperfleet-cls-1-pull-secret".parse().unwrap()
}

impl Rig {
    fn new() -> Self {
        let calls = Arc::default();
        let files = tempfile::tempdir().unwrap();
        daemon::file::replace(&files.path().join("key"), &[7; 32]).unwrap();
        Self { first: Double::new("first", &calls), mirror: Double::new("mirror", &calls), calls, files }
    }

    fn settings(&self, further: &[(&'static str, &str)]) -> Settings {
        let key = self.files.path().join("key").display().to_string();
        let mut variables: BTreeMap<&str, &str> = BTreeMap::from([
            ("CLUSTER_ID", "cls-1"),
            ("GCP_PROJECT_ID", "my-project-1"),
            ("SECRET_STORE_MIRROR", "vault"),
            ("VAULT_ADDR", "https://vault:8200"),
            ("VAULT_ROLE", "role"),
            ("DIGEST_KEY_FILE", &key),
        ]);
        let (flags, given): (Vec<_>, Vec<_>) = further.iter().copied().partition(|(name, _)| name.starts_with("--"));
        variables.extend(given);
        let flags = flags.into_iter().map(|(name, value)| (name.trim_start_matches('-'), value.to_owned())).collect();
        settings::resolve(&flags, &variables).unwrap()
    }

    async fn run(&self, further: &[(&'static str, &str)]) -> Outcome {
        let budget = Budget::new(Duration::from_mins(5), CancellationToken::new());
        let connect = async |place: &StoreSettings, _calls| {
            Ok(if matches!(place, StoreSettings::Vault(_) | StoreSettings::Aws(_)) {
                self.mirror.clone()
            } else {
                self.first.clone()
            })
        };
        run(&self.settings(further), &budget, connect).await
    }

    /// Stores this pull secret of this generation.
    async fn store(&self, name: &str, generation: &str) -> Outcome {
        self.run(&[("PULL_SECRET_DATA", &pull_secret(name)), ("GENERATION", generation)]).await
    }

    /// Stores it in the mirror only, as a run whose first store that is.
    async fn store_in_mirror(&self, name: &str, generation: &str) {
        let alone = Self { first: self.mirror.clone(), mirror: Double::new("none", &Arc::default()), ..Self::new() };
        let stored = alone.store(name, generation).await;
        assert_eq!(stored.reason, Reason::SecretStored, "{}", stored.message);
        self.calls.lock().unwrap().clear();
    }

    fn fail(&self, call: usize, effect: Effect) {
        *self.mirror.fault.lock().unwrap() = Some(Fault { call, effect });
    }

    fn repair(&self) {
        *self.mirror.fault.lock().unwrap() = None;
    }
}

/// The newest version of a store and its number; `None` if there is no secret. It must be live.
async fn held(store: &Double) -> Option<(u64, Held)> {
    store.memory.find(&secret()).await.unwrap()?;
    let newest = store.memory.newest_version(&secret()).await.unwrap()?;
    let Version::Live(LiveVersion { content, record }) =
        store.memory.read_version(&secret(), newest.number).await.unwrap()
    else {
        panic!("the newest version of {} must be live", store.name)
    };
    Some((newest.number.get(), (String::from_utf8(content.expose_secret().to_vec()).unwrap(), record)))
}

/// The content that a store holds.
async fn content(store: &Double) -> Option<String> {
    held(store).await.map(|(_, (content, _))| content)
}

/// The details of a result as the adapter reads them.
fn details(outcome: &Outcome) -> Value {
    let result: Value = serde_json::from_str(&report::render(outcome)).unwrap();
    result["details"].clone()
}

#[tokio::test(start_paused = true)]
async fn both_stores_hold_the_same_content_with_the_same_record() {
    let rig = Rig::new();
    let stored = rig.store("a", "3").await;
    assert_eq!(stored.reason, Reason::SecretStored, "{}", stored.message);
    let ((_, first), (_, mirror)) = (held(&rig.first).await.unwrap(), held(&rig.mirror).await.unwrap());
    assert_eq!((first.0.as_str(), &first), (pull_secret("a").as_str(), &mirror));
    assert_eq!(first.1["hyperfleet-generation"], "3");
    let details = details(&stored);
    let digest = details["digest"].as_str().unwrap();
    let expected = json!({
        "secretName": "hyperfleet-cls-1-pull-secret", "secretPath": "mirror/hyperfleet-cls-1-pull-secret",
        "secretVersion": 1, "vaultAddress": "https://vault:8200", "generation": "3", "digest": digest,
        "versionsAdded": 1, "versionsDestroyed": 0, "apiCalls": [],
    });
    assert_eq!(details["mirror"], expected);
    assert_eq!((&details["gcpProject"], &details["secretVersion"]), (&json!("my-project-1"), &json!(1)));
    let calls = rig.calls.lock().unwrap().clone();
    let turn = calls.iter().position(|call| call.starts_with("mirror")).unwrap();
    assert!(calls[turn..].iter().all(|call| call.starts_with("mirror")), "{calls:?}");
    assert!(calls[..turn].contains(&"first ReadVersion".to_owned()), "read back first: {calls:?}");

    let again = rig.store("a", "3").await;
    assert_eq!((again.reason, again.details.written), (Reason::SecretUnchanged, crate::outcome::Written::default()));
    assert!(again.message.contains("mirror: version 1"), "{}", again.message);
    assert_eq!(held(&rig.mirror).await.unwrap().0, 1);
}

/// The versions of both stores count for themselves.
#[tokio::test(start_paused = true)]
async fn a_mirror_that_is_added_later_gets_what_the_first_store_holds() {
    let rig = Rig::new();
    for (name, generation) in [("a", "1"), ("b", "2")] {
        let one_store = Rig { mirror: rig.first.clone(), first: rig.first.clone(), ..Rig::new() };
        one_store.store(name, generation).await;
    }
    let stored = rig.store("b", "2").await;
    assert_eq!(stored.reason, Reason::SecretStored, "a change in the mirror is a change: {}", stored.message);
    assert_eq!((held(&rig.first).await.unwrap().0, held(&rig.mirror).await.unwrap().0), (2, 1));
    assert_eq!(content(&rig.mirror).await, Some(pull_secret("b")));
    assert_eq!((stored.details.secret_version, stored.details.mirror.unwrap().secret_version), (Some(2), Some(1)));
}

/// The number of calls of a run at the mirror, whose content changes from `a` to `b`.
async fn calls_of_a_change() -> usize {
    let rig = Rig::new();
    rig.store("a", "1").await;
    let before = rig.mirror.count();
    rig.store("b", "2").await;
    rig.mirror.count() - before
}

#[rstest]
#[case::denied(ErrorKind::PermissionDenied, Reason::PermissionDenied)]
#[case::down(ErrorKind::Unavailable, Reason::StoreUnavailable)]
#[case::throttled(ErrorKind::QuotaExceeded, Reason::QuotaExceeded)]
#[tokio::test(start_paused = true)]
async fn a_mirror_that_fails_in_any_call_fails_the_run_after_the_first_store(
    #[case] kind: ErrorKind,
    #[case] reason: Reason,
) {
    for call in 1..=calls_of_a_change().await {
        let rig = Rig::new();
        rig.store("a", "1").await;
        rig.fail(rig.mirror.count() + call, Effect::Fails(kind));
        let failed = rig.store("b", "2").await;
        assert_eq!(failed.reason, reason, "call {call}: {}", failed.message);
        let said = "Failed to mirror the pull secret, which the first store holds: Failed to ";
        assert!(failed.message.starts_with(said), "call {call}: {}", failed.message);
        assert_eq!(content(&rig.first).await, Some(pull_secret("b")), "call {call}");
        let details = details(&failed);
        assert_eq!((&details["secretVersion"], &details["mirror"]["secretVersion"]), (&json!(2), &json!(null)));
        rig.repair();
        let again = rig.store("b", "2").await;
        assert!(again.reason.is_success(), "call {call}: {}", again.message);
        assert_eq!(held(&rig.first).await.unwrap().1, held(&rig.mirror).await.unwrap().1, "call {call}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_the_mirror_that_is_lost_costs_no_version() {
    for call in 1..=calls_of_a_change().await {
        let rig = Rig::new();
        rig.store("a", "1").await;
        rig.fail(rig.mirror.count() + call, Effect::Loses);
        let stored = rig.store("b", "2").await;
        assert_eq!(stored.reason, Reason::SecretStored, "call {call}: {}", stored.message);
        assert_eq!(held(&rig.mirror).await, held(&rig.first).await, "call {call}");
    }
}

#[rstest]
#[case::before_it_is_done(Effect::HangsBefore)]
#[case::after_it_is_done(Effect::HangsAfter)]
#[tokio::test(start_paused = true)]
async fn a_run_that_is_killed_in_any_call_of_the_mirror_is_completed_by_the_next(#[case] effect: Effect) {
    for call in 1..=calls_of_a_change().await {
        let rig = Rig::new();
        rig.store("a", "1").await;
        rig.fail(rig.mirror.count() + call, effect);
        let killed = tokio::time::timeout(Duration::from_mins(1), rig.store("b", "2")).await;
        assert!(killed.is_err(), "call {call}");
        assert_eq!(content(&rig.first).await, Some(pull_secret("b")), "call {call}");
        rig.repair();
        let again = rig.store("b", "2").await;
        assert!(again.reason.is_success(), "call {call}: {}", again.message);
        assert_eq!(held(&rig.mirror).await, held(&rig.first).await, "call {call}");
        let versions = rig.mirror.memory.list_versions(&secret()).await.unwrap();
        assert_eq!(versions.iter().filter(|one| one.state == VersionState::Live).count(), 2, "call {call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_newer_generation_in_the_mirror_is_not_replaced() {
    let rig = Rig::new();
    rig.store_in_mirror("c", "5").await;
    let superseded = rig.store("a", "4").await;
    assert_eq!(superseded.reason, Reason::Superseded, "{}", superseded.message);
    assert!(superseded.message.contains("mirror: generation 5, a newer one"), "{}", superseded.message);
    assert_eq!(content(&rig.mirror).await, Some(pull_secret("c")));
    let details = details(&superseded);
    assert_eq!((&details["generation"], &details["mirror"]["generation"]), (&json!("4"), &json!("5")));
    assert_eq!((&details["secretVersion"], &details["mirror"]["secretVersion"]), (&json!(1), &json!(null)));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_superseded_in_the_first_store_leaves_the_mirror_alone() {
    let rig = Rig::new();
    rig.store("b", "5").await;
    let before = rig.mirror.count();
    assert_eq!(rig.store("a", "4").await.reason, Reason::Superseded);
    assert_eq!(rig.mirror.count(), before);
}

/// Creates a secret that is not managed.
async fn occupy(store: &Double) {
    let new = NewSecret {
        labels: BTreeMap::from([("managed-by".to_owned(), "terraform".to_owned())]),
        annotations: BTreeMap::new(),
        replication: Replication::Automatic { kms_key: None },
    };
    store.memory.create(&secret(), &new).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_new_secret_in_the_mirror_has_its_own_key_and_regions() {
    let rig = Rig::new();
    let outcome = rig
        .run(&[
            ("PULL_SECRET_DATA", &pull_secret("a")),
            ("SECRET_STORE_MIRROR", "aws"),
            ("AWS_REGION", "eu-central-1"),
            ("REPLICATION_POLICY", "automatic=key-of-first"),
            ("REPLICATION_POLICY_MIRROR", "user-managed:eu-central-1=key-of-mirror,us-east-1"),
            ("RETAIN_VERSIONS", "3"),
        ])
        .await;
    assert_eq!(outcome.reason, Reason::SecretStored, "{}", outcome.message);
    let key = |key: &str| Some(key.to_owned());
    assert_eq!(*rig.first.replications.lock().unwrap(), [Replication::Automatic { kms_key: key("key-of-first") }]);
    let replica = |location: &str, kms_key| Replica { location: location.parse().unwrap(), kms_key };
    let replicas = vec![replica("eu-central-1", key("key-of-mirror")), replica("us-east-1", None)];
    assert_eq!(*rig.mirror.replications.lock().unwrap(), [Replication::Locations(replicas)]);
}

#[tokio::test(start_paused = true)]
async fn an_unmanaged_secret_in_the_mirror_is_not_touched() {
    let rig = Rig::new();
    occupy(&rig.mirror).await;
    let before = rig.mirror.memory.find(&secret()).await.unwrap().unwrap().metadata;
    let refused = rig.store("a", "1").await;
    assert_eq!(refused.reason, Reason::NameConflict);
    assert!(refused.message.contains("which the first store holds") && refused.message.contains("it was not touched"));
    assert_eq!(content(&rig.first).await, Some(pull_secret("a")));
    assert_eq!(rig.mirror.memory.find(&secret()).await.unwrap().unwrap().metadata, before);
    assert!(rig.mirror.memory.list_versions(&secret()).await.unwrap().is_empty());
}

#[rstest]
#[case::of_the_mirror(64 * 1024, 30)]
#[case::of_the_first_store(30, 64 * 1024)]
#[tokio::test(start_paused = true)]
async fn content_beyond_the_smaller_limit_is_refused_before_anything_is_written(
    #[case] first: usize,
    #[case] mirror: usize,
) {
    let mut rig = Rig::new();
    (rig.first.limit, rig.mirror.limit) = (first, mirror);
    let refused = rig.store("a", "1").await;
    assert_eq!(refused.reason, Reason::InvalidPullSecret, "{}", refused.message);
    assert!(refused.message.contains("30 are allowed"), "{}", refused.message);
    assert!(rig.calls.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_made_in_the_mirror_before_the_first_store() {
    let rig = Rig::new();
    rig.store("a", "1").await;
    rig.fail(rig.mirror.count() + 1, Effect::Fails(ErrorKind::Unavailable));
    let failed = rig.run(&[("--delete", "true")]).await;
    assert_eq!(failed.reason, Reason::StoreUnavailable);
    let said = "Failed to delete in the mirror, before the first store: ";
    assert!(failed.message.starts_with(said), "{}", failed.message);
    assert!(held(&rig.first).await.is_some());
    rig.repair();
    let deleted = rig.run(&[("--delete", "true")]).await;
    assert_eq!(deleted.reason, Reason::SecretDeleted, "{}", deleted.message);
    assert_eq!((held(&rig.first).await, held(&rig.mirror).await), (None, None));
    assert_eq!(rig.run(&[("--delete", "true")]).await.reason, Reason::SecretAbsent);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_stops_at_a_newer_generation_in_the_mirror_and_passes_an_unmanaged_secret() {
    let rig = Rig::new();
    rig.store("a", "1").await;
    rig.store_in_mirror("b", "5").await;
    let deletion = [("--delete", "true"), ("GENERATION", "2")];
    let superseded = rig.run(&deletion).await;
    assert_eq!(superseded.reason, Reason::Superseded, "{}", superseded.message);
    assert!(held(&rig.first).await.is_some() && held(&rig.mirror).await.is_some());
    let rig = Rig::new();
    occupy(&rig.mirror).await;
    rig.store("a", "1").await;
    let deleted = rig.run(&deletion).await;
    assert_eq!(deleted.reason, Reason::SecretDeleted);
    assert!(deleted.message.contains("mirror: the secret is not managed for this cluster"), "{}", deleted.message);
    assert!(held(&rig.first).await.is_none() && rig.mirror.memory.find(&secret()).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_checks_both_and_writes_in_neither() {
    let rig = Rig::new();
    let dry = [("PULL_SECRET_DATA", &*pull_secret("a")), ("--dry-run", "true")];
    let passed = rig.run(&dry).await;
    assert_eq!(passed.reason, Reason::DryRunPassed, "{}", passed.message);
    assert_eq!((held(&rig.first).await, held(&rig.mirror).await), (None, None));
    let details = passed.details.mirror.unwrap();
    assert_eq!((passed.details.secret_version, details.secret_version, details.generation), (None, None, None));
    occupy(&rig.mirror).await;
    let refused = rig.run(&dry).await;
    assert_eq!(refused.reason, Reason::NameConflict);
    assert!(refused.message.starts_with("Failed to mirror the pull secret: Failed to "), "{}", refused.message);
    assert_eq!(held(&rig.first).await, None);
}
