//! `pull-secret credentials serve` at registries without accounts: Amazon's, Azure's and Google's, with their token services.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::http::Response;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::json;
use testkit::api_server::until;
use testkit::fake::{Fake, Received, json as document, page};
use testkit::fleet;

use super::Rig;

/// The path at which Google mints tokens.
const MINTS: &str = "/v1/projects/-/serviceAccounts/puller@fleet.iam.gserviceaccount.com:generateAccessToken";
/// The path at which Entra ID lets an application in.
const ENTERS: &str = "/5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0001/oauth2/v2.0/token";
/// The token of the service's own identity.
const IDENTITY: &str = "t0ken-of-the-identity";
/// The secret of what that identity becomes: a role, or an application.
const BECOME: &str = "s3cret-of-the-role";
/// The end of the tokens that are minted.
const TOKEN: &str = "m1nted-token";
/// Life of a token.
const LIFE: SignedDuration = SignedDuration::from_secs(15);

/// A cloud with a registry, and the tokens that it minted, with their ends.
#[derive(Clone)]
struct Cloud {
    /// The user of its tokens.
    user: &'static str,
    minted: Arc<Mutex<BTreeMap<String, Timestamp>>>,
}

// === impl Cloud ===

impl Cloud {
    /// Mints a token, which names its end as Azure's do.
    fn mint(&self) -> (String, Timestamp) {
        let (mut minted, end) = (self.minted.lock().unwrap(), Timestamp::now() + LIFE);
        let claims = json!({"exp": end.as_second(), "jti": minted.len()}).to_string();
        let token = format!("e30.{}.{TOKEN}", URL_SAFE_NO_PAD.encode(claims));
        minted.insert(token.clone(), end);
        (token, end)
    }

    fn is_minted(&self, token: &str) -> bool {
        self.minted.lock().unwrap().get(token).is_some_and(|end| *end > Timestamp::now())
    }

    /// Returns the token of a login.
    fn token(&self, authorization: &str) -> Option<String> {
        let pair = STANDARD.decode(authorization.strip_prefix("Basic ")?).ok()?;
        let token = String::from_utf8(pair).ok()?.strip_prefix(self.user)?.strip_prefix(':')?.to_owned();
        self.is_minted(&token).then_some(token)
    }

    /// Answers as the cloud's token services and its registry.
    fn answer(&self, request: &Received) -> Response<String> {
        let authorization = request.headers.get("authorization").map_or("", |value| value.to_str().unwrap());
        let form = request.body.as_str().unwrap_or_default();
        match request.target.as_str() {
            "/token" => document(200, &json!({"access_token": IDENTITY, "expires_in": 3600, "token_type": "Bearer"})),
            MINTS if authorization == format!("Bearer {IDENTITY}") => {
                let (token, end) = self.mint();
                document(200, &json!({"accessToken": token, "expireTime": end.to_string()}))
            }
            "/" if form.contains("Action=AssumeRole&") && authorization.contains("Credential=AKIDIDENTITY/") => {
                assumed()
            }
            "/" if authorization.contains("Credential=ASIAROLE/") => {
                let (token, end) = self.mint();
                let pair = STANDARD.encode(format!("AWS:{token}"));
                let expires = end.as_duration().as_secs_f64();
                document(200, &json!({"authorizationData": [{"authorizationToken": pair, "expiresAt": expires}]}))
            }
            ENTERS if form.contains(IDENTITY) => document(200, &json!({"access_token": BECOME})),
            "/oauth2/exchange" if form.contains(BECOME) => document(200, &json!({"refresh_token": self.mint().0})),
            "/v2/" if authorization.is_empty() => self.challenge(request),
            "/v2/" => document(if self.token(authorization).is_some() { 200 } else { 401 }, &json!({})),
            target if target.starts_with("/v2/token") => match self.token(authorization) {
                Some(token) => document(200, &json!({"token": token})),
                None => page(401, ""),
            },
            "/v2/fleet/release/image/manifests/latest" => {
                let is_bearer = authorization.strip_prefix("Bearer ").is_some_and(|token| self.is_minted(token));
                page(if is_bearer || self.token(authorization).is_some() { 200 } else { 401 }, "")
            }
            _ => page(403, ""),
        }
    }

    /// Amazon's registry asks for the password itself.
    fn challenge(&self, request: &Received) -> Response<String> {
        let mut challenge = page(401, "");
        let host = request.headers["host"].to_str().unwrap();
        let asked = match self.user {
            "AWS" => format!("Basic realm=\"http://{host}/\",service=\"ecr\""),
            _ => format!("Bearer realm=\"http://{host}/v2/token\",service=\"{host}\""),
        };
        challenge.headers_mut().insert("www-authenticate", asked.parse().unwrap());
        challenge
    }
}

