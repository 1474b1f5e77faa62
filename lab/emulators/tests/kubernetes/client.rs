//! A server and the smallest HTTP client that can talk to it.

use std::net::SocketAddr;

use emulators::kubernetes::{Kubernetes, Settings};
use serde_json::{Value, json};
use testkit::http::{Reply, exchange};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// The namespace of the tests' Secrets.
pub(crate) const SECRETS: &str = "/api/v1/namespaces/default/secrets";

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

pub(crate) const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// The path of objects with a status that no controller touches.
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

pub(crate) const MERGE: &str = "application/merge-patch+json";

/// A server under test, with short ways to call it.
pub(crate) struct Server {
    pub(crate) kubernetes: Kubernetes,
}

/// A watch that goes on.
pub(crate) struct Watch(BufReader<TcpStream>);

impl Server {
    pub(crate) async fn start(settings: Settings) -> Self {
        Self { kubernetes: Kubernetes::start(settings).await.unwrap() }
    }

    pub(crate) async fn plain() -> Self {
        Self::start(Settings::default()).await
    }

    pub(crate) async fn faulty(faults: &[&str]) -> Self {
        let faults = faults.iter().map(|text| text.parse().unwrap()).collect();
        Self::start(Settings { faults, ..Settings::default() }).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.raw("GET", path, "", "").await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.raw("POST", path, &body.to_string(), "content-type: application/json\r\n").await.unwrap()
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        self.raw("PUT", path, &body.to_string(), "content-type: application/json\r\n").await.unwrap()
    }

    pub(crate) async fn patch(&self, path: &str, kind: &str, body: &Value) -> Reply {
        self.raw("PATCH", path, &body.to_string(), &format!("content-type: {kind}\r\n")).await.unwrap()
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Reply {
        self.patch(path, MERGE, body).await
    }

    /// Server-side apply by a manager; `query` may add parameters.
    pub(crate) async fn apply(&self, path: &str, manager: &str, body: &Value) -> Reply {
        let joint = if path.contains('?') { '&' } else { '?' };
        self.patch(&format!("{path}{joint}fieldManager={manager}"), "application/apply-patch+yaml", body).await
    }

    pub(crate) async fn delete(&self, path: &str, options: &Value) -> Reply {
        self.raw("DELETE", path, &options.to_string(), "content-type: application/json\r\n").await.unwrap()
    }

    /// None if the connection ended without an answer.
    pub(crate) async fn raw(&self, method: &str, path: &str, body: &str, headers: &str) -> Option<Reply> {
        exchange(self.kubernetes.address(), method, path, body, headers).await
    }

    /// A call with a bearer token.
    pub(crate) async fn with(&self, token: &str, method: &str, path: &str, body: &Value) -> Reply {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let kind = if method == "PATCH" { MERGE } else { "application/json" };
        let headers = format!("authorization: Bearer {token}\r\ncontent-type: {kind}\r\n");
        self.raw(method, path, &body, &headers).await.unwrap()
    }

    pub(crate) async fn watch(&self, path: &str) -> Watch {
        Watch::open(self.kubernetes.address(), path, "").await
    }

    /// The newest revision.
    pub(crate) async fn revision(&self) -> u64 {
        let list = self.get(SECRETS).await.expect(200);
        list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    }
}

/// Refusals as Kubernetes writes them.
pub(crate) trait Refused {
    /// Checks a refusal's status, reason and a part of its message; returns the whole `Status`.
    fn refused(self, code: u16, reason: &str, text: &str) -> Value;
}

impl Refused for Reply {
    #[track_caller]
    fn refused(self, code: u16, reason: &str, text: &str) -> Value {
        let body = self.body;
        assert_eq!(
            (self.status, body["code"].as_u64(), &body["kind"], &body["status"]),
            (code, Some(code.into()), &json!("Status"), &json!("Failure")),
            "{body:#}"
        );
        assert_eq!(body["reason"].as_str().unwrap_or_default(), reason, "{body:#}");
        assert!(body["message"].as_str().unwrap().contains(text), "{body:#}");
        body
    }
}

impl Watch {
    pub(crate) async fn open(address: SocketAddr, path: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let joint = if path.contains('?') { '&' } else { '?' };
        let request =
            format!("GET {path}{joint}watch=true HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).await.unwrap();
        }
        Self(reader)
    }

    /// The next event; none if the watch is over.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            let read = self.0.read_line(&mut line).await;
            if read.unwrap_or_default() == 0 {
                return None;
            }
            // Sizes of chunks and the empty lines behind them stand between the events.
            if line.starts_with('{') {
                return Some(serde_json::from_str(&line).unwrap());
            }
        }
    }

    /// The next event as `ADDED name`.
    pub(crate) async fn next_event(&mut self) -> String {
        let Some(event) = self.next().await else { return "over".to_owned() };
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
        format!("{} {name}", event["type"].as_str().unwrap()).trim().to_owned()
    }
}

/// A Secret with one entry.
pub(crate) fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"key": "value"}})
}

pub(crate) fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub(crate) fn job(name: &str) -> Value {
    let container = json!({"name": "main", "image": "registry/job:1"});
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    })
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": 1}})
}

pub(crate) fn pod(name: &str) -> Value {
    let container = json!({"name": "main", "image": "registry/pod:1"});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}})
}
