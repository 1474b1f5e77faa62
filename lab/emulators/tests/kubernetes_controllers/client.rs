//! A server whose images are shell scripts, and the smallest client that can watch it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use emulators::kubernetes::{Kubernetes, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Maximum time until an expected event, also on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// A server under test.
pub(crate) struct Cluster {
    pub(crate) server: Kubernetes,
    _programs: TempDir,
}

impl Cluster {
    /// A cluster in which each image is run by a script of its name.
    pub(crate) async fn with(scripts: &[(&str, &str)]) -> Self {
        let programs = tempfile::tempdir().unwrap();
        let mut run_pods = BTreeMap::new();
        for (image, script) in scripts {
            let path = programs.path().join(image);
            daemon::file::replace(&path, format!("#!/bin/sh\n{script}\n").as_bytes()).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            run_pods.insert((*image).to_owned(), path);
        }
        let server = Kubernetes::start(Settings { run_pods, ..Settings::default() }).await.unwrap();
        Self { server, _programs: programs }
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        let (status, body) = self.exchange("GET", path, &Value::Null).await;
        (status, serde_json::from_str(&body).unwrap())
    }

    pub(crate) async fn text(&self, path: &str) -> String {
        self.exchange("GET", path, &Value::Null).await.1
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) {
        let (status, body) = self.exchange("POST", path, object).await;
        assert_eq!(status, 201, "{body}");
    }

    pub(crate) async fn replace(&self, path: &str, object: &Value) {
        let (status, body) = self.exchange("PUT", path, object).await;
        assert_eq!(status, 200, "{body}");
    }

    pub(crate) async fn delete(&self, path: &str) {
        let (status, body) = self.exchange("DELETE", path, &Value::Null).await;
        assert!(status == 200 || status == 202, "{status} {body}");
    }

    /// Watches a collection until an event is as wanted; what is there already counts as added.
    pub(crate) async fn until(&self, collection: &str, wanted: impl Fn(&str, &Value) -> bool) -> Value {
        self.until_after(collection, "", wanted).await
    }

    /// Watches a collection from a resource version on.
    pub(crate) async fn until_after(
        &self,
        collection: &str,
        version: &str,
        wanted: impl Fn(&str, &Value) -> bool,
    ) -> Value {
        let path = format!("{collection}?watch=true&resourceVersion={version}");
        let mut seen = Vec::new();
        let watch = async {
            let mut lines = self.send("GET", &path, &Value::Null).await.lines();
            while let Some(line) = lines.next_line().await.unwrap() {
                let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
                if wanted(event["type"].as_str().unwrap(), &event["object"]) {
                    return event["object"].clone();
                }
                seen.push(event);
            }
            panic!("the watch has ended")
        };
        let found = tokio::time::timeout(TIMEOUT, watch).await;
        found.unwrap_or_else(|_| panic!("it has not happened: {seen:#?}"))
    }

    /// The Job once it has ended so.
    pub(crate) async fn job_ended(&self, end: &str) -> Value {
        self.until(JOBS, |_, job| has(job, end)).await
    }

    async fn exchange(&self, method: &str, path: &str, body: &Value) -> (u16, String) {
        let mut answer = String::new();
        self.send(method, path, body).await.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split_whitespace().nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// HTTP/1.0: the answer ends with the connection, without chunks.
    async fn send(&self, method: &str, path: &str, body: &Value) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.server.address()).await.unwrap();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        BufReader::new(stream)
    }
}

/// A Job named `store` with one container.
pub(crate) fn job(image: &str, spec: &[(&str, Value)], container: &[(&str, Value)]) -> Value {
    let mut main = json!({ "name": "main", "image": image });
    for (name, value) in container {
        main[name] = value.clone();
    }
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "store", "namespace": "default" },
        "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [main] } } },
    });
    for (name, value) in spec {
        job["spec"][name] = value.clone();
    }
    job
}

/// True if a condition is true.
pub(crate) fn has(object: &Value, kind: &str) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// The end of a Pod's container.
pub(crate) fn end(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["state"]["terminated"]
}

/// True if a Pod's container runs.
pub(crate) fn runs(pod: &Value) -> bool {
    pod["status"]["containerStatuses"][0]["state"]["running"].is_object()
}
