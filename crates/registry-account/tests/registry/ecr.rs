//! The request for a token at Amazon ECR, its signature, and what is read from the answer.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials as Keys;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use axum::http::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::fmt::strtime;
use registry_account::ecr::{Region, RoleArn};
use registry_account::{Credential, EcrRegistry, ErrorKind, Operation, Registry as _};
use rstest::rstest;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use testkit::environment::{missing, variable};
use testkit::fake::{Fake, Received, json as document};

use crate::rig::{PASSWORD, TOKEN, call, ecr_settings, keys, new_account, time};
use crate::secrecy::shows_no_secret;

const ROLE: &str = "arn:aws:iam::123456789012:role/puller";

fn ecr(fake: &Fake) -> EcrRegistry {
    EcrRegistry::connect_as(ecr_settings(fake.address), keys()).unwrap()
}

/// An answer with a token.
fn authorization(pair: &str, expires: &Value) -> Value {
    let token = STANDARD.encode(pair);
    let proxy = "https://123456789012.dkr.ecr.eu-central-1.amazonaws.com";
    json!({"authorizationData": [{"authorizationToken": token, "expiresAt": expires, "proxyEndpoint": proxy}]})
}

fn minted() -> Value {
    authorization(&format!("AWS:{PASSWORD}:with:colons"), &json!(1_795_874_400.5))
}

#[tokio::test]
async fn a_token_is_asked_for_and_read() {
    let fake = Fake::answering(document(200, &minted())).await;
    let Credential { account, password } = ecr(&fake).create(&new_account()).await.unwrap();
    assert_eq!(password.expose_secret(), format!("{PASSWORD}:with:colons"));
    assert_eq!((account.login.as_str(), account.expires), ("AWS", Some(time("2026-11-28T14:00:00.5Z"))));
    let Received { method, target, headers, body } = fake.only();
    assert_eq!((method.as_str(), target.as_str(), body), ("POST", "/", json!({})));
    assert_eq!(headers["x-amz-target"], "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken");
    assert_eq!(headers["content-type"], "application/x-amz-json-1.1");
    assert_eq!(headers["x-amz-security-token"], format!("session-{TOKEN}"));
}

/// The request that arrives is signed again; Amazon does the same.
#[tokio::test]
async fn the_signature_is_that_of_the_request_that_arrives() {
    let fake = Fake::answering(document(200, &minted())).await;
    ecr(&fake).create(&new_account()).await.unwrap();
    let Received { headers, .. } = fake.only();
    let text = |name: &str| headers[name].to_str().unwrap();
    let at = strtime::parse("%Y%m%dT%H%M%SZ", text("x-amz-date")).unwrap().to_datetime().unwrap();
    let at = SystemTime::from(at.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp());
    let identity = keys().provide_credentials().await.unwrap().into();
    let parameters = v4::SigningParams::builder().identity(&identity).region("eu-central-1").name("ecr").time(at);
    let parameters = parameters.settings(SigningSettings::default()).build().unwrap().into();
    let signed = ["content-type", "host", "x-amz-target"].map(|name| (name, text(name)));
    let url = format!("http://{}/", fake.address);
    let request = SignableRequest::new("POST", url, signed.into_iter(), SignableBody::Bytes(b"{}")).unwrap();
    let (again, _) = sign(request, &parameters).unwrap().into_parts();
    let expected = again.headers().find(|(name, _)| *name == "authorization").unwrap().1;
    assert_eq!(text("authorization"), expected);
}

/// A role's credentials are kept until they end.
#[rstest]
#[case::for_ever(None, 1)]
#[case::an_hour(Some(Duration::from_hours(1)), 1)]
#[case::a_minute(Some(Duration::from_mins(1)), 2)]
#[tokio::test]
async fn the_role_is_assumed_again_when_its_credentials_end(#[case] life: Option<Duration>, #[case] expected: usize) {
    let fake = Fake::answering(document(200, &minted())).await;
    let expires = life.map(|life| SystemTime::from(Timestamp::now()) + life);
    let (asked, counts) = tokio::sync::watch::channel(0);
    let assumed = Assumed { expires, asked };
    let registry =
        EcrRegistry::connect_as(ecr_settings(fake.address), SharedCredentialsProvider::new(assumed)).unwrap();
    for _token in 0..2 {
        registry.create(&new_account()).await.unwrap();
    }
    assert_eq!(*counts.borrow(), expected);
}

/// A role whose credentials are counted.
#[derive(Debug)]
struct Assumed {
    expires: Option<SystemTime>,
    asked: tokio::sync::watch::Sender<usize>,
}

impl ProvideCredentials for Assumed {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        self.asked.send_modify(|count| *count += 1);
        future::ProvideCredentials::ready(Ok(Keys::new("AKIDEXAMPLE", TOKEN, None, self.expires, "test")))
    }
}

/// A role that cannot be assumed, with a cause that quotes a secret.
#[derive(Debug)]
struct Unassumed(fn(String) -> CredentialsError);

