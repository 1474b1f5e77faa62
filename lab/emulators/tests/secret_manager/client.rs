//! A server and the smallest HTTP client that can talk to it.

use std::net::SocketAddr;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use emulators::secret_manager::{Code, Method, SecretManager, Settings};
use serde_json::{Value, json};
use testkit::http::{Reply, exchange};

/// The parent of the tests' secrets.
pub(crate) const PARENT: &str = "/v1/projects/fleet-dev";

/// A server under test, with short ways to call it.
pub(crate) struct Server {
    pub(crate) manager: SecretManager,
}

impl Server {
    pub(crate) async fn start(settings: Settings) -> Self {
        Self { manager: SecretManager::start(settings).await.unwrap() }
    }

    pub(crate) async fn plain() -> Self {
        Self::start(Settings::default()).await
    }

    /// A server with the secret `s` in it.
    pub(crate) async fn with_secret(settings: Settings) -> Self {
        let server = Self::start(settings).await;
        server.create("s", json!({})).await.expect(200);
        server
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Reply {
        self.raw(method, path, &body.to_string(), "").await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.raw("GET", path, "", "").await.unwrap()
    }

    /// None if the connection ended without an answer.
    pub(crate) async fn raw(&self, method: &str, path: &str, body: &str, headers: &str) -> Option<Reply> {
        call(self.manager.address(), method, path, body, headers).await
    }

    pub(crate) async fn create(&self, id: &str, extra: Value) -> Reply {
        let mut secret = json!({"replication": {"automatic": {}}});
        secret.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        self.call("POST", &format!("{PARENT}/secrets?secretId={id}"), secret).await
    }

    pub(crate) async fn add(&self, data: &str) -> Reply {
        self.call("POST", &format!("{PARENT}/secrets/s:addVersion"), payload(data)).await
    }

    pub(crate) async fn access(&self, version: &str) -> Reply {
        self.get(&format!("{PARENT}/secrets/s/versions/{version}:access")).await
    }

    pub(crate) async fn change(&self, version: &str, verb: &str) -> Reply {
        self.call("POST", &format!("{PARENT}/secrets/s/versions/{version}:{verb}"), json!({})).await
    }

    pub(crate) async fn patch(&self, mask: &str, secret: Value) -> Reply {
        self.call("PATCH", &format!("{PARENT}/secrets/s?updateMask={mask}"), secret).await
    }

    /// The outcomes so far of calls of a method.
    pub(crate) fn outcomes(&self, method: Method) -> Vec<Option<&'static str>> {
        let calls = self.manager.calls();
        calls.iter().filter(|call| call.method == method).map(|call| call.outcome.map(Code::name)).collect()
    }
}

/// Answers as Secret Manager writes them.
pub(crate) trait SecretManagerReply {
    /// Checks an error's status, name and a part of its text; returns its text.
    fn refused(self, status: u16, name: &str, text: &str) -> String;

    /// The text that an access answered.
    fn content(self) -> String;
}

impl SecretManagerReply for Reply {
    #[track_caller]
    fn refused(self, status: u16, name: &str, text: &str) -> String {
        assert_eq!(self.body["error"]["status"], name, "{:#}", self.body);
        assert_eq!((self.status, self.body["error"]["code"].as_u64()), (status, Some(status.into())));
        let message = self.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(text), "{message}");
        message.to_owned()
    }

    #[track_caller]
    fn content(self) -> String {
        let body = self.expect(200);
        let data = BASE64_STANDARD.decode(body["payload"]["data"].as_str().unwrap()).unwrap();
        assert_eq!(body["payload"]["dataCrc32c"], crc32c::crc32c(&data).to_string());
        String::from_utf8(data).unwrap()
    }
}

pub(crate) fn payload(data: &str) -> Value {
    json!({"payload": {"data": BASE64_STANDARD.encode(data), "dataCrc32c": crc32c::crc32c(data.as_bytes()).to_string()}})
}

/// One request with a JSON body; `None` if the connection ended without an answer.
pub(crate) async fn call(address: SocketAddr, method: &str, path: &str, body: &str, headers: &str) -> Option<Reply> {
    exchange(address, method, path, body, &format!("content-type: application/json\r\n{headers}")).await
}
