//! Additions that end between two steps, answers that are lost, versions that do not show yet, writers at once.

use std::sync::Arc;
use std::time::Duration;

use daemon::retry::Transient as _;
use secret_store::{
    AwsSettings, AwsStore, ErrorKind, NewVersion, Replication, SecretStore as _, StoreError, Version, VersionNumber,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::between::{Asked, Between, Verdict};
use super::moto::{Moto, id};
use crate::rig::{bytes, new_secret, number, secret_id, texts};

/// Adds a version with a record that names the content.
async fn add(store: &AwsStore, version: u64, content: &str) -> Result<VersionNumber, StoreError> {
    let (bytes, record) = (bytes(content.as_bytes()), texts(&[("digest", content)]));
    let new = NewVersion { number: number(version), content: &bytes, record: &record };
    store.add_version(&secret_id(), &new).await
}

/// Adds a version after the newest one.
async fn add_next(store: &AwsStore, content: &str) -> Result<VersionNumber, StoreError> {
    let newest = store.newest_version(&secret_id()).await.unwrap().unwrap();
    add(store, newest.number.next().get(), content).await
}

/// A secret with this many versions.
async fn with_versions(moto: &Moto, count: u64) -> AwsStore {
    let store = moto.store().await;
    store.create(&secret_id(), &new_secret(Replication::Automatic { kms_key: None })).await.unwrap();
    for version in 1..=count {
        add(&store, version, &format!("content-{version}")).await.unwrap();
    }
    store
}

async fn is_within_the_limit_of_labels(moto: &Moto) -> bool {
    let labels = moto.labels(&secret_id()).await;
    labels.as_object().unwrap().values().filter_map(Value::as_array).map(Vec::len).sum::<usize>() <= 20
}

/// After an addition that ends at any call, readers get a whole version that its writer has read back, the same addition is completed by
/// repeating it, and another one goes on.
#[tokio::test(flavor = "multi_thread")]
async fn an_addition_that_ends_anywhere_is_completed_or_ignored() {
    let endings = [
        (Verdict::Refuse("ExpiredTokenException"), ErrorKind::Unauthenticated),
        (Verdict::Refuse("ThrottlingException"), ErrorKind::QuotaExceeded),
        (Verdict::Refuse("AccessDeniedException"), ErrorKind::PermissionDenied),
        (Verdict::LoseAnswer, ErrorKind::Internal),
    ];
    // The second number of versions makes the addition take the labels of the oldest one first.
    for versions in [1, 8] {
        for (ending, kind) in endings {
            for (step, next) in (0..9).flat_map(|step| [(step, "same"), (step, "other")]) {
                let Some(moto) = Moto::new() else { return };
                let store = with_versions(&moto, versions).await;
                let ends = move |asked: &Asked| if asked.before == step { ending } else { Verdict::Pass };
                let between = Between::before(&moto, ends).await;
                let case = format!("{versions} versions, {ending:?} at {step}, then the {next}");
                let (former, number) = (format!("content-{versions}"), versions + 1);
                match add(&between.store, number, "new").await {
                    // All steps were made before.
                    Ok(added) => assert!(added.get() == number && between.received() <= step, "{case}"),
                    Err(error) => assert_eq!(error.kind, kind, "{case}: {error}"),
                }
                let current = moto.current(&secret_id()).await.unwrap();
                assert!(current == former || current == "new", "{case}: {current}");
                let added =
                    if next == "same" { add(&store, number, "new").await } else { add_next(&store, "other").await };
                let added = added.unwrap_or_else(|error| panic!("{case}: {error}"));
                let expected = if next == "same" { "new" } else { "other" };
                assert_eq!(moto.current(&secret_id()).await.as_deref(), Some(expected), "{case}");
                let newest = store.newest_version(&secret_id()).await.unwrap().unwrap();
                assert_eq!(newest.number, added, "{case}");
                let Version::Live(live) = store.read_version(&secret_id(), added).await.unwrap() else {
                    panic!("{case}")
                };
                assert_eq!(live.record, texts(&[("digest", expected)]), "{case}");
                assert!(is_within_the_limit_of_labels(&moto).await, "{case}: {}", moto.labels(&secret_id()).await);
            }
        }
    }
}

/// A writer that is overtaken between its put and its move leads no reader to its version.
#[tokio::test(flavor = "multi_thread")]
async fn an_overtaken_writer_does_not_become_current() {
    let Some(moto) = Moto::new() else { return };
    let store = with_versions(&moto, 1).await;
    let stops = |asked: &Asked| match asked.operation.as_str() {
        "UpdateSecretVersionStage" => Verdict::Refuse("ThrottlingException"),
        _ => Verdict::Pass,
    };
    let between = Between::before(&moto, stops).await;
    add(&between.store, 2, "slow").await.unwrap_err();
    assert!(matches!(store.read_version(&secret_id(), number(2)).await.unwrap(), Version::Disabled));
    add(&store, 3, "fast").await.unwrap();
    assert_eq!(add(&store, 2, "slow").await.unwrap_err().kind, ErrorKind::Changed);
    assert_eq!(moto.current(&secret_id()).await.as_deref(), Some("fast"));
    assert!(matches!(store.read_version(&secret_id(), number(2)).await.unwrap(), Version::Destroyed));
}

/// A version that was seen as disabled is not read, so a writer that passes it over does not know its record. If it has become the
/// current one meanwhile, it is looked at again.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_was_passed_over_is_not_covered_once_it_is_current() {
    let Some(moto) = Moto::new() else { return };
    let older = with_versions(&moto, 1).await;
    let stops = |asked: &Asked| match asked.operation.as_str() {
        "UpdateSecretVersionStage" => Verdict::Refuse("ThrottlingException"),
        _ => Verdict::Pass,
    };
    add(&Between::before(&moto, stops).await.store, 2, "newer").await.unwrap_err();
    assert!(matches!(older.read_version(&secret_id(), number(2)).await.unwrap(), Version::Disabled));
    add(&moto.store().await, 2, "newer").await.unwrap();
    assert_eq!(add(&older, 3, "older").await.unwrap_err().kind, ErrorKind::Changed);
    assert_eq!(moto.current(&secret_id()).await.as_deref(), Some("newer"));
    // Now its record is known.
    assert!(matches!(older.read_version(&secret_id(), number(2)).await.unwrap(), Version::Live(_)));
    add(&older, 3, "older").await.unwrap();
}