impl ProvideCredentials for Unassumed {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::ready(Err((self.0)(format!("refused {TOKEN}"))))
    }
}

/// A client whose role an identity assumes at a token service.
async fn assuming(fake: &Fake, sts: &Fake, identity: SharedCredentialsProvider) -> EcrRegistry {
    let identity = aws_config::defaults(aws_config::BehaviorVersion::latest()).credentials_provider(identity);
    let identity =
        identity.region(aws_config::Region::new("eu-central-1")).endpoint_url(format!("http://{}", sts.address));
    let identity = identity.retry_config(aws_config::retry::RetryConfig::disabled()).load().await;
    EcrRegistry::connect_by(ecr_settings(fake.address), &identity).unwrap()
}

/// A refusal of the token service.
fn refusal(status: u16, code: &str) -> Response<String> {
    let body = format!("<ErrorResponse><Error><Code>{code}</Code><Message>{TOKEN}</Message></Error></ErrorResponse>");
    Response::builder().status(status).header("content-type", "text/xml").body(body).unwrap()
}

#[rstest]
#[case::denied(403, "AccessDenied", ErrorKind::Unauthenticated, "cannot assume the role")]
#[case::unknown_token(403, "InvalidClientTokenId", ErrorKind::Unauthenticated, "cannot assume the role")]
#[case::throttled(400, "Throttling", ErrorKind::Unavailable, "does not answer for now")]
#[case::broken(500, "InternalFailure", ErrorKind::Unavailable, "does not answer for now")]
#[case::away(503, "ServiceUnavailable", ErrorKind::Unavailable, "does not answer for now")]
#[case::no_code(502, "", ErrorKind::Unavailable, "does not answer for now")]
#[tokio::test]
async fn a_refusal_of_the_token_service_is_no_outage_of_it(
    #[case] status: u16,
    #[case] code: &'static str,
    #[case] kind: ErrorKind,
    #[case] detail: &str,
) {
    let sts = Fake::start(move |_| refusal(status, code)).await;
    let fake = Fake::answering(document(200, &minted())).await;
    let error = call(&assuming(&fake, &sts, keys()).await, Operation::Create).await.unwrap_err();
    assert_eq!((error.kind, fake.received().len(), sts.received().len()), (kind, 0, 1), "{error}");
    assert!(error.to_string().contains(detail), "{error}");
    shows_no_secret(&error);
}

#[rstest]
#[case::broken("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<")]
#[case::unreadable("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n<")]
#[case::nothing("")]
#[tokio::test]
async fn a_token_service_without_an_answer_is_an_outage(#[case] answer: &'static str) {
    let (sts, fake) = (Fake::speaking(answer).await, Fake::answering(document(200, &minted())).await);
    let error = call(&assuming(&fake, &sts, keys()).await, Operation::Create).await.unwrap_err();
    assert_eq!((error.kind, fake.received().len()), (ErrorKind::Unavailable, 0), "{error}");
    shows_no_secret(&error);
}

/// The environment's own identity does not work, so nothing assumes the role.
#[rstest]
#[case::none(CredentialsError::not_loaded, ErrorKind::Unauthenticated, "the environment has no credentials of AWS")]
#[case::incomplete(CredentialsError::invalid_configuration, ErrorKind::Unauthenticated, "are not complete")]
#[case::refused(CredentialsError::provider_error, ErrorKind::Unauthenticated, "did not give any")]
#[case::away(|_| CredentialsError::provider_error(std::io::Error::other(TOKEN)), ErrorKind::Unavailable, "for now")]
#[tokio::test]
async fn an_identity_that_does_not_work_sends_nothing(
    #[case] error: fn(String) -> CredentialsError,
    #[case] kind: ErrorKind,
    #[case] expected: &str,
) {
    let (sts, fake) = (Fake::silent().await, Fake::answering(document(200, &minted())).await);
    let identity = SharedCredentialsProvider::new(Unassumed(error));
    let error = call(&assuming(&fake, &sts, identity).await, Operation::Create).await.unwrap_err();
    assert_eq!((error.kind, fake.received().len()), (kind, 0), "{error}");
    assert!(error.to_string().contains(expected), "{error}");
    shows_no_secret(&error);
}

/// Sessions of the role were revoked: the next one is another.
#[rstest]
#[case("AccessDeniedException", 2)]
#[case("ExpiredTokenException", 2)]
#[case("ThrottlingException", 1)]
#[tokio::test]
async fn the_role_is_assumed_again_after_a_refusal(#[case] name: &'static str, #[case] expected: usize) {
    let fake = Fake::answering(document(400, &json!({"__type": name}))).await;
    let (asked, counts) = tokio::sync::watch::channel(0);
    let assumed = SharedCredentialsProvider::new(Assumed { expires: None, asked });
    let registry = EcrRegistry::connect_as(ecr_settings(fake.address), assumed).unwrap();
    for _attempt in 0..2 {
        call(&registry, Operation::Create).await.unwrap_err();
    }
    assert_eq!(*counts.borrow(), expected);
}

