//! Red Hat's service accounts: what is sent, what is refused, and the client's certificate.

use std::time::Duration;

use axum::http::Response;
use daemon::connections::ClientCertificate;
use emulators::red_hat::{Operation as Called, RedHat, Settings};
use registry_account::probe::Verdict;
use registry_account::{
    AccountError, ErrorKind, Image, NewAccount, Operation, RedHatRegistry, RedHatSettings, Registry as _,
};
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rig::{
    CALL_TIMEOUT, CREDENTIAL, DESCRIPTION, OPERATIONS, PASSWORD, UNSUPPORTED, call, name, new_account, red_hat,
    red_hat_settings, time,
};
use crate::secrecy::shows_no_secret;
use testkit::fake::{Fake, Received, json as document, page};

/// The certificate of an emulator's client, and the emulator's authority.
pub(crate) struct Files(TempDir);

// === impl Files ===

impl Files {
    pub(crate) fn of(server: &RedHat) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.write("ca.crt", server.authority());
        files.write("tls.crt", server.client_certificate());
        files.write("tls.key", server.client_key());
        files
    }

    fn write(&self, name: &str, content: &str) {
        daemon::file::replace(&self.0.path().join(name), content.as_bytes()).unwrap();
    }

    pub(crate) fn settings(&self, server: &RedHat) -> RedHatSettings {
        let path = |name: &str| self.0.path().join(name);
        RedHatSettings {
            address: server.url().parse().unwrap(),
            host: server.registry().to_string(),
            partner: server.partner().parse().unwrap(),
            certificate: ClientCertificate { cert_file: path("tls.crt"), key_file: path("tls.key") },
            token_life: Settings::default().bearer_lifetime,
            ca_file: Some(path("ca.crt")),
            call_timeout: CALL_TIMEOUT,
            calls_per_minute: 120,
            calls: None,
        }
    }
}

/// The account of the rig as Red Hat answers it, by the public design.
fn account() -> Value {
    json!({
        "name": "hf-one", "description": format!("{DESCRIPTION} [hyperfleet credential {CREDENTIAL}]"),
        "partnerCode": "fleet", "created": "2026-11-22T10:00:00.000Z", "createdBy": "fleet", "tokenDate": "2026-11-22",
        "credentials": {"username": "|hf-one", "password": PASSWORD},
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut account = account();
    account[member] = value;
    account
}

fn login(username: &str, password: &str) -> Value {
    with("credentials", json!({"username": username, "password": password}))
}

fn good(request: &Received) -> Response<String> {
    match request.method.as_str() {
        "POST" => document(201, &account()),
        "DELETE" => page(204, ""),
        _ => document(200, &account()),
    }
}

#[rstest]
#[case(Operation::Create, "POST", "/management/v1/partners/fleet/service-accounts")]
#[case(Operation::Find, "GET", "/management/v1/partners/fleet/service-accounts/hf-one")]
#[case(Operation::Permit, "GET", "/management/v1/partners/fleet/service-accounts/hf-one")]
#[case(Operation::Delete, "DELETE", "/management/v1/partners/fleet/service-accounts/hf-one")]
#[case(Operation::List, "GET", "/management/v1/partners/fleet/service-accounts/identity-check")]
#[tokio::test]
async fn each_call_is_one_request(#[case] operation: Operation, #[case] method: &str, #[case] target: &str) {
    let fake = Fake::start(good).await;
    call(&red_hat(fake.address), operation).await.unwrap();
    let [sent] = &fake.received()[..] else { panic!("{:?}", fake.received()) };
    assert_eq!((sent.method.as_str(), sent.target.as_str()), (method, target));
    let body = if operation == Operation::Create {
        json!({"name": "hf-one", "description": format!("{DESCRIPTION} [hyperfleet credential {CREDENTIAL}]")})
    } else {
        Value::Null
    };
    assert_eq!(sent.body, body);
    assert_eq!(sent.headers.get("authorization"), None);
}

#[tokio::test]
async fn what_there_is_not_sends_nothing() {
    let fake = Fake::start(good).await;
    for operation in UNSUPPORTED {
        assert_eq!(call(&red_hat(fake.address), operation).await.unwrap_err().kind, ErrorKind::Unsupported);
    }
    assert_eq!(fake.received().len(), 0);
}

#[rstest]
#[case::as_sent(account(), None)]
#[case::without_a_partner(with("partnerCode", Value::Null), None)]
#[case::without_a_time(with("created", Value::Null), None)]
#[case::another_form_of_time(with("created", json!(1_763_805_600)), None)]
#[case::another_name(with("name", json!("hf-two")), Some(ErrorKind::Internal))]
#[case::another_partner(with("partnerCode", json!("other")), Some(ErrorKind::Corrupt))]
#[case::another_login(login("hf-one", PASSWORD), Some(ErrorKind::Corrupt))]
#[case::no_password(login("|hf-one", ""), Some(ErrorKind::Internal))]
#[case::no_credentials(with("credentials", Value::Null), Some(ErrorKind::Internal))]
#[case::no_description(with("description", Value::Null), Some(ErrorKind::Corrupt))]
#[case::no_id(with("description", json!(DESCRIPTION)), Some(ErrorKind::Corrupt))]
#[case::another_description(
    with("description", json!(format!("another [hyperfleet credential {CREDENTIAL}]"))),
    Some(ErrorKind::Corrupt)
)]
#[tokio::test]
async fn an_account_that_was_kept_otherwise_is_not_returned(#[case] kept: Value, #[case] kind: Option<ErrorKind>) {
    let answers = [document(201, &kept), document(200, &kept)];
    for answer in answers {
        let fake = Fake::answering(answer).await;
        let created = red_hat(fake.address).create(&new_account()).await;
        assert_eq!(created.err().map(|error| error.kind), kind);
    }
    // The same holds for an account whose answer was lost; without its id it is another's.
    let fake = conflict(document(200, &kept)).await;
    let again = red_hat(fake.address).create(&new_account()).await.err().map(|error| error.kind);
    let has_id = kept["description"].as_str().is_some_and(|description| description.contains(CREDENTIAL));
    let is_read = kept["credentials"].is_object();
    assert_eq!(again, if has_id || !is_read { kind } else { Some(ErrorKind::NameTaken) });
}

