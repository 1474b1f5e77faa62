//! The lives of the clusters: created, made ready, rotated, damaged, deleted, some created again.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use daemon::retry::Budget;
use hyperfleet_client::{
    Client, Generation, NewCondition, NewReport, NewResource, Patch, Reported, Resource, Settings, Status,
};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch as KubePatch, PatchParams};
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::dice::Dice;
use super::world::{MANAGEMENT, World};

/// The beginning of every credential's user and password. Its base64 is that of every credential's.
pub(crate) const CREDENTIAL: &str = "user:Hunter2Chaos";
/// Those that come before the pull secret.
const OTHERS: [&str; 3] = ["validation", "dns", "placement"];
const PROJECTS: u64 = 4;

/// The expected final state.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) generation: Generation,
    pub(crate) project: String,
    pub(crate) content: Value,
}

/// By the clusters' ids; `None` for those that must be gone.
pub(crate) struct Lives(pub(crate) BTreeMap<String, Option<Life>>);

pub(crate) struct Fleet {
    client: Client,
    outputs: Api<Secret>,
    span: Duration,
}

impl Fleet {
    pub(crate) async fn new(world: &World, span: Duration) -> Self {
        Self { client: client(world), outputs: Api::namespaced(world.kube().await, MANAGEMENT), span }
    }

    /// A cluster's whole life, within the span; what it does is done however often it takes.
    pub(crate) async fn live(&self, number: u64, mut dice: Dice) -> (String, Option<Life>) {
        let id = format!("cls-{number:04}");
        sleep(dice.time(self.span / 2)).await;
        let mut life = self.create(&id, &mut dice).await;
        for _ in 0..dice.pick(&[5, 4, 2, 1]) {
            sleep(dice.time(self.span / 6)).await;
            match dice.pick(&[5, 3, 1]) {
                0 => life = self.rotate(&id, life, &mut dice).await,
                1 => self.damage(&id, &mut dice).await,
                _ => {
                    self.delete(&id).await;
                    life = self.create(&id, &mut dice).await;
                }
            }
        }
        if dice.percent(25) {
            sleep(dice.time(self.span / 10)).await;
            self.delete(&id).await;
            return (id, None);
        }
        (id, Some(life))
    }

    async fn create(&self, id: &str, dice: &mut Dice) -> Life {
        let project = format!("chaos-project-{}", dice.below(PROJECTS));
        let content = pull_secret(id, dice);
        let new = NewResource {
            id: Some(id.to_owned()),
            kind: "Cluster".to_owned(),
            name: id.to_owned(),
            spec: spec(&project, &content),
            labels: BTreeMap::new(),
            references: BTreeMap::new(),
        };
        let created = insist(async || match self.get(id).await? {
            // An answer that was lost.
            Some(found) => Some(found),
            None => self.client.within(&budget()).create("clusters", &new).await.ok(),
        });
        let life = Life { generation: created.await.generation, project, content };
        self.make_ready(id, life.generation, dice).await;
        life
    }

    async fn rotate(&self, id: &str, life: Life, dice: &mut Dice) -> Life {
        let content = pull_secret(id, dice);
        let patch = Patch { spec: Some(spec(&life.project, &content)), ..Patch::default() };
        let before = life.generation;
        let rotated = insist(async || {
            let found = self.get(id).await?.unwrap();
            if found.generation > before {
                return Some(found);
            }
            self.client.within(&budget()).patch("clusters", id, &patch, Some(before)).await.ok()
        });
        let life = Life { generation: rotated.await.generation, content, ..life };
        self.make_ready(id, life.generation, dice).await;
        life
    }

    /// Those that come before the pull secret say, in any order, that they are done.
    async fn make_ready(&self, id: &str, generation: Generation, dice: &mut Dice) {
        let first = dice.below(3);
        for place in 0..3 {
            sleep(dice.time(Duration::from_secs(1))).await;
            let adapter = OTHERS[usize::try_from((first + place) % 3).unwrap()];
            self.report(id, adapter, generation, false).await;
        }
    }