/// The same, if another version above it is seen after it has become current.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_of_several_versions_that_were_passed_over_counts() {
    let Some(moto) = Moto::new() else { return };
    let older = with_versions(&moto, 1).await;
    let stops = |asked: &Asked| match asked.operation.as_str() {
        "UpdateSecretVersionStage" => Verdict::Refuse("ThrottlingException"),
        _ => Verdict::Pass,
    };
    let between = Between::before(&moto, stops).await;
    add(&between.store, 2, "newer").await.unwrap_err();
    add(&between.store, 3, "killed").await.unwrap_err();
    assert!(matches!(older.read_version(&secret_id(), number(2)).await.unwrap(), Version::Disabled));
    moto.admin(
        &secret_id(),
        "UpdateSecretVersionStage",
        json!({"VersionStage": "AWSCURRENT", "RemoveFromVersionId": id(1), "MoveToVersionId": id(2)}),
    )
    .await;
    assert!(matches!(older.read_version(&secret_id(), number(3)).await.unwrap(), Version::Disabled));
    assert_eq!(add(&older, 4, "older").await.unwrap_err().kind, ErrorKind::Changed);
    assert_eq!(moto.current(&secret_id()).await.as_deref(), Some("newer"));
}

/// A person's version may come between the look at a secret without one and the first addition.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_version_that_is_not_current_is_no_success() {
    let Some(moto) = Moto::new() else { return };
    let store = with_versions(&moto, 0).await;
    assert_eq!(store.newest_version(&secret_id()).await.unwrap(), None);
    let token = uuid::Uuid::now_v7().to_string();
    let theirs = json!({"SecretString": "theirs", "ClientRequestToken": token});
    let hides = |asked: &Asked| match (asked.operation.as_str(), asked.before) {
        ("DescribeSecret", 0) => Verdict::HideVersions,
        _ => Verdict::Pass,
    };
    moto.admin(&secret_id(), "PutSecretValue", theirs).await;
    let between = Between::before(&moto, hides).await;
    assert_eq!(add(&between.store, 1, "ours").await.unwrap_err().kind, ErrorKind::Changed);
    assert_eq!(moto.current(&secret_id()).await.as_deref(), Some("theirs"));
}

