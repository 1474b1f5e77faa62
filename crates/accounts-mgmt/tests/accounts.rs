//! The client against an emulated AMS: its list, its identity, its failures, and that none of them shows an answer.

#![expect(clippy::unwrap_used, reason = "what is missing fails the test that looks for it")]

use std::collections::BTreeSet;
use std::time::Duration;

use accounts_mgmt::{
    Accounts as _, AmsClient, AmsError, AmsSettings, ErrorKind, ImportedCredential, Ksuid, RegistryId,
};
use emulators::accounts_mgmt::{AccountsMgmt, Credential, Settings};
use rstest::rstest;
use secrecy::ExposeSecret as _;
use tempfile::TempDir;

/// Beginning of every token.
const TOKEN: &str = "token-of-";

struct Rig {
    ams: AccountsMgmt,
    client: AmsClient,
    folder: TempDir,
}

// === impl Rig ===

impl Rig {
    async fn new(rows: u32, faults: &[&str]) -> Self {
        Self::with(
            rows,
            Settings { faults: faults.iter().map(|text| text.parse().unwrap()).collect(), ..Settings::default() },
        )
        .await
    }

    async fn with(rows: u32, settings: Settings) -> Self {
        let (folder, secret) = (tempfile::tempdir().unwrap(), settings.client_secret.clone());
        let ams = AccountsMgmt::start(settings).await.unwrap();
        for row in 0..rows {
            ams.add(credential(row));
        }
        let client_secret_file = folder.path().join("secret");
        daemon::file::replace(&client_secret_file, secret.as_bytes()).unwrap();
        let settings = AmsSettings {
            address: ams.url().parse().unwrap(),
            token_address: ams.token_url().parse().unwrap(),
            client_id: "pull-secret-service".to_owned(),
            client_secret_file,
            ca_file: None,
            call_timeout: Duration::from_secs(20),
        };
        Self { client: AmsClient::new(settings).unwrap(), ams, folder }
    }

    async fn all(&self) -> Result<Vec<ImportedCredential>, AmsError> {
        let mut all: Vec<ImportedCredential> = Vec::new();
        loop {
            let page = self.client.credentials(all.last().map(|last| &last.id)).await?;
            if page.items.is_empty() {
                return Ok(all);
            }
            all.extend(page.items);
        }
    }
}

fn credential(row: u32) -> Credential {
    Credential {
        username: format!("ams+user{row}"),
        token: format!("{TOKEN}{row}"),
        registry: "Quay_quay.io".to_owned(),
        account: format!("account{row}"),
        resource: String::new(),
        created: 1_700_000_000 + i64::from(row) * 1000,
    }
}

fn quay() -> RegistryId {
    "Quay_quay.io".parse().unwrap()
}

/// Rows appear before the second and the third page: no row is missing or repeated.
#[tokio::test]
async fn a_list_that_changes_while_it_is_read_has_each_row_once() {
    let rig = Rig::new(250, &["listCredentials:insert*2@2"]).await;
    let all = rig.all().await.unwrap();
    let names: BTreeSet<&str> = all.iter().map(|credential| credential.username.as_str()).collect();
    assert_eq!(names.len(), all.len());
    for row in 0..250 {
        assert!(names.contains(format!("ams+user{row}").as_str()), "row {row} is missing");
    }
    let first = &all[0];
    assert_eq!(
        (first.token.expose_secret(), first.account.as_deref(), &first.resource),
        ("token-of-0", Some("account0"), &None)
    );
    assert!(first.created.is_some() && first.registry == quay());
}

#[tokio::test]
async fn reads_counts_and_deletes() {
    let rig = Rig::new(3, &[]).await;
    assert_eq!(rig.client.count(&quay()).await.unwrap(), 3);
    assert_eq!(rig.client.count(&"other".parse().unwrap()).await.unwrap(), 0);
    assert_eq!(rig.client.registry(&quay()).await.unwrap().unwrap().host, "quay.io");
    assert_eq!(rig.client.registry(&"other".parse().unwrap()).await.unwrap(), None);
    let id = rig.all().await.unwrap()[1].id.clone();
    assert_eq!(rig.client.credential(&id).await.unwrap().unwrap().username, "ams+user1");
    let rotated = rig.ams.rotate(id.as_str(), "other").unwrap();
    assert_eq!(rig.client.credential(&id).await.unwrap().unwrap().resource.as_deref(), Some("rotating"));
    assert_eq!(rig.client.credential(&rotated.parse().unwrap()).await.unwrap().unwrap().token.expose_secret(), "other");
    assert!(rig.client.delete(&id).await.unwrap());
    assert!(!rig.client.delete(&id).await.unwrap());
    assert!(rig.client.credential(&id).await.unwrap().is_none());
    assert_eq!(rig.ams.credentials().len(), 3);
}

