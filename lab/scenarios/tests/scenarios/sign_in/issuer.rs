//! An OIDC issuer with Keycloak's paths: people name themselves in its form, and have a code, an ID token and a refresh token.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::tokens::Key;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

/// The client that the guide registers, and its secret.
pub(super) const CLIENT: &str = "hyperfleet-page";
pub(super) const SECRET: &str = "the-secret-of-the-client";
/// Seconds for which a token is valid: five minutes, Keycloak's default.
const LIFE: i64 = 300;

type Form = BTreeMap<String, String>;

pub(super) struct Issuer {
    /// The claim `iss`.
    pub(super) url: String,
    shared: Arc<Shared>,
    _serving: AbortOnDropHandle<()>,
}

struct Shared {
    url: String,
    key: Key,
    /// The requests of people who have signed in, by their codes; those of sessions by their refresh tokens.
    given: Mutex<BTreeMap<String, Form>>,
    refreshed: Mutex<usize>,
}

impl Issuer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/realms/fleet", listener.local_addr().unwrap());
        let shared = Shared {
            url: url.clone(),
            key: Key::generate("one"),
            given: Mutex::default(),
            refreshed: Mutex::default(),
        };
        let shared = Arc::new(shared);
        let paths = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/protocol/openid-connect/certs", get(keys))
            .route("/protocol/openid-connect/auth", get(form))
            .route("/signed-in", get(signed_in))
            .route("/protocol/openid-connect/token", post(token))
            .with_state(Arc::clone(&shared));
        let router = Router::new().nest("/realms/fleet", paths);
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared, _serving: AbortOnDropHandle::new(serving) }
    }

    /// An ID token of a person, as programs bring it.
    pub(super) fn id_token(&self, person: &str) -> String {
        self.shared.id_token(person, None)
    }

    /// Number of ID tokens that refresh tokens have brought.
    pub(super) fn refreshed(&self) -> usize {
        *self.shared.refreshed.lock().unwrap()
    }
}

impl Shared {
    fn id_token(&self, person: &str, nonce: Option<&String>) -> String {
        let now = Timestamp::now().as_second();
        let groups: &[&str] = if person == "ann" { &["/fleet-on-call"] } else { &[] };
        self.key.sign(&json!({
            "iss": self.url, "aud": CLIENT, "sub": person, "iat": now, "exp": now + LIFE, "nonce": nonce,
            "email": format!("{person}@example.com"), "email_verified": true, "groups": groups,
        }))
    }

    /// Keeps a request; returns the code or refresh token for it.
    fn give(&self, request: Form) -> String {
        let mut given = self.given.lock().unwrap();
        let name = format!("given-{}", given.len());
        given.insert(name.clone(), request);
        name
    }
}

fn pairs(text: &str) -> Form {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

async fn configuration(State(shared): State<Arc<Shared>>) -> String {
    let url = &shared.url;
    json!({
        "issuer": url, "jwks_uri": format!("{url}/protocol/openid-connect/certs"),
        "authorization_endpoint": format!("{url}/protocol/openid-connect/auth"),
        "token_endpoint": format!("{url}/protocol/openid-connect/token"), "response_types_supported": ["code"],
        "id_token_signing_alg_values_supported": ["RS256"], "code_challenge_methods_supported": ["S256"],
    })
    .to_string()
}

async fn keys(State(shared): State<Arc<Shared>>) -> String {
    json!({"keys": [shared.key.jwk()]}).to_string()
}

/// The form in which a person signs in. The request comes back with it.
async fn form(RawQuery(query): RawQuery) -> Html<String> {
    let request = pairs(&query.unwrap_or_default());
    let quoted = |text: &String| text.replace('&', "&amp;").replace('"', "&quot;");
    let hidden = |(name, value): (&String, &String)| {
        format!("<input type=hidden name=\"{}\" value=\"{}\">", quoted(name), quoted(value))
    };
    let hidden: String = request.iter().map(hidden).collect();
    Html(format!("<title>Issuer</title><form action=\"../../signed-in\">{hidden}<input name=person></form>"))
}

/// Sends a person who has signed in back, with a code.
async fn signed_in(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Redirect {
    let request = pairs(&query.unwrap_or_default());
    let state = request["state"].clone();
    let redirect = request["redirect_uri"].clone();
    let code = shared.give(request);
    let answer = form_urlencoded::Serializer::new(String::new())
        .append_pair("code", &code)
        .append_pair("state", &state)
        .finish();
    Redirect::to(&format!("{redirect}?{answer}"))
}

/// Gives tokens to the client, for a code or for a refresh token.
async fn token(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: String) -> Response {
    let asked = pairs(&body);
    let basic = format!("Basic {}", STANDARD.encode(format!("{CLIENT}:{SECRET}")));
    let is_client = headers.get("authorization").is_some_and(|given| given.to_str().is_ok_and(|given| given == basic))
        || (asked.get("client_id").is_some_and(|id| id == CLIENT)
            && asked.get("client_secret").is_some_and(|it| it == SECRET));
    let is_refresh = asked["grant_type"] == "refresh_token";
    let name = &asked[if is_refresh { "refresh_token" } else { "code" }];
    let request = shared.given.lock().unwrap().get(name).cloned();
    let proven = |request: &Form| {
        let verifier = asked.get("code_verifier").map(String::as_str).unwrap_or_default();
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        is_refresh || (request["code_challenge"] == challenge && asked["redirect_uri"] == request["redirect_uri"])
    };
    let Some(request) = request.filter(|request| is_client && proven(request)) else {
        return (StatusCode::BAD_REQUEST, json!({"error": "invalid_grant"}).to_string()).into_response();
    };
    if is_refresh {
        *shared.refreshed.lock().unwrap() += 1;
    }
    let id_token = shared.id_token(&request["person"], request.get("nonce"));
    let tokens: Value = json!({
        "access_token": "opaque", "token_type": "Bearer", "expires_in": LIFE, "id_token": id_token,
        "refresh_token": shared.give(request),
    });
    ([("content-type", "application/json")], tokens.to_string()).into_response()
}
