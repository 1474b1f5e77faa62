//! A Key Vault emulator and the smallest client that can talk to it.

use std::time::Duration;

use emulators::key_vault::{KeyVault, Operation, Settings};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::http::{Reply, exchange_over, secured};

/// The version of the API that the tests ask for.
pub const API: &str = "api-version=2025-07-01";

/// The subject of the first identity's assertions.
pub const SUBJECT: &str = "system:serviceaccount:hyperfleet:pull-secret";

/// A server under test, with short ways to call it.
pub struct Server {
    pub vault: KeyVault,
    pub settings: Settings,
    /// An access token of the first identity.
    pub token: String,
}

impl Server {
    /// With a token that outlives every clock that a test advances.
    pub async fn start(settings: Settings) -> Self {
        let settings = Settings { token_lifetime: Duration::from_hours(24 * 365), ..settings };
        Self::with_lifetime(settings).await
    }

    pub async fn with_lifetime(settings: Settings) -> Self {
        let vault = KeyVault::start(settings.clone()).await.unwrap();
        let mut server = Self { vault, settings, token: String::new() };
        server.token = server.issue("https://vault.azure.net/.default").await;
        server
    }

    pub async fn plain() -> Self {
        Self::start(Settings::default()).await
    }

    /// A server with the secret `s` in it, of one version with the value `a`.
    pub async fn with_secret(settings: Settings) -> Self {
        let server = Self::start(settings).await;
        server.set("s", "a").await;
        server
    }

    /// A token for the first identity.
    pub async fn issue(&self, scope: &str) -> String {
        let assertion = self.vault.assertion(SUBJECT);
        let reply = self.request_token(&self.form(&[("client_assertion", &assertion), ("scope", scope)])).await;
        reply.expect(200)["access_token"].as_str().unwrap().to_owned()
    }

    /// A token request of the first identity by an assertion, with these fields set; an empty one is left out.
    pub fn form(&self, changes: &[(&str, &str)]) -> String {
        let mut fields = vec![
            ("grant_type", "client_credentials"),
            ("client_id", self.settings.identities[0].client_id.as_str()),
            ("scope", "https://vault.azure.net/.default"),
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
        ];
        fields.retain(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
        fields.extend(changes.iter().filter(|(_, value)| !value.is_empty()));
        form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
    }

    pub async fn request_token(&self, form: &str) -> Reply {
        let path = format!("/{}/oauth2/v2.0/token", self.settings.tenant);
        self.post_form(&path, form).await
    }

    pub async fn post_form(&self, path: &str, form: &str) -> Reply {
        let headers = format!("host: {}\r\ncontent-type: application/x-www-form-urlencoded\r\n", self.vault.address());
        self.send("POST", path, form, &headers).await.unwrap()
    }

    /// A call with the token; a null body is none.
    pub async fn call(&self, method: &str, path: &str, body: Value) -> Reply {
        self.try_call(method, path, body).await.unwrap()
    }

    /// None if the connection ended without an answer.
    pub async fn try_call(&self, method: &str, path: &str, body: Value) -> Option<Reply> {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        self.raw(method, &versioned(path), &text, &format!("authorization: Bearer {}\r\n", self.token)).await
    }

    /// A call without the token; the path is complete.
    pub async fn raw(&self, method: &str, path: &str, body: &str, headers: &str) -> Option<Reply> {
        let address = self.vault.address();
        let headers = format!("host: {address}\r\ncontent-type: application/json\r\n{headers}");
        self.send(method, path, body, &headers).await
    }

    /// A call with no other headers than these.
    pub async fn send(&self, method: &str, path: &str, body: &str, headers: &str) -> Option<Reply> {
        let stream = TcpStream::connect(self.vault.address()).await.unwrap();
        let stream = secured(stream, self.vault.authority()).await.unwrap();
        exchange_over(stream, method, path, body, headers).await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.call("GET", path, Value::Null).await
    }

    pub async fn put(&self, name: &str, bundle: Value) -> Reply {
        self.call("PUT", &format!("/secrets/{name}"), bundle).await
    }

    pub async fn patch(&self, path: &str, bundle: Value) -> Reply {
        self.call("PATCH", path, bundle).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.call("DELETE", path, Value::Null).await
    }

    pub async fn recover(&self, name: &str) -> Reply {
        self.call("POST", &format!("/deletedsecrets/{name}/recover"), Value::Null).await
    }

    /// Adds a version; returns its id.
    pub async fn set(&self, name: &str, value: &str) -> String {
        let bundle = self.put(name, json!({"value": value})).await.expect(200);
        version_of(&bundle)
    }

    /// The value of a secret or a version.
    pub async fn value(&self, path: &str) -> String {
        self.get(&format!("/secrets/{path}")).await.expect(200)["value"].as_str().unwrap().to_owned()
    }

    /// The outcomes so far of an operation's calls.
    pub fn outcomes(&self, operation: Operation) -> Vec<Option<u16>> {
        let calls = self.vault.calls();
        calls.iter().filter(|call| call.operation == operation).map(|call| call.outcome).collect()
    }
}

/// The path with the version of the API.
pub fn versioned(path: &str) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}{API}")
}

/// The version in a document's id.
pub fn version_of(document: &Value) -> String {
    document["id"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

/// The last parts of the ids of a list's items.
pub fn names(page: &Value) -> Vec<String> {
    page["value"].as_array().unwrap().iter().map(version_of).collect()
}

/// Answers as Key Vault and Entra write them.
pub trait KeyVaultReply {
    /// Checks an error's status, its code (with the inner one behind a slash) and a part of its text.
    fn refused(self, status: u16, code: &str, text: &str);

    /// Checks an error of the token endpoint, or of the document that names it.
    fn denied(self, status: u16, error: &str, text: &str);
}

impl KeyVaultReply for Reply {
    #[track_caller]
    fn refused(self, status: u16, code: &str, text: &str) {
        let error = &self.body["error"];
        let inner = error["innererror"]["code"].as_str().map(|inner| format!("/{inner}")).unwrap_or_default();
        let found = format!("{}{inner}", error["code"].as_str().unwrap_or_default());
        assert_eq!((self.status, found.as_str()), (status, code), "{:#}", self.body);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(text), "{message}");
        let challenged = self.head.contains("www-authenticate: bearer authorization=\"https://");
        assert_eq!(challenged, status == 401, "{}", self.head);
    }

    #[track_caller]
    fn denied(self, status: u16, error: &str, text: &str) {
        assert_eq!((self.status, self.body["error"].as_str()), (status, Some(error)), "{:#}", self.body);
        let description = self.body["error_description"].as_str().unwrap();
        assert!(description.contains(text), "{description}");
        assert!(!self.head.contains("www-authenticate"), "{}", self.head);
    }
}