/// Answers that the name of a new account is taken, and shows the one that has it.
async fn conflict(found: Response<String>) -> Fake {
    Fake::start(move |request| match request.method.as_str() {
        "POST" => document(409, &json!({"message": format!("409: {DESCRIPTION} exists")})),
        _ => found.clone(),
    })
    .await
}

#[rstest]
#[case::deleted(document(404, &json!({"message": "404: Service Account not found"})), ErrorKind::NameTaken)]
#[case::of_a_person(document(200, &with("description", json!("of a person"))), ErrorKind::NameTaken)]
#[case::broken(page(503, ""), ErrorKind::Unavailable)]
#[case::unreadable(page(200, "<html>"), ErrorKind::Internal)]
#[tokio::test]
async fn a_name_that_exists_is_ours_only_with_our_credential(#[case] found: Response<String>, #[case] kind: ErrorKind) {
    let fake = conflict(found).await;
    let error = red_hat(fake.address).create(&new_account()).await.unwrap_err();
    assert_eq!((error.operation, error.kind), (Operation::Create, kind));
    assert!(fake.received().iter().skip(1).all(|request| request.method == "GET"), "nothing is recovered");
    shows_no_secret(&error);
}

/// The API has brought the password back with the account.
#[tokio::test]
async fn a_deleted_account_is_never_recovered() {
    let server = RedHat::start(Settings::default()).await.unwrap();
    let files = Files::of(&server);
    let registry = RedHatRegistry::connect(files.settings(&server)).unwrap();
    registry.create(&new_account()).await.unwrap();
    assert!(registry.delete(&name()).await.unwrap());
    assert_eq!(registry.create(&new_account()).await.unwrap_err().kind, ErrorKind::NameTaken);
    assert_eq!((server.accounts(), server.count(Called::RecoverAccount)), (Vec::new(), 0));
}

/// An account that seems to be gone is never deleted again, so that a wrong address must not say so.
#[rstest]
#[case(page(404, ""))]
#[case(page(404, "<html>404 page not found</html>"))]
#[case(document(404, &json!({"message": "404: Partner not found"})))]
#[tokio::test]
async fn a_missing_address_is_no_missing_account(#[case] answer: Response<String>) {
    let fake = Fake::answering(answer).await;
    for operation in OPERATIONS.into_iter().filter(|operation| !UNSUPPORTED.contains(operation)) {
        let error = call(&red_hat(fake.address), operation).await.unwrap_err();
        assert_eq!((error.operation, error.kind), (operation, ErrorKind::Invalid));
        assert!(error.hint().unwrap().contains("the partner `fleet` exists"), "{error}");
    }
}

