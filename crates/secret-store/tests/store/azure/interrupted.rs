//! Additions that end between two steps, and answers that are lost.

use rstest::rstest;
use secret_store::{AzureStore, ErrorKind, SecretStore as _, VersionState};
use serde_json::json;

use super::key_vault::FastVault;
use super::writers::{add, reads, with_a_version};
use crate::rig::{number, secret_id};

/// After an addition that ends at any call, the same addition is completed by repeating it, and another one goes on.
#[rstest]
#[case::look("getSecretVersions:throttled", ErrorKind::QuotaExceeded)]
#[case::write("setSecret:throttled", ErrorKind::QuotaExceeded)]
#[case::write_answer("setSecret:commit-then-timeout", ErrorKind::TimedOut)]
#[case::write_cut("setSecret:commit-then-cut", ErrorKind::Unavailable)]
#[case::look_again("getSecretVersions:access-denied@2", ErrorKind::PermissionDenied)]
#[case::look_again_failed("getSecretVersions:internal-error@2", ErrorKind::Internal)]
#[tokio::test(flavor = "multi_thread")]
async fn an_addition_that_ends_anywhere_is_completed_or_ignored(#[case] fault: &str, #[case] kind: ErrorKind) {
    for next in ["same", "other"] {
        let vault = FastVault::new().await;
        let store = with_a_version(&vault).await;
        vault.inject(fault);
        let error = add(&store, 2, "new").await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        vault.server.clear_faults();
        let case = format!("{fault}, then the {next}");
        let expected = if next == "same" { "new" } else { "other" };
        let newest = if next == "same" { 2 } else { next_number(&store).await };
        add(&store, newest, expected).await.unwrap_or_else(|error| panic!("{case}: {error}"));
        is_newest(&vault, &store, newest, expected, &case).await;
        // The version of the run that ended is whole, if it is there.
        if newest == 3 {
            reads(&store, 2, "new", &case).await;
        }
    }
}

/// The winner's run has ended after its put, and this one has not seen it: it writes a version of the same number, with which readers
/// must not stay.
#[rstest]
#[case::all_steps("getDeletedSecret:throttled", ErrorKind::Changed)]
#[case::write_answer("setSecret:commit-then-timeout", ErrorKind::TimedOut)]
#[case::look_again("getSecretVersions:throttled@2", ErrorKind::QuotaExceeded)]
#[case::read_the_winner("getSecret:throttled", ErrorKind::QuotaExceeded)]
#[case::copy("setSecret:access-denied@2", ErrorKind::PermissionDenied)]
#[case::copy_answer("setSecret:commit-then-timeout@2", ErrorKind::TimedOut)]
#[case::disable("updateSecret:access-denied", ErrorKind::PermissionDenied)]
#[case::disable_answer("updateSecret:commit-then-cut", ErrorKind::Unavailable)]
#[case::compare("getSecret:throttled@2", ErrorKind::QuotaExceeded)]
#[tokio::test(flavor = "multi_thread")]
async fn a_loser_that_ends_anywhere_is_covered(#[case] fault: &str, #[case] kind: ErrorKind) {
    for next in ["winner", "other"] {
        let mut vault = FastVault::lagging().await;
        let store = with_a_version(&vault).await;
        let tags = json!({"hyperfleet-version": "2", "hyperfleet-record": "{\"digest\":\"winner\"}"});
        vault.put_unseen(&secret_id(), json!({"value": "winner", "tags": tags})).await;
        vault.inject(fault);
        let error = add(&store, 2, "loser").await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        vault.server.clear_faults();
        vault.show();
        let case = format!("{fault}, then the {next}");
        let newest = if next == "winner" { 2 } else { next_number(&store).await };
        add(&store, newest, next).await.unwrap_or_else(|error| panic!("{case}: {error}"));
        is_newest(&vault, &store, newest, next, &case).await;
        if newest == 3 {
            reads(&store, 2, "winner", &case).await;
        }
    }
}

async fn next_number(store: &AzureStore) -> u64 {
    store.newest_version(&secret_id()).await.unwrap().unwrap().number.next().get()
}

async fn is_newest(vault: &FastVault, store: &AzureStore, version: u64, content: &str, case: &str) {
    assert_eq!(vault.current(&secret_id()).await.as_deref(), Some(content), "{case}");
    let newest = store.newest_version(&secret_id()).await.unwrap().unwrap();
    assert_eq!((newest.number, newest.state), (number(version), VersionState::Live), "{case}");
    reads(store, version, content, case).await;
}
