//! Registries asked about credentials: by the asker alone, and by the controller.

use std::time::Duration;

use docker_config::{Document, Limits};
use global_pull_secret::finding::{Finding, ProbeRequest, Verdict};
use global_pull_secret::probe::{Gate, Prober};
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::api::ListParams;
use rstest::rstest;

use crate::cluster::{Kind, STATUS, SYSTEM, until};
use crate::faults::ask;
use crate::registry::{Does, Registry};
use crate::rig::{CANARY, Rig, document, encode};

const PRIVATE: &str = "has a private, local or reserved address (--probe-allow-private)";

fn request(host: &str, password: &str) -> ProbeRequest {
    let text = document(&format!("{host}={password}"));
    let document = Document::parse(text.as_bytes(), &Limits::SECRET).unwrap();
    let (digest, entry) = (document.entry_digest(host).unwrap(), document.entry(host).unwrap());
    ProbeRequest { digest, host: host.to_owned(), credential: entry.basic().unwrap() }
}

fn prober(registry: &Registry, gate: Gate, timeout: Duration) -> Prober {
    Prober::new(gate, Some(&registry.authority), timeout).unwrap()
}

fn here() -> Gate {
    Gate { deny: vec!["denied.example".to_owned()], allow_private: true, plain_loopback: false }
}