#[rstest]
#[case::no_data(json!({}))]
#[case::none(json!({"authorizationData": []}))]
#[case::no_user(authorization(PASSWORD, &json!(1)))]
#[case::another_user(authorization(&format!("user:{PASSWORD}"), &json!(1)))]
#[case::no_password(authorization("AWS:", &json!(1)))]
#[case::no_end(authorization(&format!("AWS:{PASSWORD}"), &Value::Null))]
#[case::end_of_time(authorization(&format!("AWS:{PASSWORD}"), &json!(1e300)))]
#[case::no_base64(json!({"authorizationData": [{"authorizationToken": PASSWORD.to_owned() + "!", "expiresAt": 1}]}))]
#[tokio::test]
async fn a_token_that_cannot_be_read_is_a_failure(#[case] answer: Value) {
    let fake = Fake::answering(document(200, &answer)).await;
    let error = call(&ecr(&fake), Operation::Create).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    shows_no_secret(&error);
}

/// Amazon's status is 400 for most refusals.
#[rstest]
#[case("AccessDeniedException", ErrorKind::PermissionDenied, "ecr:GetAuthorizationToken")]
#[case("com.amazon.coral.service#AccessDeniedException", ErrorKind::PermissionDenied, "ecr:GetAuthorizationToken")]
#[case("UnrecognizedClientException", ErrorKind::Unauthenticated, ROLE)]
#[case("InvalidSignatureException", ErrorKind::Unauthenticated, "the clock of this host")]
#[case("ExpiredTokenException", ErrorKind::Unauthenticated, ROLE)]
#[case("ThrottlingException", ErrorKind::QuotaExceeded, "")]
#[case("ServerException", ErrorKind::Internal, "")]
#[case("ServiceUnavailableException", ErrorKind::Unavailable, "")]
#[case("InvalidParameterException", ErrorKind::Invalid, "")]
#[case("M4RKER", ErrorKind::Invalid, "")]
#[tokio::test]
async fn a_refusal_is_known_by_its_name(#[case] name: &str, #[case] kind: ErrorKind, #[case] remedy: &str) {
    let fake = Fake::answering(document(400, &json!({"__type": name, "message": format!("{TOKEN} is wrong")}))).await;
    let error = call(&ecr(&fake), Operation::Create).await.unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
    assert!(error.hint().unwrap_or_default().contains(remedy), "{:?}", error.hint());
    assert!(error.to_string().starts_with(&format!("cannot create account {ROLE}: ")), "{error}");
    shows_no_secret(&error);
}

fn moto() -> Option<String> {
    let why = "REAL_MOTO_ADDR is not set: no AWS; `make real-parts` starts a stand-in";
    variable("REAL_MOTO_ADDR").or_else(|| missing(why))
}

/// moto knows the action, and answers with a token whose end is past: in 2015.
#[tokio::test]
async fn a_service_that_others_have_written_answers() {
    let Some(address) = moto() else { return };
    let settings = ecr_settings("127.0.0.1:1".parse().unwrap());
    let settings = registry_account::EcrSettings { token_address: address.parse().unwrap(), ..settings };
    let registry = EcrRegistry::connect_as(settings, keys()).unwrap();
    let Credential { account, password } = registry.create(&new_account()).await.unwrap();
    assert!(account.expires.is_some_and(|expires| expires < time("2016-01-01T00:00:00Z")), "{:?}", account.expires);
    assert!(!password.expose_secret().is_empty());
}

#[rstest]
#[case("eu-central-1", true)]
#[case("us-gov-west-1", true)]
#[case("eu", false)]
#[case("-eu", false)]
#[case("eu-central-1.evil.example/", false)]
#[case("EU-CENTRAL-1", false)]
fn a_region_fits_into_an_address(#[case] text: &str, #[case] fits: bool) {
    assert_eq!(text.parse::<Region>().is_ok(), fits);
}

#[rstest]
#[case(ROLE, true)]
#[case("arn:aws-cn:iam::123456789012:role/path/puller", true)]
#[case("arn:aws:iam::123456789012:user/puller", false)]
#[case("arn:aws:iam::123:role/puller", false)]
#[case("arn:aws:sts::123456789012:role/puller", false)]
#[case("arn:aws:iam::123456789012:role/", false)]
#[case("arn:aws:iam::123456789012:role/a b", false)]
#[case("puller", false)]
fn a_role_is_an_arn(#[case] text: &str, #[case] fits: bool) {
    assert_eq!(text.parse::<RoleArn>().is_ok(), fits);
}

#[tokio::test]
async fn debug_shows_no_key() {
    let fake = Fake::answering(document(200, &minted())).await;
    let registry = ecr(&fake);
    registry.create(&new_account()).await.unwrap();
    let shown = format!("{registry:?}");
    assert!(shown.contains(ROLE) && !shown.contains("m4rker"), "{shown}");
}
