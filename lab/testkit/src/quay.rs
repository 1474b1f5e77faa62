//! A Quay emulator and the smallest client that can talk to it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use emulators::quay::{Operation, Quay, Settings};
use serde_json::{Value, json};

use crate::http::{Reply, exchange};

/// A server under test, with short ways to call it.
pub struct Server {
    pub quay: Quay,
}

impl Server {
    pub async fn start(settings: Settings) -> Self {
        Self { quay: Quay::start(settings).await.unwrap() }
    }

    pub async fn plain() -> Self {
        Self::start(Settings::default()).await
    }

    /// With these faults.
    pub async fn faulty(faults: &[&str]) -> Self {
        Self::start(Settings {
            faults: faults.iter().map(|text| text.parse().unwrap()).collect(),
            ..Settings::default()
        })
        .await
    }

    /// A call of the API with its token; the path is that behind the organization, and a null body is none.
    pub async fn call(&self, method: &str, path: &str, body: Value) -> Reply {
        self.try_call(method, path, body).await.unwrap()
    }

    /// None if the connection ended without an answer.
    pub async fn try_call(&self, method: &str, path: &str, body: Value) -> Option<Reply> {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let path = format!("/api/v1/organization/{}/{path}", self.quay.organization());
        self.raw(method, &path, &text, &bearer(self.quay.token())).await
    }

    /// A call with a complete path, and no other credentials than those of `headers`, each with its CRLF.
    pub async fn raw(&self, method: &str, path: &str, body: &str, headers: &str) -> Option<Reply> {
        let headers = format!("content-type: application/json\r\n{headers}");
        exchange(self.quay.address(), method, path, body, &headers).await
    }

    /// Makes a robot that may pull from every repository of the team `pullers`; returns its password.
    pub async fn robot(&self, name: &str) -> String {
        let made = self.call("PUT", &format!("robots/{name}"), json!({"description": "d"})).await.expect(201);
        made["token"].as_str().unwrap().to_owned()
    }

    /// Gives a robot a role on a repository.
    pub async fn permit(&self, robot: &str, repository: &str, role: &str) {
        let organization = self.quay.organization();
        let path = format!("/api/v1/repository/{organization}/{repository}/permissions/user/{organization}+{robot}");
        let body = json!({"role": role}).to_string();
        self.raw("PUT", &path, &body, &bearer(self.quay.token())).await.unwrap().expect(200);
    }

    /// The answer to a robot that asks for a token to pull from a repository.
    pub async fn request_token(&self, robot: &str, password: &str, repository: &str) -> Reply {
        let (organization, service) = (self.quay.organization(), self.quay.service());
        let path = format!("/v2/auth?service={service}&scope=repository:{organization}/{repository}:pull");
        self.raw("GET", &path, "", &basic(&format!("{organization}+{robot}"), password)).await.unwrap()
    }

    /// The outcomes so far of an operation's calls.
    pub fn outcomes(&self, operation: Operation) -> Vec<Option<u16>> {
        let calls = self.quay.calls();
        calls.iter().filter(|call| call.operation == operation).map(|call| call.outcome).collect()
    }
}

/// A header with a token.
pub fn bearer(token: &str) -> String {
    format!("authorization: Bearer {token}\r\n")
}

/// A header with a name and a password.
pub fn basic(user: &str, password: &str) -> String {
    format!("authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")))
}

/// A part of a JSON Web Token, of which the first is its header and the second its claims; none if the text is no token.
pub fn part_of_token(token: &str, index: usize) -> Option<Value> {
    let part = token.split('.').nth(index)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