/// A writer that needs room may take the labels of a version that its writer is about to make the current one.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_taken_meanwhile_is_put_back() {
    let Some(moto) = Moto::new() else { return };
    let store = with_versions(&moto, 1).await;
    // Describe, put, read back, move.
    let takes = |asked: &Asked| match (asked.operation.as_str(), asked.before) {
        ("UpdateSecretVersionStage", 3) => Verdict::TakeRecord,
        _ => Verdict::Pass,
    };
    let between = Between::before(&moto, takes).await;
    add(&between.store, 2, "new").await.unwrap();
    assert_eq!(between.received(), 6, "the label of the record was put back");
    let Version::Live(live) = store.read_version(&secret_id(), number(2)).await.unwrap() else {
        panic!("must be live")
    };
    assert_eq!(live.record, texts(&[("digest", "new")]));
}

/// Many runs that are killed before they lead readers leave room for the next one.
#[tokio::test(flavor = "multi_thread")]
async fn what_killed_runs_leave_does_not_block() {
    let Some(moto) = Moto::new() else { return };
    let store = with_versions(&moto, 8).await;
    let stops = |asked: &Asked| match asked.operation.as_str() {
        "GetSecretValue" => Verdict::Refuse("ThrottlingException"),
        _ => Verdict::Pass,
    };
    let between = Between::before(&moto, stops).await;
    for version in 9..=25 {
        add(&between.store, version, &format!("killed-{version}")).await.unwrap_err();
        assert!(is_within_the_limit_of_labels(&moto).await, "{version}: {}", moto.labels(&secret_id()).await);
    }
    assert_eq!(moto.current(&secret_id()).await.as_deref(), Some("content-8"));
    add(&store, 26, "last").await.unwrap();
    assert_eq!(moto.current(&secret_id()).await.as_deref(), Some("last"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_does_not_show_yet_is_waited_for() {
    let Some(moto) = Moto::new() else { return };
    let store = with_versions(&moto, 1).await;
    // Describe, put, and then four reads, of which the last succeeds.
    let lagging = |asked: &Asked| match (asked.operation.as_str(), asked.before) {
        ("GetSecretValue", 0..5) => Verdict::Refuse("ResourceNotFoundException"),
        _ => Verdict::Pass,
    };
    let between = Between::before(&moto, lagging).await;
    add(&between.store, 2, "b").await.unwrap();
    assert_eq!(between.received(), 8);
    assert_eq!(moto.current(&secret_id()).await.as_deref(), Some("b"));

    let never = |asked: &Asked| match asked.operation.as_str() {
        "GetSecretValue" => Verdict::Refuse("ResourceNotFoundException"),
        _ => Verdict::Pass,
    };
    let between = Between::before(&moto, never).await;
    let hurried = AwsSettings { call_timeout: Duration::from_millis(300), ..between.settings.clone() };
    let error = add(&AwsStore::connect(&hurried).await.unwrap(), 3, "c").await.unwrap_err();
    assert_eq!((error.kind, error.is_transient()), (ErrorKind::TimedOut, true), "{error}");
    assert_eq!(moto.current(&secret_id()).await.as_deref(), Some("b"));
    assert!(store.newest_version(&secret_id()).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_writers_of_one_number_one_wins_and_readers_get_its_version() {
    let Some(moto) = Moto::new() else { return };
    let store = Arc::new(with_versions(&moto, 1).await);
    for (round, is_same) in [(2, false), (3, true)] {
        let mut writers = JoinSet::new();
        for writer in 0..20 {
            let store = Arc::clone(&store);
            let content = if is_same { "same".to_owned() } else { format!("writer-{writer}") };
            writers.spawn(async move { add(&store, round, &content).await.map(|_number| content) });
        }
        let (added, refused): (Vec<_>, Vec<_>) = writers.join_all().await.into_iter().partition(Result::is_ok);
        assert_eq!(added.len(), if is_same { 20 } else { 1 });
        let kinds: Vec<_> = refused.into_iter().map(|error| error.unwrap_err().kind).collect();
        assert!(kinds.iter().all(|kind| *kind == ErrorKind::Changed), "{kinds:?}");
        assert_eq!(moto.current(&secret_id()).await, added.into_iter().next().unwrap().ok());
    }
}
