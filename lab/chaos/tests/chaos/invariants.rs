//! Invariants that must hold in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hyperfleet_client::{Client, ListQuery, Resource, View};
use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ListParams;
use secrecy::ExposeSecret as _;
use secret_store::{Endpoint, GoogleSecretManager, SecretId, SecretStore as _, Settings, Version, VersionState};
use serde_json::{Value, json};

use super::fleet::{Life, Lives, budget, client};
use super::world::{MANAGEMENT, NAMESPACE, World, holds_credential};
use testkit::http::exchange;

/// Versions of a secret that are kept.
const RETAINED: usize = 3;

/// Reads every part and compares them.
pub(crate) struct Judge {
    lives: Lives,
    client: Client,
    kube: kube::Client,
    stores: BTreeMap<String, GoogleSecretManager>,
}

impl Judge {
    pub(crate) async fn new(world: &World, lives: Lives) -> Self {
        let mut stores = BTreeMap::new();
        for life in lives.0.values().flatten() {
            let settings = Settings {
                project: life.project.parse().unwrap(),
                location: None,
                endpoint: Endpoint::Emulator {
                    host: world.store_address(),
                    token_file: Some(world.store_token().into()),
                },
                call_timeout: Duration::from_secs(10),
                calls: None,
            };
            stores.insert(life.project.clone(), GoogleSecretManager::connect(&settings).await.unwrap());
        }
        Self { lives, client: client(world), kube: world.kube().await, stores }
    }

    /// The clusters, for people.
    pub(crate) fn summary(&self) -> String {
        let living = self.lives.0.values().flatten().count();
        format!("{living} clusters live, {} are deleted;", self.lives.0.len() - living)
    }

    /// All that is not as it should be (yet): what is cheap to ask first.
    pub(crate) async fn wrong(&self, world: &World) -> Vec<String> {
        let mut wrong = self.in_api().await.unwrap_or_else(|| vec!["the API does not answer".to_owned()]);
        if wrong.is_empty() {
            wrong = self.in_kubernetes().await.unwrap_or_else(|error| vec![error.to_string()]);
        }
        if wrong.is_empty() {
            wrong = self.in_store(world).await;
        }
        if wrong.is_empty() {
            let left = world.broker.messages().await;
            wrong = left.into_iter().map(|(queue, count)| format!("{count} messages are in {queue}")).collect();
        }
        wrong
    }

    async fn in_api(&self) -> Option<Vec<String>> {
        let budget = budget();
        let mut pages = self.client.within(&budget).list_all("clusters", ListQuery::default());
        let mut found = BTreeMap::new();
        while let Some(page) = pages.next().await.ok()? {
            found.extend(page.into_iter().map(|resource| (resource.id.clone(), resource)));
        }
        let mut wrong = Vec::new();
        for (id, life) in &self.lives.0 {
            match (life, found.remove(id)) {
                (None, Some(_)) => wrong.push(format!("{id} was deleted and the API has it")),
                (Some(_), None) => wrong.push(format!("{id} lives and the API does not have it")),
                (Some(life), Some(resource)) => {
                    wrong.extend(misreported(life, &resource).map(|why| format!("{id}: {why}")));
                }
                (None, None) => {}
            }
        }
        wrong.extend(found.into_keys().map(|id| format!("the API has {id}, which was never created")));
        Some(wrong)
    }

    async fn in_kubernetes(&self) -> kube::Result<Vec<String>> {
        let mut wrong = Vec::new();
        let all = ListParams::default();
        let jobs = Api::<Job>::namespaced(self.kube.clone(), NAMESPACE).list(&all).await?;
        wrong.extend(jobs.items.iter().filter_map(|job| self.unwanted(job)));
        let inputs = Api::<Secret>::namespaced(self.kube.clone(), NAMESPACE).list(&all).await?;
        let names = inputs.items.into_iter().map(|secret| secret.metadata.name.unwrap());
        wrong.extend(names.filter(|name| name.starts_with("cluster-")).map(|name| format!("input {name} is left")));
        let outputs = Api::<Secret>::namespaced(self.kube.clone(), MANAGEMENT).list(&all).await?;
        let mut outputs: BTreeMap<String, Secret> =
            outputs.items.into_iter().map(|secret| (secret.metadata.name.clone().unwrap(), secret)).collect();
        for (id, life) in self.living() {
            match outputs.remove(&format!("{id}-pull-secret")) {
                None => wrong.push(format!("{id} has no Secret in Kubernetes")),
                Some(secret) => wrong.extend(mishandled(life, &secret).map(|why| format!("{id}: {why}"))),
            }
        }
        wrong.extend(outputs.into_keys().map(|name| format!("Secret {name} is left")));
        Ok(wrong)
    }

    /// Jobs that are over are kept for a while, and those of deleted clusters must go.
    fn unwanted(&self, job: &Job) -> Option<String> {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        let id = job.metadata.labels.as_ref().and_then(|labels| labels.get("hyperfleet.io/resource-id"));
        let is_of_living = id.is_some_and(|id| self.lives.0.get(id).is_some_and(Option::is_some));
        let status = job.status.clone().unwrap_or_default();
        let is_over = status.conditions.into_iter().flatten().any(|condition| condition.type_ != "SuccessCriteriaMet");
        let is_kept = is_over && job.spec.as_ref().is_some_and(|spec| spec.ttl_seconds_after_finished.is_some());
        (!is_of_living || !is_kept).then(|| format!("Job {name} is left, over: {is_over}"))
    }