    /// Deletes or changes the applied Kubernetes Secret behind the service's back, if it exists.
    async fn damage(&self, id: &str, dice: &mut Dice) {
        let name = format!("{id}-pull-secret");
        let takes_away = dice.percent(70);
        insist(async || {
            let done = if takes_away {
                self.outputs.delete(&name, &DeleteParams::default()).await.map(drop)
            } else {
                let other = STANDARD.encode(r#"{"auths":{"other.example.com":{"auth":"dTpw"}}}"#);
                let patch = json!({"data": {".dockerconfigjson": other}});
                self.outputs.patch(&name, &PatchParams::default(), &KubePatch::Merge(&patch)).await.map(drop)
            };
            match done {
                Err(kube::Error::Api(status)) if status.code == 404 => Some(()),
                other => other.ok(),
            }
        })
        .await;
    }

    /// Deletes it, and returns when it is gone.
    async fn delete(&self, id: &str) {
        let generation = insist(async || match self.get(id).await? {
            None => Some(Generation::NONE),
            Some(found) if found.is_deleting() => Some(found.generation),
            Some(_) => {
                drop(self.client.within(&budget()).delete("clusters", id).await);
                None
            }
        });
        let generation = generation.await;
        for adapter in OTHERS {
            self.report(id, adapter, generation, true).await;
        }
        insist(async || self.get(id).await?.is_none().then_some(())).await;
    }

    /// The outer `None` is an answer that did not come.
    async fn get(&self, id: &str) -> Option<Option<Resource>> {
        self.client.within(&budget()).get("clusters", id).await.ok()
    }

    async fn report(&self, id: &str, adapter: &str, generation: Generation, is_final: bool) {
        let status = if is_final { Status::False } else { Status::True };
        let mut conditions = vec![("Available", status), ("Applied", status), ("Health", Status::True)];
        if is_final {
            conditions.push(("Finalized", Status::True));
        }
        let condition = |(kind, status): (&str, Status)| NewCondition {
            kind: kind.to_owned(),
            status,
            reason: None,
            message: None,
            last_transition_time: None,
        };
        let data = if adapter == "placement" { json!({"namespace": MANAGEMENT}) } else { json!({}) };
        let report = NewReport {
            adapter: adapter.to_owned(),
            observed_generation: generation,
            conditions: conditions.into_iter().map(condition).collect(),
            data: data.as_object().cloned().unwrap(),
            observed_time: None,
            metadata: None,
        };
        insist(async || {
            let reported = self.client.within(&budget()).report("clusters", id, &report).await.ok()?;
            // What is discarded was known already: an answer that was lost.
            matches!(reported, Reported::Stored(_) | Reported::Discarded | Reported::Gone).then_some(())
        })
        .await;
    }
}

pub(crate) fn client(world: &World) -> Client {
    Client::new(Settings::new(world.api_url().parse().unwrap())).unwrap()
}

pub(crate) fn budget() -> Budget {
    Budget::new(Duration::from_secs(10), CancellationToken::new())
}

/// Retries until there is an answer: the part may be down.
async fn insist<T>(mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    loop {
        if let Some(done) = attempt().await {
            return done;
        }
        sleep(Duration::from_millis(300)).await;
    }
}

/// A pull secret that no other cluster has, and no other revision of this one.
fn pull_secret(id: &str, dice: &mut Dice) -> Value {
    let auth = STANDARD.encode(format!("{CREDENTIAL}-{id}-{:x}", dice.next()));
    json!({"auths": {"registry.example.com": {"auth": auth}}})
}

fn spec(project: &str, content: &Value) -> Map<String, Value> {
    let spec = json!({"provider": "gcp", "gcp": {"projectId": project}, "pullSecret": {"data": content}});
    spec.as_object().cloned().unwrap()
}
