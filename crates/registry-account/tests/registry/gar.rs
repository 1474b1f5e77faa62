//! The request for a token, and what is read from the answer.

use std::time::Duration;

use axum::http::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use google_cloud_auth::credentials::{CacheableResource, CredentialsProvider};
use google_cloud_auth::errors::CredentialsError;
use http::{Extensions, HeaderMap};
use registry_account::{
    Credential, ErrorKind, GarRegistry, GarSettings, Identities, Login, Operation, Registry as _, ServiceAccount,
};
use rstest::rstest;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use testkit::fake::{Fake, Received, json as document, page};

use crate::rig::{PASSWORD, TOKEN, call, credential, gar, gar_settings, image, name, new_account, time};
use crate::secrecy::shows_no_secret;

const ACCOUNT: &str = "puller@fleet.iam.gserviceaccount.com";

fn minted() -> Value {
    json!({"accessToken": PASSWORD, "expireTime": "2026-11-28T14:00:00Z"})
}

#[tokio::test]
async fn a_token_is_minted_for_the_service_account() {
    let fake = Fake::answering(document(200, &minted())).await;
    let Credential { account, password } = gar(fake.address).create(&new_account()).await.unwrap();
    assert_eq!(password.expose_secret(), PASSWORD);
    assert_eq!((account.login.as_str(), account.expires), ("oauth2accesstoken", Some(time("2026-11-28T14:00:00Z"))));
    assert_eq!((account.name, account.credential), (name(), Some(credential())));
    let Received { method, target, headers, body } = fake.only();
    let path = format!("/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken");
    assert_eq!((method.as_str(), target.as_str()), ("POST", path.as_str()));
    assert_eq!(headers["authorization"], format!("Bearer {TOKEN}"));
    let scope = "https://www.googleapis.com/auth/cloud-platform.read-only";
    assert_eq!(body, json!({"scope": [scope], "lifetime": "3600s"}));
}

/// There is no account, so nothing is asked for.
#[tokio::test]
async fn what_there_is_not_is_not_asked_for() {
    let fake = Fake::answering(page(500, "")).await;
    let registry = gar(fake.address);
    assert_eq!(registry.find(&name()).await.unwrap(), None);
    assert!(!registry.delete(&name()).await.unwrap());
    registry.permit(&name()).await.unwrap();
    for operation in [Operation::Usage, Operation::Disable] {
        assert_eq!(call(&registry, operation).await.unwrap_err().kind, ErrorKind::Unsupported);
    }
    assert_eq!(fake.received().len(), 0);
    assert_eq!(registry.capabilities().identities, Identities::Minted);
}

/// A list shows if the identity may mint tokens.
#[tokio::test]
async fn a_list_proves_the_identity_and_is_empty() {
    let fake = Fake::answering(document(200, &minted())).await;
    assert_eq!(gar(fake.address).list(None).await.unwrap(), registry_account::ListedAccounts::default());
    assert_eq!(fake.received().len(), 1);
}

#[rstest]
#[case::no_token(json!({"expireTime": "2026-11-28T14:00:00Z"}))]
#[case::empty_token(json!({"accessToken": "", "expireTime": "2026-11-28T14:00:00Z"}))]
#[case::no_end(json!({"accessToken": PASSWORD}))]
#[case::no_time(json!({"accessToken": PASSWORD, "expireTime": "soon"}))]
#[tokio::test]
async fn a_token_without_an_end_is_a_failure(#[case] answer: Value) {
    let fake = Fake::answering(document(200, &answer)).await;
    let error = call(&gar(fake.address), Operation::Create).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert!(!error.to_string().contains(PASSWORD), "{error}");
}

#[rstest]
#[case(400, "constraints/iam.allowServiceAccountCredentialLifetimeExtension")]
#[case(401, "credentials of the environment")]
#[case(403, "roles/iam.serviceAccountTokenCreator on puller@fleet")]
#[case(404, "service account puller@fleet")]
#[tokio::test]
async fn a_refusal_names_its_remedy(#[case] status: u16, #[case] remedy: &str) {
    let fake = Fake::answering(page(status, "")).await;
    let error = call(&gar(fake.address), Operation::Create).await.unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains(remedy)), "{:?}", error.hint());
    assert!(error.to_string().starts_with(&format!("cannot create account {ACCOUNT}: ")), "{error}");
}

