//! The requests for a token at Azure Container Registry, and what is read from the answers.

use std::time::Duration;

use axum::http::Response;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use registry_account::probe::Verdict;
use registry_account::{AcrRegistry, AcrSettings, Credential, ErrorKind, Image, Login, Operation, Registry as _};
use rstest::rstest;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use testkit::fake::{Fake, Received, json as document, page};

use crate::rig::{PASSWORD, TOKEN, acr_settings, call, image, new_account, time};
use crate::secrecy::shows_no_secret;

const TENANT: &str = "5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0001";
const APPLICATION: &str = "5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0002";
const USER: &str = "00000000-0000-0000-0000-000000000000";
/// The token that Entra ID issues, which a form has to escape.
const ENTERED: &str = "ent3red-m4rker.a+b/c==";

fn acr(fake: &Fake) -> AcrRegistry {
    AcrRegistry::connect(acr_settings(fake.address)).unwrap()
}

/// A token with these claims.
fn jwt(claims: &Value) -> String {
    format!("e30.{}.{PASSWORD}", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

fn refresh_token() -> String {
    jwt(&json!({"exp": 1_795_874_400, "grant_type": "refresh_token"}))
}

/// Answers as Entra ID and the registry do.
fn azure(request: &Received) -> Response<String> {
    match request.target.as_str() {
        "/oauth2/exchange" => document(200, &json!({"refresh_token": refresh_token()})),
        _ => document(200, &json!({"token_type": "Bearer", "expires_in": 86_399, "access_token": ENTERED})),
    }
}

/// The decoded fields of a form.
fn fields(request: &Received) -> Vec<(String, String)> {
    assert_eq!(request.headers["content-type"], "application/x-www-form-urlencoded");
    let field = |field: &str| {
        let (name, value) = field.split_once('=').unwrap();
        (name.to_owned(), percent_decoded(value))
    };
    request.body.as_str().unwrap().split('&').map(field).collect()
}

fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |decoded, part| {
        let (code, rest) = part.split_at(2);
        format!("{decoded}{}{rest}", char::from(u8::from_str_radix(code, 16).unwrap()))
    })
}

fn owned<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[tokio::test]
async fn a_token_is_exchanged_and_read() {
    let fake = Fake::start(azure).await;
    let Credential { account, password } = acr(&fake).create(&new_account()).await.unwrap();
    assert_eq!(password.expose_secret(), refresh_token());
    assert_eq!((account.login.as_str(), account.expires), (USER, Some(time("2026-11-28T14:00:00Z"))));
    let received = fake.received();
    let [entry, exchange] = received.as_slice() else { panic!("{received:?}") };
    assert_eq!((entry.method.as_str(), entry.target.as_str()), ("POST", &*format!("/{TENANT}/oauth2/v2.0/token")));
    let expected = owned([
        ("grant_type", "client_credentials"),
        ("client_id", APPLICATION),
        ("scope", "https://containerregistry.azure.net/.default"),
        ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
        ("client_assertion", TOKEN),
    ]);
    assert_eq!(fields(entry), expected);
    assert_eq!((exchange.method.as_str(), exchange.target.as_str()), ("POST", "/oauth2/exchange"));
    let service = fake.address.to_string();
    let expected =
        owned([("grant_type", "access_token"), ("service", &service), ("tenant", TENANT), ("access_token", ENTERED)]);
    assert_eq!(fields(exchange), expected);
}

#[rstest]
#[case::no_token(json!({}))]
#[case::no_jwt(json!({"refresh_token": PASSWORD}))]
#[case::no_claims(json!({"refresh_token": format!("e30.{PASSWORD}.a")}))]
#[case::no_end(json!({"refresh_token": jwt(&json!({"sub": PASSWORD}))}))]
#[case::end_of_time(json!({"refresh_token": jwt(&json!({"exp": i64::MAX}))}))]
#[tokio::test]
async fn a_token_without_an_end_is_a_failure(#[case] exchanged: Value) {
    let fake = Fake::start(move |request| match request.target.as_str() {
        "/oauth2/exchange" => document(200, &exchanged),
        _ => azure(request),
    })
    .await;
    let error = call(&acr(&fake), Operation::Create).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    shows_no_secret(&error);
}

