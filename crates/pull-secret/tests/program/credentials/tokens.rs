//! `pull-secret credentials serve` at a registry without accounts: Google Artifact Registry, with its token services.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::http::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use testkit::api_server::until;
use testkit::fake::{Fake, Received, json as document, page};
use testkit::fleet;

use super::Rig;

const MINTS: &str = "/v1/projects/-/serviceAccounts/puller@fleet.iam.gserviceaccount.com:generateAccessToken";
/// The token of the service's own identity.
const IDENTITY: &str = "t0ken-of-the-identity";
/// The beginning of the tokens that are minted.
const TOKEN: &str = "m1nted-token-";
/// Life of a token.
const LIFE: SignedDuration = SignedDuration::from_secs(15);

/// The tokens that were minted, with their ends.
type Minted = Arc<Mutex<BTreeMap<String, Timestamp>>>;

/// Answers as Google's token service, IAM and registry.
fn answer(minted: &Minted, request: &Received) -> Response<String> {
    let authorization = request.headers.get("authorization").map_or("", |value| value.to_str().unwrap());
    let is_minted = |token: &str| minted.lock().unwrap().get(token).is_some_and(|end| *end > Timestamp::now());
    match request.target.as_str() {
        "/token" => document(200, &json!({"access_token": IDENTITY, "expires_in": 3600, "token_type": "Bearer"})),
        MINTS if authorization == format!("Bearer {IDENTITY}") => {
            let (mut minted, end) = (minted.lock().unwrap(), Timestamp::now() + LIFE);
            let token = format!("{TOKEN}{}", minted.len());
            minted.insert(token.clone(), end);
            document(200, &json!({"accessToken": token, "expireTime": end.to_string()}))
        }
        "/v2/" if authorization.is_empty() => {
            let mut challenge = page(401, "");
            let host = request.headers["host"].to_str().unwrap();
            let realm = format!("Bearer realm=\"http://{host}/v2/token\",service=\"{host}\"");
            challenge.headers_mut().insert("www-authenticate", realm.parse().unwrap());
            challenge
        }
        target if target.starts_with("/v2/token") => {
            let pair = authorization.strip_prefix("Basic ").and_then(|pair| STANDARD.decode(pair).ok());
            let token = pair
                .and_then(|pair| Some(String::from_utf8(pair).ok()?.strip_prefix("oauth2accesstoken:")?.to_owned()));
            match token.filter(|token| is_minted(token)) {
                Some(token) => document(200, &json!({"token": token})),
                None => page(401, ""),
            }
        }
        "/v2/fleet/release/image/manifests/latest" if authorization.strip_prefix("Bearer ").is_some_and(is_minted) => {
            page(200, "")
        }
        _ => page(403, ""),
    }
}

/// Returns the token that the pull secret of a cluster has for a host.
async fn token(rig: &Rig, id: &str, host: &str) -> Option<String> {
    let found = rig.pull_secret(id).await;
    let pair = STANDARD.decode(found["auths"][host]["auth"].as_str()?).unwrap();
    Some(String::from_utf8(pair).unwrap().strip_prefix("oauth2accesstoken:").unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_gets_tokens_that_are_renewed() {
    let minted = Minted::default();
    let google = Fake::start({
        let minted = Arc::clone(&minted);
        move |request| answer(&minted, request)
    })
    .await;
    let (mut rig, address) = (Rig::new().await, format!("http://{}", google.address));
    let identity = json!({
        "type": "authorized_user", "client_id": "id", "client_secret": "secret", "refresh_token": "refresh",
        "token_uri": format!("{address}/token"),
    });
    daemon::file::replace(&rig.path("google.json"), identity.to_string().as_bytes()).unwrap();
    rig.variables.push(("GOOGLE_APPLICATION_CREDENTIALS", rig.path("google.json")));
    let settings = format!(
        "registries:\n- {{name: gar, type: gar, url: '{address}', iam_url: '{address}', image: 'fleet/release/image:latest', \
         service_account: puller@fleet.iam.gserviceaccount.com, token_life: 15s, calls_per_minute: 6000, policy: {{nodes: renounced}}}}\n"
    );
    daemon::file::replace(&rig.path("credentials.yaml"), settings.as_bytes()).unwrap();
    rig.player.create("cls-1", &fleet::document("one")).await;
    let mut serving = rig.serve("first").await;
    let host = google.address.to_string();
    let first = until("a token is published", async || token(&rig, "cls-1", &host).await).await;
    let second =
        until("another token is published", async || token(&rig, "cls-1", &host).await.filter(|token| *token != first))
            .await;
    assert!([&first, &second].iter().all(|token| token.starts_with(TOKEN)), "{first} {second}");
    let found = rig.pull_secret("cls-1").await;
    assert!(found["auths"].as_object().unwrap().len() > 1, "the other entries stay");

    let listed = rig.run(&["list", "--output=json"]).await.json();
    let [row] = listed.as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!((&row["login"], row["record"]["expires"].is_string()), (&json!("oauth2accesstoken"), true));
    let shown = rig.run(&["show", row["id"].as_str().unwrap()]).await.stdout;
    assert!(shown.contains("\nEXPIRES     20"), "{shown}");
    serving.child.kill().await.unwrap();
    for name in ["first.log", "first.notes"] {
        let text = std::fs::read_to_string(rig.path(name)).unwrap();
        let is_clean = ![IDENTITY, TOKEN, "refresh_token"].iter().any(|secret| text.contains(secret));
        assert!(is_clean, "{name} holds a token");
    }
}