    async fn in_store(&self, world: &World) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut expected = BTreeSet::new();
        for (id, life) in self.living() {
            let name = format!("hyperfleet-{id}-pull-secret");
            let why = self.misstored(life, &name.parse().unwrap()).await;
            wrong.extend(why.map(|why| format!("{id}: {why}")));
            expected.insert(format!("{}/{name}", life.project));
        }
        for project in self.stores.keys() {
            let path = format!("/v1/projects/{project}/secrets?pageSize=25000");
            let token = std::fs::read_to_string(world.store_token()).unwrap();
            let headers = format!("authorization: Bearer {token}\r\n");
            let reply = exchange(world.store_address().parse().unwrap(), "GET", &path, "", &headers).await;
            let Some(reply) = reply else { return vec!["the store does not answer".to_owned()] };
            let listed = reply.expect(200);
            if holds_credential(&listed.to_string()) {
                wrong.push(format!("a credential shows in the secrets' metadata of {project}"));
            }
            for secret in listed["secrets"].as_array().into_iter().flatten() {
                let name = secret["name"].as_str().unwrap().rsplit('/').next().unwrap();
                if !expected.contains(&format!("{project}/{name}")) {
                    wrong.push(format!("secret {name} of {project} is left"));
                }
            }
        }
        wrong
    }

    async fn misstored(&self, life: &Life, secret: &SecretId) -> Option<String> {
        let store = &self.stores[&life.project];
        let versions = match store.list_versions(secret).await {
            Ok(versions) => versions,
            Err(error) => return Some(format!("its versions cannot be listed: {error}")),
        };
        let live: Vec<_> = versions.iter().filter(|version| version.state == VersionState::Live).collect();
        if live.is_empty() || live.len() > RETAINED {
            return Some(format!("{} versions are live of {}", live.len(), versions.len()));
        }
        let mut holding = 0;
        for (place, version) in live.iter().enumerate() {
            let content = match store.read_version(secret, version.number).await {
                Ok(Version::Live(live)) => live.content,
                other => return Some(format!("a live version cannot be read: {other:?}")),
            };
            let holds = serde_json::from_slice::<Value>(content.expose_secret()).unwrap() == life.content;
            holding += usize::from(holds);
            if place == 0 && !holds {
                return Some(format!("the newest version, {}, holds something else", version.number));
            }
        }
        (holding != 1).then(|| format!("{holding} versions hold its pull secret"))
    }

    fn living(&self) -> impl Iterator<Item = (&str, &Life)> {
        self.lives.0.iter().filter_map(|(id, life)| Some((id.as_str(), life.as_ref()?)))
    }
}

/// The contradiction between the API's state of a living cluster and the truth, if there is one.
fn misreported(life: &Life, resource: &Resource) -> Option<String> {
    if resource.is_deleting() || resource.generation != life.generation {
        return Some(format!("generation {}, expected {}", resource.generation, life.generation));
    }
    if holds_credential(&serde_json::to_string(&resource.status.adapters).unwrap()) {
        return Some("a credential shows in its status".to_owned());
    }
    let view = View::of(resource);
    let Some(report) = view.report("pullsecret") else { return Some("nothing was reported".to_owned()) };
    let available = report.condition("Available");
    let is_true = available.is_some_and(|available| available["status"] == "True");
    if !is_true || report.generation() != Some(life.generation) {
        return Some(format!("at generation {:?} of {}: {available:?}", report.generation(), life.generation));
    }
    let data = json!(report.data());
    let name = format!("hyperfleet-{}-pull-secret", resource.id);
    let right = json!([name, life.project, MANAGEMENT]);
    let is_right = json!([data["secretName"], data["gcpProject"], data["namespace"]]) == right
        && data["secretVersion"].is_number();
    (!is_right).then(|| format!("its data is {data}"))
}

/// Returns the difference between the applied Kubernetes Secret and the expected one.
fn mishandled(life: &Life, secret: &Secret) -> Option<String> {
    let content = secret.data.as_ref().and_then(|data| data.get(".dockerconfigjson"));
    let held = content.and_then(|ByteString(bytes)| serde_json::from_slice::<Value>(bytes).ok());
    if held.as_ref() != Some(&life.content) {
        return Some("its Secret in Kubernetes holds something else".to_owned());
    }
    let metadata = serde_json::to_string(&secret.metadata).unwrap();
    if holds_credential(&metadata) {
        return Some("a credential shows in its Secret's metadata".to_owned());
    }
    let annotations = secret.metadata.annotations.clone().unwrap_or_default();
    let written = annotations.get("hyperfleet.io/generation").cloned().unwrap_or_default();
    (written != life.generation.to_string())
        .then(|| format!("its Secret in Kubernetes is of generation {written}, expected {}", life.generation))
}
