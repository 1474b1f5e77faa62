//! Emulated registries behind a proxy that can damage requests, as nodes and administrators see them.

use std::time::Duration;

use axum::body::Bytes;
use emulators::harbor::{self, Harbor};
use emulators::quay::{self, Quay};
use emulators::red_hat::{self, RedHat};
use http::request::Parts;
use http::{Method, StatusCode};
use jiff::Timestamp;
use registry_account::{
    AccountName, HarborRegistry, HarborSettings, IdentitySecret, Image, Login, Operation, QuayRegistry, QuaySettings,
    RedHatRegistry,
};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::proxy::Proxy;
use crate::red_hat::Files;
use crate::rig::{harbor_settings, settings};

/// A repository that is made after Quay's team has its default permission.
const REPOSITORY: &str = "images";

pub(super) struct Emulated {
    server: Server,
    http: reqwest::Client,
    /// The files that the client reads; they go with this.
    _files: Option<Files>,
}

enum Server {
    Harbor(Harbor, Proxy),
    Quay(Quay, Proxy),
    RedHat(RedHat),
}

// === impl Emulated ===

impl Emulated {
    /// Starts a server, and prepares its organization.
    pub(super) async fn quay() -> (Self, QuayRegistry) {
        let server = Quay::start(quay::Settings::default()).await.unwrap();
        let proxy = Proxy::start(server.url(), half_of_quays).await;
        let settings = QuaySettings {
            organization: server.organization().parse().unwrap(),
            token: IdentitySecret::Value(server.token().into()),
            ..settings(proxy.address)
        };
        let registry = QuayRegistry::connect(settings).unwrap();
        registry.prepare().await.unwrap();
        registry.prepare().await.unwrap();
        server.add_repository(REPOSITORY);
        (Self::new(Server::Quay(server, proxy), plain()), registry)
    }

    pub(super) async fn harbor() -> (Self, HarborRegistry) {
        let server = Harbor::start(harbor::Settings::default()).await.unwrap();
        let proxy = Proxy::start(server.url(), other_description_for_harbor).await;
        let settings = HarborSettings {
            project: server.project().parse().unwrap(),
            username: server.username().parse().unwrap(),
            password: IdentitySecret::Value(server.password().into()),
            ..harbor_settings(proxy.address)
        };
        (Self::new(Server::Harbor(server, proxy), plain()), HarborRegistry::connect(settings).unwrap())
    }

    pub(super) async fn red_hat() -> (Self, RedHatRegistry) {
        let server = RedHat::start(red_hat::Settings::default()).await.unwrap();
        let files = Files::of(&server);
        let registry = RedHatRegistry::connect(files.settings(&server)).unwrap();
        let authority = reqwest::Certificate::from_pem(server.authority().as_bytes()).unwrap();
        let emulated = Self::new(Server::RedHat(server), plain().tls_certs_only([authority]));
        (Self { _files: Some(files), ..emulated }, registry)
    }

    fn new(server: Server, http: reqwest::ClientBuilder) -> Self {
        Self { server, http: http.build().unwrap(), _files: None }
    }