#[tokio::test]
async fn the_end_of_a_password_is_that_of_the_account() {
    let settings = Settings { password_lifetime: Some(Duration::from_hours(24)), ..Settings::default() };
    let server = RedHat::start(settings).await.unwrap();
    let files = Files::of(&server);
    let registry = RedHatRegistry::connect(files.settings(&server)).unwrap();
    let created = registry.create(&new_account()).await.unwrap();
    let (start, end) = (created.account.created.unwrap(), created.account.expires.unwrap());
    assert_eq!(end.as_second() - start.as_second(), 24 * 60 * 60);
    assert_eq!(registry.find(&name()).await.unwrap(), Some(created.account.clone()));
    let image = Image { repository: "ubi9/ubi".parse().unwrap(), reference: None };
    assert_eq!(registry.probe(&created.login(), &image).await.verdict, Verdict::Pulls);
    server.advance_clock(Duration::from_hours(24));
    assert_eq!(registry.probe(&created.login(), &image).await.verdict, Verdict::Refused);
}

/// The failure of a client with other settings than those of the emulator.
async fn failure(change: impl FnOnce(&Files, &mut RedHatSettings)) -> AccountError {
    let server = RedHat::start(Settings::default()).await.unwrap();
    let files = Files::of(&server);
    let mut settings = files.settings(&server);
    change(&files, &mut settings);
    match RedHatRegistry::connect(settings) {
        Ok(registry) => registry.create(&new_account()).await.unwrap_err(),
        Err(error) => error,
    }
}

#[tokio::test]
async fn another_partner_is_denied() {
    let error = failure(|_files, settings| settings.partner = "other".parse().unwrap()).await;
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    assert!(error.hint().unwrap().contains("the partner `other`"), "{error}");
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_not_let_in() {
    let other = RedHat::start(Settings::default()).await.unwrap();
    let error = failure(|files, _settings| {
        files.write("tls.crt", other.client_certificate());
        files.write("tls.key", other.client_key());
    })
    .await;
    assert_eq!(error.kind, ErrorKind::Unavailable);
    // The alert may be lost with the connection, to which the request was still written.
    if error.to_string().contains("fatal alert") {
        assert!(error.hint().unwrap().contains("check the client's certificate"), "{error}");
    }
    shows_no_secret(&error);
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_trusted() {
    let other = RedHat::start(Settings::default()).await.unwrap();
    let error = failure(|files, _settings| files.write("ca.crt", other.authority())).await;
    assert_eq!(error.kind, ErrorKind::Unavailable);
}

#[rstest]
#[case::key_of_another("tls.key", None)]
#[case::no_key("tls.key", Some("no key"))]
#[case::no_certificate("tls.crt", Some("no certificate"))]
#[tokio::test]
async fn files_that_cannot_be_used_fail_the_start(#[case] file: &str, #[case] content: Option<&str>) {
    let other = RedHat::start(Settings::default()).await.unwrap();
    let error = failure(|files, _settings| files.write(file, content.unwrap_or(other.client_key()))).await;
    assert_eq!((error.operation, error.kind), (Operation::Connect, ErrorKind::Invalid));
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("certificate") && !shown.contains("PRIVATE"), "{shown}");
}

#[tokio::test]
async fn a_credential_and_a_registry_show_no_secret() {
    let fake = Fake::start(good).await;
    let registry = red_hat(fake.address);
    let created = registry.create(&new_account()).await.unwrap();
    assert_eq!(created.account.created, Some(time("2026-11-22T10:00:00Z")));
    let settings = red_hat_settings(fake.address);
    let shown = format!("{registry:?} {registry:#?} {created:?} {:?} {settings:?}", created.login());
    assert!(shown.contains("|hf-one") && shown.contains("fleet"), "{shown}");
    assert!(!shown.contains(PASSWORD), "{shown}");
}

#[tokio::test]
async fn a_long_description_is_not_sent() {
    let fake = Fake::start(good).await;
    let new = NewAccount { description: "d".repeat(RedHatSettings::MAX_DESCRIPTION + 1), ..new_account() };
    let error = red_hat(fake.address).create(&new).await.unwrap_err();
    assert_eq!((error.kind, fake.received().len()), (ErrorKind::Invalid, 0));
}
