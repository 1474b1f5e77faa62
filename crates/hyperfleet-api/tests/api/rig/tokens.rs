//! Issuers of tokens: a key, tokens signed with it, and a server for its public key.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use serde_json::{Value, json};
pub(crate) use testkit::tokens::Key;

/// The audience of all tokens.
pub(crate) const AUDIENCE: &str = "hyperfleet-api";

/// An issuer that serves its keys over HTTP on loopback.
#[derive(Debug)]
pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) key: Key,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    set: Mutex<Value>,
    down: AtomicBool,
    fetched: AtomicUsize,
}

impl Issuer {
    /// An issuer with a key of that id.
    pub(crate) async fn start(id: &str) -> Self {
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let keys = move || {
            let state = Arc::clone(&shared);
            async move {
                state.fetched.fetch_add(1, Ordering::SeqCst);
                let set = state.set.lock().unwrap().to_string();
                let status = if state.down.load(Ordering::SeqCst) { 500 } else { 200 };
                (http::StatusCode::from_u16(status).unwrap(), set)
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/keys", axum::routing::get(keys));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let issuer = Self { url, key: Key::generate(id), state };
        issuer.publish(&[&issuer.key]);
        issuer
    }

    /// Serves these keys from now on.
    pub(crate) fn publish(&self, keys: &[&Key]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
        *self.state.set.lock().unwrap() = json!({ "keys": keys });
    }

    pub(crate) fn set_down(&self, down: bool) {
        self.state.down.store(down, Ordering::SeqCst);
    }

    /// Number of fetches of its keys.
    pub(crate) fn fetched(&self) -> usize {
        self.state.fetched.load(Ordering::SeqCst)
    }

    /// Claims that are valid for an hour, extended or overridden by `more`.
    pub(crate) fn claims(&self, more: Value) -> Value {
        let now = jiff::Timestamp::now().as_second();
        let claims = json!({
            "iss": self.url, "aud": AUDIENCE, "exp": now + 3600, "email": "jane@example.com", "email_verified": true,
        });
        super::merged(claims, more)
    }

    /// An `Authorization` header with a token of such claims.
    pub(crate) fn bearer(&self, more: Value) -> String {
        format!("Bearer {}", self.key.sign(&self.claims(more)))
    }

    /// Its item of `server.jwt.configs`, with further members.
    pub(crate) fn settings(&self, more: &str) -> String {
        let url = &self.url;
        format!("  - {{ issuer_url: \"{url}\", jwk_cert_url: \"{url}/keys\", audience: {AUDIENCE}{more} }}\n")
    }

    /// An item of `authorization.grants` for one subject.
    pub(crate) fn grant(&self, subject: &str, members: &str) -> String {
        format!("  - {{ issuer: \"{}\", subject: \"{subject}\", {members} }}\n", self.url)
    }
}

/// Settings with authentication by these issuers, all of whose identities may do everything but read pull secrets.
pub(crate) fn authenticated(issuers: &[String]) -> String {
    let everything = "claim: { name: iss, pattern: '.*' }, kinds: ['*'], verbs: ['*'], reports_as: ['*'], \
                      chooses_destination: true, force_deletes: true";
    let url = |issuer: &String| issuer.split('"').nth(1).unwrap_or("none").to_owned();
    let grants = issuers.iter().map(|issuer| format!("  - {{ issuer: \"{}\", {everything} }}\n", url(issuer)));
    granted(issuers, &grants.collect::<Vec<_>>())
}

/// Settings with authentication by these issuers, and with these grants.
pub(crate) fn granted(issuers: &[String], grants: &[String]) -> String {
    let issuers = issuers.concat().replace("  - ", "    - ");
    let grants = grants.concat();
    format!("authorization:\n  grants:\n{grants}server:\n  jwt:\n    enabled: true\n    configs:\n{issuers}")
}