#[tokio::test]
async fn an_access_token_is_kept_and_replaced_when_it_is_refused() {
    let rig = Rig::new(1, &[]).await;
    for _call in 0..3 {
        rig.client.count(&quay()).await.unwrap();
    }
    assert_eq!(rig.ams.counts()["token"], 1);
    rig.ams.withdraw_tokens();
    rig.client.count(&quay()).await.unwrap();
    assert_eq!((rig.ams.counts()["token"], rig.ams.counts()["listCredentials"]), (2, 5));
}

#[tokio::test]
async fn an_expired_access_token_is_not_sent() {
    let rig = Rig::with(1, Settings { token_lifetime: Duration::ZERO, ..Settings::default() }).await;
    let error = rig.client.count(&quay()).await.unwrap_err();
    assert_eq!(
        (error.kind, rig.ams.counts()["token"]),
        (ErrorKind::Unauthenticated, 2),
        "it is replaced once in a call"
    );
}

#[rstest]
#[case::throttled("listCredentials:throttled(retry-after=7s)", ErrorKind::TooManyRequests, Some(7), true)]
#[case::unavailable("listCredentials:unavailable(retry-after=3s)", ErrorKind::Unavailable, Some(3), true)]
#[case::failed("listCredentials:internal-error", ErrorKind::Internal, None, true)]
#[case::without_a_reason("listCredentials:forbidden", ErrorKind::PermissionDenied, None, false)]
#[case::refused_twice("listCredentials:unauthorized*2", ErrorKind::Unauthenticated, None, false)]
#[case::page_of_a_proxy("listCredentials:garbage", ErrorKind::Internal, None, true)]
#[case::cut("listCredentials:cut", ErrorKind::Unavailable, None, true)]
#[case::sso("token:unavailable(retry-after=2s)", ErrorKind::Unavailable, Some(2), true)]
#[case::sso_refuses("token:unauthorized", ErrorKind::Unauthenticated, None, false)]
#[tokio::test]
async fn each_failure_has_its_kind(
    #[case] fault: &str,
    #[case] kind: ErrorKind,
    #[case] retry_after: Option<u64>,
    #[case] transient: bool,
) {
    use daemon::retry::Transient as _;

    let rig = Rig::new(1, &[fault]).await;
    let error = rig.all().await.unwrap_err();
    assert_eq!((error.kind, error.retry_after.map(|delay| delay.as_secs())), (kind, retry_after), "{error}");
    assert_eq!(error.is_transient(), transient);
    let text = format!("{error} {error:?} {:?}", rig.client);
    assert!(!text.contains(TOKEN) && !text.contains("Scripted"), "{text}");
    rig.all().await.unwrap();
}

#[tokio::test]
async fn a_deletion_whose_answer_was_lost_is_found_again() {
    let rig = Rig::new(1, &["deleteCredential:commit-then-cut"]).await;
    let id: Ksuid = rig.all().await.unwrap()[0].id.clone();
    let error = rig.client.delete(&id).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(
        error.to_string().starts_with(&format!("cannot delete the registry credential of AMS {id}: not available"))
    );
    assert!(!rig.client.delete(&id).await.unwrap());
}

#[tokio::test]
async fn a_missing_permission_and_a_wrong_secret_have_a_remedy() {
    let rig = Rig::with(1, Settings { may_delete: false, ..Settings::default() }).await;
    let id = rig.all().await.unwrap()[0].id.clone();
    let error = rig.client.delete(&id).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    assert!(
        error.hint().unwrap().contains("permission to read and delete")
            && error.to_string().contains("HTTP status 403, ACCT-MGMT-11")
    );
    rig.ams.withdraw_tokens();
    daemon::file::replace(&rig.folder.path().join("secret"), b"wrong-secret").unwrap();
    let error = rig.client.count(&quay()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unauthenticated);
    assert!(error.hint().unwrap().contains("client_secret_file") && !format!("{error:?}").contains("wrong-secret"));
    std::fs::remove_file(rig.folder.path().join("secret")).unwrap();
    let error = rig.client.count(&quay()).await.unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
}
