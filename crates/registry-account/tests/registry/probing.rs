//! Verdicts of probes at registries that answer in their own ways.

use axum::http::Response;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use registry_account::Image;
use registry_account::probe::{Gate, ProbeRequest, Prober, ProberSettings, Verdict};
use rstest::rstest;
use serde_json::{Value, json};

use crate::rig::CALL_TIMEOUT;
use testkit::fake::{Fake, Received, json as document, page};

/// A secret that no finding may show.
const CANARY: &str = "c4n4ry";

/// The registry's way of tokens.
#[derive(Clone, Copy, Debug)]
enum Issues {
    /// A JWT with these actions for the repository.
    Actions(&'static [&'static str]),
    /// A JWT without the claim.
    NoAccess,
    /// A text that is no JWT.
    Opaque,
    /// No token: a wrong password.
    Refuses,
    /// Basic logins at the registry itself.
    Basic,
    /// The same, with nothing at `/v2/`.
    BasicEmpty,
    /// No registry, but a site with Basic logins that has a page at every path.
    Site,
}

fn token(claims: &Value) -> String {
    format!("{}.{}.c2ln", URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256"}"#), URL_SAFE_NO_PAD.encode(claims.to_string()))
}

fn challenge(request: &Received, kind: &str) -> Response<String> {
    let host = request.headers["host"].to_str().unwrap();
    let header = match kind {
        "Basic" => "Basic realm=\"r\"".to_owned(),
        _ => format!("Bearer realm=\"http://{host}/v2/auth\",service=\"{host}\""),
    };
    let mut response = page(401, CANARY);
    response.headers_mut().insert("www-authenticate", header.parse().unwrap());
    response
}

fn answer(request: &Received, issues: Issues, manifest: u16) -> Response<String> {
    let authorization = request.headers.get("authorization").map(|value| value.to_str().unwrap());
    if request.target.starts_with("/v2/auth?") {
        assert_eq!(authorization, Some(format!("Basic {}", STANDARD.encode("fleet+hf-one:c4n4ry")).as_str()));
        assert!(request.target.contains("scope=repository%3Afleet%2Frelease%3Apull"), "{}", request.target);
        let access = |actions| json!({"type": "repository", "name": "fleet/release", "actions": actions});
        return match issues {
            Issues::Actions(actions) => document(200, &json!({"token": token(&json!({"access": [access(actions)]}))})),
            Issues::NoAccess => document(200, &json!({"token": token(&json!({"sub": CANARY}))})),
            Issues::Opaque => document(200, &json!({"access_token": CANARY})),
            Issues::Refuses | Issues::Basic | Issues::BasicEmpty | Issues::Site => page(401, CANARY),
        };
    }
    if request.target == "/v2/fleet/release/manifests/v1" {
        assert_eq!(request.method, "HEAD");
        assert!(request.headers["accept"].to_str().unwrap().contains("application/vnd.oci.image.index.v1+json"));
        let mut answer = page(if authorization.is_some() { manifest } else { 401 }, "");
        if !matches!(issues, Issues::Site) {
            answer.headers_mut().insert("docker-content-digest", "sha256:0".parse().unwrap());
        }
        return answer;
    }
    assert_eq!(request.target, "/v2/");
    match issues {
        Issues::Basic if authorization.is_some() => document(200, &json!({})),
        Issues::BasicEmpty if authorization.is_some() => Response::new(String::new()),
        Issues::Site if authorization.is_some() => page(200, CANARY),
        Issues::Basic | Issues::BasicEmpty | Issues::Site => challenge(request, "Basic"),
        _ => challenge(request, "Bearer"),
    }
}

fn prober() -> Prober {
    let gate = Gate { deny: Vec::new(), allow_private: true, plain_loopback: true };
    let user_agent = "pull-secret-probe/test".to_owned();
    Prober::new(ProberSettings { gate, ca_file: None, timeout: CALL_TIMEOUT, user_agent }).unwrap()
}

fn request(fake: &Fake, reference: Option<&str>) -> ProbeRequest {
    let reference = reference.map(|reference| reference.parse().unwrap());
    let image = Some(Image { repository: "fleet/release".parse().unwrap(), reference });
    let credential = format!("fleet+hf-one:{CANARY}").into_bytes().into();
    ProbeRequest { host: fake.address.to_string(), credential, image }
}

#[rstest]
#[case::permitted(Issues::Actions(&["pull"]), None, 500, Verdict::Pulls, "its token endpoint permits pulls")]
#[case::not_permitted(
    Issues::Actions(&[]),
    Some("v1"),
    200,
    Verdict::NotPermitted,
    "its token endpoint takes it, but permits no pulls of the repository"
)]
#[case::push_only(
    Issues::Actions(&["push"]),
    None,
    200,
    Verdict::NotPermitted,
    "its token endpoint takes it, but permits no pulls of the repository"
)]
#[case::refused(Issues::Refuses, Some("v1"), 200, Verdict::Refused, "its token endpoint answers HTTP status 401")]
#[case::opaque(Issues::Opaque, Some("v1"), 200, Verdict::Pulls, "its manifest endpoint permits pulls")]
#[case::opaque_denied(
    Issues::Opaque,
    Some("v1"),
    403,
    Verdict::NotPermitted,
    "its manifest endpoint answers HTTP status 403"
)]
#[case::opaque_unauthorized(
    Issues::NoAccess,
    Some("v1"),
    401,
    Verdict::NotPermitted,
    "its manifest endpoint answers HTTP status 401"
)]
#[case::opaque_hidden(
    Issues::Opaque,
    Some("v1"),
    404,
    Verdict::Inconclusive,
    "its manifest endpoint has no such manifest, or hides it"
)]
#[case::opaque_broken(
    Issues::Opaque,
    Some("v1"),
    503,
    Verdict::Inconclusive,
    "its manifest endpoint answers HTTP status 503"
)]
#[case::opaque_unnamed(
    Issues::Opaque,
    None,
    200,
    Verdict::Inconclusive,
    "takes it, but does not say what it permits: name a tag or a digest of the repository"
)]
#[case::basic(Issues::Basic, Some("v1"), 200, Verdict::Pulls, "its manifest endpoint permits pulls")]
#[case::basic_empty(Issues::BasicEmpty, Some("v1"), 200, Verdict::Pulls, "its manifest endpoint permits pulls")]
#[case::site(Issues::Site, Some("v1"), 200, Verdict::Inconclusive, "answers 200 without what proves it")]
#[case::basic_empty_denied(
    Issues::BasicEmpty,
    Some("v1"),
    401,
    Verdict::NotPermitted,
    "its manifest endpoint answers HTTP status 401"
)]
#[case::basic_denied(
    Issues::Basic,
    Some("v1"),
    403,
    Verdict::NotPermitted,
    "its manifest endpoint answers HTTP status 403"
)]
#[tokio::test]
async fn a_verdict_says_if_an_image_can_be_pulled(
    #[case] issues: Issues,
    #[case] reference: Option<&str>,
    #[case] manifest: u16,
    #[case] verdict: Verdict,
    #[case] message: &str,
) {
    let fake = Fake::start(move |request| answer(request, issues, manifest)).await;
    let finding = prober().probe(&request(&fake, reference)).await;
    assert_eq!((finding.verdict, finding.to_string().as_str()), (verdict, message));
    let received = fake.received();
    assert!(!received[0].headers.contains_key("authorization"), "a credential goes nowhere before it is asked for");
    assert!(received.iter().all(|request| request.headers["user-agent"] == "pull-secret-probe/test"));
}