/// Entra ID says 400 or 401 to an application that it does not let in.
#[rstest]
#[case(400, "invalid_client", ErrorKind::Unauthenticated)]
#[case(401, "invalid_client", ErrorKind::Unauthenticated)]
#[case(400, "unauthorized_client", ErrorKind::Unauthenticated)]
#[case(400, "invalid_request", ErrorKind::Invalid)]
#[case(400, "M4RKER", ErrorKind::Invalid)]
#[tokio::test]
async fn a_refusal_of_entra_is_known_by_its_name(#[case] status: u16, #[case] name: &str, #[case] kind: ErrorKind) {
    let refusal = json!({"error": name, "error_description": format!("AADSTS70021: {TOKEN}")});
    let fake = Fake::answering(document(status, &refusal)).await;
    let error = call(&acr(&fake), Operation::Create).await.unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
    let is_helped = error.hint().is_some_and(|hint| hint.contains("federated credential"));
    assert_eq!(is_helped, kind == ErrorKind::Unauthenticated, "{:?}", error.hint());
    assert!(error.to_string().starts_with(&format!("cannot create account {APPLICATION}: ")), "{error}");
    shows_no_secret(&error);
}

/// The registry fails after Entra ID has answered, and repeats what it was sent.
#[rstest]
#[case(302, ErrorKind::Invalid)]
#[case(429, ErrorKind::QuotaExceeded)]
#[case(500, ErrorKind::Internal)]
#[case(503, ErrorKind::Unavailable)]
#[tokio::test]
async fn a_failure_of_the_registry_has_its_kind(#[case] status: u16, #[case] kind: ErrorKind) {
    let fake = Fake::start(move |request| match request.target.as_str() {
        "/oauth2/exchange" => {
            let mut answer = document(status, &json!({"error": ENTERED, "errors": [{"message": request.body}]}));
            answer.headers_mut().insert("retry-after", "17".parse().unwrap());
            answer
        }
        _ => azure(request),
    })
    .await;
    let error = call(&acr(&fake), Operation::Create).await.unwrap_err();
    assert_eq!((error.kind, error.retry_after, fake.received().len()), (kind, Some(Duration::from_secs(17)), 2));
    shows_no_secret(&error);
}

#[tokio::test]
async fn silence_of_the_registry_is_a_time_out() {
    let (entra, registry) = (Fake::start(azure).await, Fake::silent().await);
    let settings = acr_settings(registry.address);
    let token_address = format!("http://{}", entra.address).parse().unwrap();
    let settings = AcrSettings { token_address, call_timeout: Duration::from_millis(500), ..settings };
    let error = call(&AcrRegistry::connect(settings).unwrap(), Operation::Create).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut);
}

#[rstest]
#[case(401, ErrorKind::Unauthenticated, "role that pulls")]
#[case(403, ErrorKind::PermissionDenied, "firewall")]
#[case(404, ErrorKind::Invalid, "login server")]
#[tokio::test]
async fn a_refusal_of_the_registry_names_its_remedy(
    #[case] status: u16,
    #[case] kind: ErrorKind,
    #[case] remedy: &str,
) {
    let fake = Fake::start(move |request| match request.target.as_str() {
        "/oauth2/exchange" => page(status, TOKEN),
        _ => azure(request),
    })
    .await;
    let error = call(&acr(&fake), Operation::Create).await.unwrap_err();
    assert_eq!(error.kind, kind);
    assert!(error.hint().is_some_and(|hint| hint.contains(remedy)), "{:?}", error.hint());
    shows_no_secret(&error);
}

/// A registry that lets a refresh token in, as a node asks: token service, then the manifest.
fn registry(request: &Received) -> Response<String> {
    let authorization = request.headers.get("authorization").map(|value| value.to_str().unwrap());
    match (request.target.as_str(), authorization) {
        ("/v2/", None) => {
            let mut answer = page(401, "");
            let host = request.headers["host"].to_str().unwrap();
            let realm = format!("Bearer realm=\"http://{host}/oauth2/token\",service=\"{host}\"");
            answer.headers_mut().insert("www-authenticate", realm.parse().unwrap());
            answer
        }
        (target, Some(basic)) if target.starts_with("/oauth2/token") => {
            let right = format!("Basic {}", STANDARD.encode(format!("{USER}:{}", refresh_token())));
            if basic == right { document(200, &json!({"access_token": "opaque"})) } else { page(401, "") }
        }
        ("/v2/fleet/release/manifests/latest", Some("Bearer opaque")) => page(200, ""),
        _ => page(403, ""),
    }
}

#[rstest]
#[case(&refresh_token(), Verdict::Pulls)]
#[case("another", Verdict::Refused)]
#[tokio::test]
async fn a_probe_pulls_as_a_node_does(#[case] password: &str, #[case] verdict: Verdict) {
    let fake = Fake::start(registry).await;
    let login = Login { username: USER.to_owned(), password: password.into() };
    let image = Image { reference: Some("latest".parse().unwrap()), ..image() };
    let finding = acr(&fake).probe(&login, &image).await;
    assert_eq!(finding.verdict, verdict, "{finding}");
}
