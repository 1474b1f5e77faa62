//! The controllers at work in a store, with shell scripts as programs: no HTTP, no waiting but for what happens.

#![expect(clippy::needless_pass_by_value, reason = "objects are written where they are used")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::store::{Deletion, Store};
use super::{Controllers, Settings, start};

mod jobs;
mod running;

/// Maximum time until an expected event, also on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A store with its controllers, and a folder of programs.
struct Cluster {
    store: Arc<Store>,
    controllers: Controllers,
    folder: TempDir,
}

impl Cluster {
    /// A cluster in which each image is run by a script of its name.
    fn with(scripts: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut run_pods = BTreeMap::new();
        for (image, script) in scripts {
            let path = folder.path().join(image);
            daemon::file::replace(&path, format!("#!/bin/sh\n{script}\n").as_bytes()).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            run_pods.insert((*image).to_owned(), path);
        }
        Self::on(open(), run_pods, folder)
    }

    fn on(store: Arc<Store>, run_pods: BTreeMap<String, PathBuf>, folder: TempDir) -> Self {
        let controllers =
            start(&store, Settings { back_off: Duration::from_secs(10), run_pods, pods_dir: None, pod_lines: None });
        Self { store, controllers, folder }
    }

    fn create(&self, resource: &str, object: Value) -> Value {
        let namespace = if resource == "nodes" { "" } else { "default" };
        Value::clone(&self.store.create(resource, namespace, object).unwrap())
    }

    fn get(&self, resource: &str, name: &str) -> Option<Value> {
        self.store.get(resource, "default", name).ok().map(|object| Value::clone(&object))
    }

    fn pods(&self) -> Vec<Value> {
        self.store.list("pods", Some("default")).iter().map(|pod| Value::clone(pod)).collect()
    }

    fn reasons(&self) -> Vec<String> {
        let events = self.store.list("events", Some("default"));
        events.iter().map(|event| event["reason"].as_str().unwrap().to_owned()).collect()
    }

    fn delete(&self, resource: &str, name: &str) {
        self.store.delete(resource, "default", name, &Deletion::default()).unwrap();
    }

    fn log(&self, pod: &str) -> String {
        String::from_utf8(self.store.read_log("default", pod, None).unwrap()).unwrap()
    }

    /// Waits until something is so, looking at every change of a resource.
    async fn until<T>(&self, resource: &str, look: impl Fn() -> Option<T>) -> T {
        let mut changes = self.store.subscribe(resource);
        let wait = async {
            loop {
                if let Some(found) = look() {
                    return found;
                }
                changes.next().await;
            }
        };
        let found = tokio::time::timeout(TIMEOUT, wait).await;
        found.unwrap_or_else(|_| {
            panic!("it has not happened: {:#?} {:#?}", self.store.list(resource, None), self.reasons())
        })
    }

    /// The Job once it has ended so.
    async fn job_ended(&self, name: &str, end: &str) -> Value {
        self.until("jobs.batch", || self.get("jobs.batch", name).filter(|job| has(job, end))).await
    }

    /// The Pod once its container is in a state.
    async fn pod(&self, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        self.until("pods", || self.get("pods", name).filter(|pod| is_so(pod))).await
    }

    async fn stop(mut self) {
        self.store.stopping.cancel();
        tokio::time::timeout(TIMEOUT, self.controllers.stopped()).await.unwrap();
    }
}

fn open() -> Arc<Store> {
    Store::open(&super::super::Settings::default(), jiff::Timestamp::now).unwrap()
}

fn job(image: &str, more: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": "store" },
        "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": image }] } } },
    });
    for (name, value) in more.as_object().unwrap() {
        job["spec"][name] = value.clone();
    }
    job
}

fn pod(image: &str, container: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "p", "labels": { "app": "x" } },
        "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": image }] },
    });
    for (name, value) in container.as_object().unwrap() {
        match name.as_str() {
            "volumes" | "restartPolicy" | "terminationGracePeriodSeconds" => pod["spec"][name] = value.clone(),
            _ => pod["spec"]["containers"][0][name] = value.clone(),
        }
    }
    pod
}

/// True if a condition is true.
fn has(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

fn state(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["state"]
}

fn ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

fn waits(reason: &str) -> impl Fn(&Value) -> bool {
    move |pod| state(pod)["waiting"]["reason"] == reason
}

/// True if a process is there, zombies included.
fn is_alive(pid: &str) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap()
}