/// Only this machine is probed without TLS, and only if the gate says so.
#[tokio::test]
async fn a_probe_without_tls_stays_on_this_machine() {
    let fake = Fake::start(|request| {
        let mut response = challenge(request, "Bearer");
        let elsewhere = "Bearer realm=\"http://registry.example/auth\"";
        response.headers_mut().insert("www-authenticate", elsewhere.parse().unwrap());
        response
    })
    .await;
    let finding = prober().probe(&request(&fake, None)).await;
    assert_eq!(
        (finding.verdict, finding.to_string().as_str()),
        (Verdict::Inconclusive, "its token endpoint is not https")
    );
    let gate = Gate { allow_private: true, ..Gate::default() };
    let settings = ProberSettings { gate, ca_file: None, timeout: CALL_TIMEOUT, user_agent: "t".to_owned() };
    let strict = Prober::new(settings).unwrap();
    assert_eq!(strict.probe(&request(&fake, None)).await.verdict, Verdict::Inconclusive);
    assert_eq!(fake.received().len(), 1, "without the gate's permission no plain request is made");
}

#[tokio::test]
async fn a_request_shows_no_credential() {
    let fake = Fake::silent().await;
    let shown = format!("{:?} {:?}", request(&fake, None), prober());
    assert!(shown.contains("fleet/release") && !shown.contains(CANARY), "{shown}");
}