    pub(super) fn image(&self) -> Image {
        let owner = match &self.server {
            Server::Harbor(server, _) => server.project(),
            Server::Quay(server, _) => server.organization(),
            Server::RedHat(_) => "ubi9",
        };
        Image {
            repository: format!("{owner}/{REPOSITORY}").parse().unwrap(),
            reference: Some("latest".parse().unwrap()),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        match &self.server {
            Server::Harbor(server, _) => server.now(),
            Server::Quay(server, _) => server.now(),
            Server::RedHat(server) => server.now(),
        }
    }

    pub(super) fn advance(&self, by: Duration) {
        match &self.server {
            Server::Harbor(server, _) => server.advance_clock(by),
            Server::Quay(server, _) => server.advance_clock(by),
            Server::RedHat(server) => server.advance_clock(by),
        }
    }

    /// Harbor writes no failed logins to a project's log.
    pub(super) fn records_failed_logins(&self) -> bool {
        matches!(self.server, Server::Quay(..))
    }

    /// Lets a fault happen to the next call of an operation.
    pub(super) fn inject(&self, operation: Operation, effect: &str) {
        let names = match operation {
            Operation::Create => ["CreateRobot", "createOrgRobot", "createServiceAccount"],
            // At Harbor and Red Hat accounts have their permission already, so that it is only looked for.
            Operation::Permit => ["ListRobot", "updateOrganizationTeamMember", "getServiceAccount"],
            Operation::Delete => ["DeleteRobot", "deleteOrgRobot", "deleteServiceAccount"],
            other => panic!("no case has a fault of {other:?}"),
        };
        match &self.server {
            Server::Harbor(server, _) => server.inject(format!("{}:{effect}", names[0]).parse().unwrap()),
            Server::Quay(server, _) => server.inject(format!("{}:{effect}", names[1]).parse().unwrap()),
            Server::RedHat(server) => server.inject(format!("{}:{effect}", names[2]).parse().unwrap()),
        }
    }

    /// Lets the body of the next creation arrive damaged.
    pub(super) fn damage(&self) {
        match &self.server {
            Server::Harbor(_, proxy) | Server::Quay(_, proxy) => proxy.arm(),
            Server::RedHat(server) => server.damage(),
        }
    }

    /// Makes an account as a person does.
    pub(super) async fn add_stranger(&self, name: &AccountName) {
        let request = match &self.server {
            Server::RedHat(server) => return server.add_account(name.as_str(), "of a person"),
            Server::Harbor(server, _) => {
                let permission = json!({
                    "kind": "project", "namespace": server.project(),
                    "access": [{"resource": "repository", "action": "pull"}],
                });
                let body = json!({
                    "name": name.as_str(), "description": "of a person", "level": "project", "duration": 30,
                    "permissions": [permission],
                });
                let request = self.http.post(format!("{}/api/v2.0/robots", server.url()));
                request.basic_auth(server.username(), Some(server.password())).body(body.to_string())
            }
            Server::Quay(server, _) => {
                let url = format!("{}/api/v1/organization/{}/robots/{name}", server.url(), server.organization());
                self.http.put(url).bearer_auth(server.token()).body(json!({}).to_string())
            }
        };
        let answer = request.header("content-type", "application/json").send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
    }

    /// Gets a bearer token as a node does; `None` if the login is refused.
    pub(super) async fn bearer(&self, login: &Login) -> Option<String> {
        let (realm, service) = match &self.server {
            Server::Harbor(server, _) => (server.realm(), server.service()),
            Server::Quay(server, _) => (server.realm(), server.service()),
            Server::RedHat(server) => (server.realm(), server.service()),
        };
        let url = format!("{realm}?service={service}&scope=repository:{}:pull", self.image().repository);
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

    /// Lists the tags with a bearer token, for which no registry looks for the robot.
    pub(super) async fn lists_tags(&self, bearer: &str) -> bool {
        self.answers(bearer, "tags/list").await
    }

    async fn answers(&self, bearer: &str, path: &str) -> bool {
        let server = match &self.server {
            Server::Harbor(server, _) => server.url(),
            Server::Quay(server, _) => server.url(),
            Server::RedHat(server) => format!("https://{}", server.registry()),
        };
        let url = format!("{server}/v2/{}/{path}", self.image().repository);
        self.http.get(url).bearer_auth(bearer).send().await.unwrap().status() == StatusCode::OK
    }
}

fn plain() -> reqwest::ClientBuilder {
    reqwest::Client::builder().user_agent("cri-o/1.33")
}

/// Quay creates a robot from a body that it cannot read.
fn half_of_quays(head: &Parts, body: &Bytes) -> Option<Bytes> {
    let is_creation = head.method == Method::PUT && head.uri.path().contains("/robots/");
    is_creation.then(|| body.slice(..body.len() / 2))
}

/// Harbor refuses a body that it cannot read.
fn other_description_for_harbor(head: &Parts, body: &Bytes) -> Option<Bytes> {
    let is_creation = head.method == Method::POST && head.uri.path().ends_with("/robots");
    is_creation.then(|| {
        let mut robot: Value = serde_json::from_slice(body).unwrap();
        robot["description"] = json!("damaged");
        robot.to_string().into()
    })
}