/// The credentials of a role, as AWS's token service gives them.
fn assumed() -> Response<String> {
    let end = Timestamp::now() + SignedDuration::from_hours(1);
    let document = format!(
        "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleResult><Credentials>\
         <AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>{BECOME}</SecretAccessKey><SessionToken>{BECOME}</SessionToken>\
         <Expiration>{}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>",
        end.strftime("%Y-%m-%dT%H:%M:%SZ")
    );
    Response::builder().header("content-type", "text/xml").body(document).unwrap()
}

/// Writes the identity of the environment, and returns the members of the registry's settings.
fn identity(rig: &mut Rig, kind: &str, address: &str) -> String {
    let file = |name: &str, content: &str| {
        daemon::file::replace(&rig.path(name), content.as_bytes()).unwrap();
        rig.path(name)
    };
    match kind {
        "acr" => {
            let token = file("entra", IDENTITY);
            format!(
                "tenant_id: 5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0001, client_id: 5b1c7a70-0d2b-4f5e-9d53-0a5f3b6c0002, \
                 token_file: '{}'",
                token.display()
            )
        }
        "ecr" => {
            let keys = format!("[default]\naws_access_key_id = AKIDIDENTITY\naws_secret_access_key = {IDENTITY}\n");
            let keys = file("aws", &keys);
            let variables = [("AWS_SHARED_CREDENTIALS_FILE", keys), ("AWS_ENDPOINT_URL_STS", address.into())];
            rig.variables.extend(variables);
            "region: eu-central-1, role: 'arn:aws:iam::123456789012:role/puller'".to_owned()
        }
        _ => {
            let identity = json!({
                "type": "authorized_user", "client_id": "id", "client_secret": "secret", "refresh_token": "refresh",
                "token_uri": format!("{address}/token"),
            });
            let identity = file("google.json", &identity.to_string());
            rig.variables.push(("GOOGLE_APPLICATION_CREDENTIALS", identity));
            "service_account: puller@fleet.iam.gserviceaccount.com, token_life: 15s".to_owned()
        }
    }
}

/// Returns the token that the pull secret of a cluster has for a host.
async fn token(rig: &Rig, host: &str, user: &str) -> Option<String> {
    let found = rig.pull_secret("cls-1").await;
    let pair = STANDARD.decode(found["auths"][host]["auth"].as_str()?).unwrap();
    Some(String::from_utf8(pair).unwrap().strip_prefix(&format!("{user}:")).unwrap().to_owned())
}

#[rstest]
#[case("acr", "00000000-0000-0000-0000-000000000000")]
#[case("ecr", "AWS")]
#[case("gar", "oauth2accesstoken")]
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_gets_tokens_that_are_renewed(#[case] kind: &str, #[case] user: &'static str) {
    let cloud = Cloud { user, minted: Arc::default() };
    let fake = Fake::start(move |request| cloud.answer(request)).await;
    let (mut rig, address) = (Rig::new().await, format!("http://{}", fake.address));
    let own = identity(&mut rig, kind, &address);
    let settings = format!(
        "registries:\n- {{name: cloud, type: {kind}, url: '{address}', token_url: '{address}', image: 'fleet/release/image:latest', \
         {own}, calls_per_minute: 6000, policy: {{nodes: renounced}}}}\n"
    );
    daemon::file::replace(&rig.path("credentials.yaml"), settings.as_bytes()).unwrap();
    rig.player.create("cls-1", &fleet::document("one")).await;
    let mut serving = rig.serve("first").await;
    let host = fake.address.to_string();
    let first = until("a token is published", async || token(&rig, &host, user).await).await;
    let next = async || token(&rig, &host, user).await.filter(|token| *token != first);
    let second = until("another token is published", next).await;
    assert!([&first, &second].iter().all(|token| token.ends_with(TOKEN)), "{first} {second}");
    let found = rig.pull_secret("cls-1").await;
    assert!(found["auths"].as_object().unwrap().len() > 1, "the other entries stay");

    let listed = rig.run(&["list", "--output=json"]).await.json();
    let [row] = listed.as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!((&row["login"], row["record"]["expires"].is_string()), (&json!(user), true));
    let shown = rig.run(&["show", row["id"].as_str().unwrap()]).await.stdout;
    assert!(shown.contains("\nEXPIRES     20"), "{shown}");
    serving.child.kill().await.unwrap();
    for name in ["first.log", "first.notes"] {
        let text = std::fs::read_to_string(rig.path(name)).unwrap();
        let is_clean = ![IDENTITY, BECOME, TOKEN, "refresh_token"].iter().any(|secret| text.contains(secret));
        assert!(is_clean, "{name} holds a token");
    }
}