/// An identity whose token service fails.
#[derive(Debug)]
struct Failing {
    is_transient: bool,
}

impl CredentialsProvider for Failing {
    async fn headers(&self, _extensions: Extensions) -> Result<CacheableResource<HeaderMap>, CredentialsError> {
        Err(CredentialsError::from_msg(self.is_transient, format!("refused {TOKEN}")))
    }

    async fn universe_domain(&self) -> Option<String> {
        None
    }
}

#[rstest]
#[case(true, ErrorKind::Unavailable)]
#[case(false, ErrorKind::Unauthenticated)]
#[tokio::test]
async fn an_outage_of_the_token_service_is_one(#[case] is_transient: bool, #[case] kind: ErrorKind) {
    let fake = Fake::answering(document(200, &minted())).await;
    let registry = GarRegistry::connect_as(gar_settings(fake.address), Failing { is_transient }.into()).unwrap();
    let error = call(&registry, Operation::Create).await.unwrap_err();
    assert_eq!((error.kind, fake.received().len()), (kind, 0), "{error}");
    shows_no_secret(&error);
}

/// A registry that lets the given token in, as a node asks: token service, then the manifest.
fn registry(request: &Received) -> Response<String> {
    let authorization = request.headers.get("authorization").map(|value| value.to_str().unwrap());
    match (request.target.as_str(), authorization) {
        ("/v2/", None) => {
            let mut answer = page(401, "");
            let realm = format!(
                "Bearer realm=\"http://{}/v2/token\",service=\"gar\"",
                request.headers["host"].to_str().unwrap()
            );
            answer.headers_mut().insert("www-authenticate", realm.parse().unwrap());
            answer
        }
        (target, Some(basic)) if target.starts_with("/v2/token") => {
            let right = format!("Basic {}", STANDARD.encode(format!("oauth2accesstoken:{PASSWORD}")));
            if basic == right { document(200, &json!({"token": "opaque"})) } else { page(403, "") }
        }
        ("/v2/fleet/release/manifests/latest", Some("Bearer opaque")) => page(200, ""),
        _ => page(403, ""),
    }
}

#[rstest]
#[case(PASSWORD, true)]
#[case("another", false)]
#[tokio::test]
async fn a_probe_pulls_as_a_node_does(#[case] password: &str, #[case] pulls: bool) {
    let fake = Fake::start(registry).await;
    let login = Login { username: "oauth2accesstoken".to_owned(), password: password.into() };
    let image = registry_account::Image { reference: Some("latest".parse().unwrap()), ..image() };
    let finding = gar(fake.address).probe(&login, &image).await;
    assert_eq!(finding.verdict == registry_account::probe::Verdict::Pulls, pulls, "{finding}");
}

#[rstest]
#[case("puller@fleet.iam.gserviceaccount.com", true)]
#[case("123-compute@developer.gserviceaccount.com", true)]
#[case("puller", false)]
#[case("puller@", false)]
#[case("@fleet", false)]
#[case("a/../b@fleet", false)]
#[case("a@b@c", false)]
#[case("pull er@fleet", false)]
fn the_address_of_a_service_account_fits_into_a_path(#[case] text: &str, #[case] fits: bool) {
    assert_eq!(text.parse::<ServiceAccount>().is_ok(), fits);
}

#[test]
fn debug_shows_no_token() {
    let settings = GarSettings { token_life: Duration::from_mins(5), ..gar_settings("127.0.0.1:1".parse().unwrap()) };
    let registry: GarRegistry = GarRegistry::connect_as(settings, crate::rig::identity()).unwrap();
    let shown = format!("{registry:?}");
    assert!(shown.contains(ACCOUNT) && !shown.contains(TOKEN), "{shown}");
}
