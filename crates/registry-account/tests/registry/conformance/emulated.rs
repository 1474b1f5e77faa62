//! An emulated Quay behind a proxy that can damage requests, as nodes and administrators see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use emulators::quay::{Quay, Settings};
use http::{Method, Request, Response, StatusCode};
use registry_account::{AccountName, Image, Login, QuayRegistry, QuaySettings, QuayToken};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::rig::settings;

/// A repository that is made after the team has its default permission.
const REPOSITORY: &str = "images";

pub(super) struct Emulated {
    pub(super) server: Quay,
    http: reqwest::Client,
    damages: Arc<AtomicBool>,
    proxy: JoinHandle<()>,
}

// === impl Emulated ===

impl Emulated {
    /// Starts a server, and prepares its organization.
    pub(super) async fn start() -> (Self, QuayRegistry) {
        let server = Quay::start(Settings::default()).await.unwrap();
        let http = reqwest::Client::builder().user_agent("cri-o/1.33").build().unwrap();
        let damages = Arc::new(AtomicBool::new(false));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (behind, client, armed) = (server.url(), http.clone(), Arc::clone(&damages));
        let handler = async move |request: Request<Body>| forward(&client, &behind, &armed, request).await;
        let proxy = tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await.unwrap() });
        let settings = QuaySettings {
            organization: server.organization().parse().unwrap(),
            token: QuayToken::Value(server.token().into()),
            ..settings(address)
        };
        let registry = QuayRegistry::connect(settings).unwrap();
        registry.prepare().await.unwrap();
        registry.prepare().await.unwrap();
        server.add_repository(REPOSITORY);
        (Self { server, http, damages, proxy }, registry)
    }

    pub(super) fn image(&self) -> Image {
        let repository = format!("{}/{REPOSITORY}", self.server.organization()).parse().unwrap();
        Image { repository, reference: Some("latest".parse().unwrap()) }
    }

    /// Lets the body of the next creation arrive broken.
    pub(super) fn damage(&self) {
        self.damages.store(true, Ordering::SeqCst);
    }

    /// Makes a robot as a person does.
    pub(super) async fn add_robot(&self, name: &AccountName) {
        let url = format!("{}/api/v1/organization/{}/robots/{name}", self.server.url(), self.server.organization());
        let request = self.http.put(url).bearer_auth(self.server.token()).body(json!({}).to_string());
        let answer = request.header("content-type", "application/json").send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
    }

    /// Gets a bearer token as a node does; `None` if the login is refused.
    pub(super) async fn bearer(&self, login: &Login) -> Option<String> {
        let scope = format!("repository:{}:pull", self.image().repository);
        let url = format!("{}?service={}&scope={scope}", self.server.realm(), self.server.service());
        let request = self.http.get(url).basic_auth(&login.username, Some(login.password.expose_secret()));
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let token: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        (status == StatusCode::OK).then(|| token["token"].as_str().unwrap().to_owned())
    }

    /// Reads the manifest with a bearer token.
    pub(super) async fn reads_manifest(&self, bearer: &str) -> bool {
        self.answers(bearer, "manifests/latest").await
    }

    /// Lists the tags with a bearer token, for which Quay does not look for the robot.
    pub(super) async fn lists_tags(&self, bearer: &str) -> bool {
        self.answers(bearer, "tags/list").await
    }

    async fn answers(&self, bearer: &str, path: &str) -> bool {
        let url = format!("{}/v2/{}/{path}", self.server.url(), self.image().repository);
        self.http.get(url).bearer_auth(bearer).send().await.unwrap().status() == StatusCode::OK
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        self.proxy.abort();
    }
}

/// Sends a request on, and its answer back; one that is lost behind is a 502 before.
async fn forward(
    client: &reqwest::Client,
    behind: &str,
    damages: &AtomicBool,
    request: Request<Body>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let mut body = to_bytes(body, 1024 * 1024).await.unwrap();
    let is_creation = head.method == Method::PUT && head.uri.path().contains("/robots/");
    if is_creation && damages.swap(false, Ordering::SeqCst) {
        body.truncate(body.len() / 2);
    }
    let mut headers = head.headers;
    headers.remove("content-length");
    let sent = client.request(head.method, format!("{behind}{}", head.uri)).headers(headers).body(body).send().await;
    let Ok(answer) = sent else {
        return Response::builder().status(StatusCode::BAD_GATEWAY).body(Body::empty()).unwrap();
    };
    let mut response = Response::builder().status(answer.status());
    for (name, value) in
        answer.headers().iter().filter(|(name, _)| !["content-length", "transfer-encoding"].contains(&name.as_str()))
    {
        response = response.header(name, value);
    }
    response.body(Body::from(answer.bytes().await.unwrap())).unwrap()
}