#[rstest]
#[case::token(Does::Tokens, "2", Verdict::Accepted, "takes it")]
#[case::access_token(Does::AccessTokens, "2", Verdict::Accepted, "takes it")]
#[case::basic(Does::Basic, "2", Verdict::Accepted, "takes it")]
#[case::refused(Does::Tokens, "3", Verdict::Refused, "its token endpoint answers HTTP status 401")]
#[case::forbidden(Does::Answers(403, CANARY), "2", Verdict::Refused, "its token endpoint answers HTTP status 403")]
#[case::basic_refused(Does::Basic, "3", Verdict::Refused, "answers HTTP status 401")]
#[case::garbage(
    Does::Answers(200, "<html>"),
    "2",
    Verdict::Unreachable,
    "its token endpoint answers 200 without what proves it"
)]
#[case::no_token(
    Does::Answers(200, "{}"),
    "2",
    Verdict::Unreachable,
    "its token endpoint answers 200 without what proves it"
)]
#[case::empty_token(
    Does::Answers(200, r#"{"token": ""}"#),
    "2",
    Verdict::Unreachable,
    "its token endpoint answers 200 without what proves it"
)]
#[case::token_is_no_text(
    Does::Answers(200, r#"{"token": 1}"#),
    "2",
    Verdict::Unreachable,
    "its token endpoint answers 200 without what proves it"
)]
#[case::basic_garbage(Does::BasicGarbage, "2", Verdict::Unreachable, "answers 200 without what proves it")]
#[case::broken(Does::Answers(500, CANARY), "2", Verdict::Unreachable, "its token endpoint answers HTTP status 500")]
#[case::redirect(Does::Redirects, "2", Verdict::Unreachable, "answers with a redirect, which is not followed")]
#[case::token_redirect(
    Does::RedirectsToken,
    "2",
    Verdict::Unreachable,
    "its token endpoint answers with a redirect, which is not followed"
)]
#[case::huge(Does::Huge, "2", Verdict::Unreachable, "its token endpoint answers more than can be meant")]
#[case::open(
    Does::IsOpen,
    "2",
    Verdict::Unreachable,
    "demands no credential at /v2/, so the credential cannot be verified"
)]
#[case::realm_in_clear(
    Does::RealmAt("http://localhost/token"),
    "2",
    Verdict::Unreachable,
    "its token endpoint is not https"
)]
#[case::realm_is_metadata(
    Does::RealmAt("https://169.254.169.254/"),
    "2",
    Verdict::Unreachable,
    "its token endpoint has a private, local or reserved address (--probe-allow-private)"
)]
#[case::realm_in_numbers(
    Does::RealmAt("https://0xa9fea9fe/"),
    "2",
    Verdict::Unreachable,
    "its token endpoint has a private, local or reserved address (--probe-allow-private)"
)]
#[case::realm_is_denied(
    Does::RealmAt("https://a.denied.example/"),
    "2",
    Verdict::Unreachable,
    "its token endpoint is on the deny list (--probe-deny)"
)]
#[case::realm_with_user(
    Does::RealmAt("https://c4n4ry@localhost/"),
    "2",
    Verdict::Unreachable,
    "its token endpoint has a user in it"
)]
#[case::realm_is_none(Does::RealmAt("c4n4ry"), "2", Verdict::Unreachable, "names a token endpoint that is no URL")]
#[tokio::test(flavor = "multi_thread")]
async fn findings_of_registries_are_reported(
    #[case] does: Does,
    #[case] password: &str,
    #[case] verdict: Verdict,
    #[case] message: &str,
) {
    let registry = Registry::start(does).await;
    let prober = prober(&registry, here(), Duration::from_secs(30));
    assert_eq!(prober.probe(&request(&registry.host(), password)).await, Finding::new(verdict, message));
    // Credentials go nowhere before they are asked for, and never where a redirect leads.
    let heads: Vec<String> = registry.observed().into_iter().filter(|head| head != "connection").collect();
    assert!(!heads[0].contains("authorization") && !heads.iter().any(|head| head.contains("/elsewhere")), "{heads:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_hangs_is_given_up() {
    let registry = Registry::start(Does::Hangs).await;
    let prober = prober(&registry, here(), Duration::from_millis(300));
    let finding = prober.probe(&request(&registry.host(), "2")).await;
    assert_eq!(finding, Finding::new(Verdict::Unreachable, "gives no answer in time"));
}

/// Without the setting that lets them in, not even a connection is made: by name, by address, in whatever spelling.
#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_not_connected_to() {
    let registry = Registry::start(Does::Tokens).await;
    let prober = prober(&registry, Gate::default(), Duration::from_secs(30));
    let port = registry.address.port();
    for host in ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]", "[::1]"] {
        let host = format!("{host}:{port}");
        let request = ProbeRequest { host: host.clone(), ..request("r.io", "2") };
        assert_eq!(prober.probe(&request).await, Finding::new(Verdict::Unreachable, PRIVATE), "{host}");
    }
    assert_eq!(registry.observed(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_certificate_gets_no_credential() {
    let (registry, other) = (Registry::start(Does::Tokens).await, Registry::start(Does::Tokens).await);
    let finding = prober(&other, here(), Duration::from_secs(30)).probe(&request(&registry.host(), "2")).await;
    assert_eq!(finding.verdict, Verdict::Unreachable);
    assert_eq!(registry.observed(), ["connection"]);
}

/// `block` in the loop: refused entries are held back, the last good ones stay, and all of it is reported without credentials.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_credential_is_held_back() {
    let registry = Registry::start(Does::Tokens).await;
    let (host, authority) = (registry.host(), registry.authority.to_str().unwrap().to_owned());
    let flags =
        [("probe-credentials", "block"), ("probe-allow-private", "true"), ("probe-ca-file", authority.as_str())];
    let rig = Rig::new(Kind::Emulator, &flags).await.unwrap();
    rig.add(&format!("{host}=2")).await;
    rig.deploys(&format!("{host}=2 q.io=1")).await;
    rig.shows("CredentialsAccepted=True/CredentialAccepted").await;
    rig.add(&format!("{host}=3 {host}/team=2")).await;
    rig.deploys(&format!("{host}=2 {host}/team=2 q.io=1")).await;
    let reported = rig.shows("CredentialsAccepted=False/CredentialRefused").await;
    let message = "its token endpoint answers HTTP status 401 (held back; its last good entry stays)";
    assert_eq!(reported, format!("{host}, from additional-pull-secret: {message}"));
    until("all Events are published", async || {
        let events = rig.events().await;
        let reported = |reason: &str| events.iter().filter(|event| *event == reason).count();
        (reported("CredentialAccepted") == 2 && reported("CredentialRefused") == 1).then_some(())
    })
    .await;
    let metrics = ask(rig.metrics, "/metrics").await;
    assert!(metrics.contains("global_pull_secret_probes_total{verdict=\"refused\"} 1"), "{metrics}");
    let status: ConfigMap = rig.cluster.get(STATUS).await.unwrap();
    assert!(status.data.as_ref().unwrap()["credentials"].contains("\"heldBack\":true"));
    let events = rig.cluster.server.api::<Event>(SYSTEM).list(&ListParams::default()).await.unwrap().items;
    let all = metrics + &serde_json::to_string(&status).unwrap() + &serde_json::to_string(&events).unwrap();
    let encoded = encode(format!("u:{CANARY}3").as_bytes());
    assert!(!all.contains(CANARY) && !all.contains(&encoded));
}

/// `warn` rolls out all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_credential_is_warned_of() {
    let registry = Registry::start(Does::Basic).await;
    let (host, authority) = (registry.host(), registry.authority.to_str().unwrap().to_owned());
    let flags = [("probe-credentials", "warn"), ("probe-allow-private", "true"), ("probe-ca-file", authority.as_str())];
    let rig = Rig::new(Kind::Emulator, &flags).await.unwrap();
    rig.add(&format!("{host}=3")).await;
    rig.deploys(&format!("{host}=3 q.io=1")).await;
    rig.shows("CredentialsAccepted=False/CredentialRefused").await;
    rig.shows("RolledOut=True/RolledOut").await;
}
