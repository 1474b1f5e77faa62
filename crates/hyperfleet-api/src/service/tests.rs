//! Tests of mapped conditions under concurrency: the tests carry out the evaluations themselves, and write meanwhile.

use fleet_model::Generation;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

use super::*;
use crate::decide::body;
use crate::decide::change::PullSecretRights;
use crate::decide::report::{self, DiscardReason};
use crate::entity::{ConditionMapping, MappingExpression, MappingOutput, OnParentDelete};
use crate::live::Live;
use crate::mapping::Task;
use crate::tenancy::{Reach, Tenancy};
use database::{PoolSettings, Source};

/// A service whose evaluations wait for the test.
struct Rig {
    service: Service,
    tasks: Receiver<Task>,
    _folder: TempDir,
}

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

impl Rig {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pool = PoolSettings {
            max_connections: 4,
            acquire_timeout: Duration::from_secs(10),
            max_lifetime: Duration::from_mins(1),
            idle_timeout: Duration::from_mins(1),
        };
        let store = Store::open(&Source::Sqlite { path: folder.path().join("test.db") }, pool).unwrap();
        store.migrate(Duration::from_secs(10), NOW).await.unwrap();
        let (evaluator, tasks) = Evaluator::without_threads(mappers(&registry()).unwrap());
        let parts = Parts {
            store,
            registry: registry(),
            evaluator,
            schemas: SpecSchemas::default(),
            keyring: Live::default(),
            creations: Group::default(),
            reports: Group::default(),
        };
        Self { service: Service { parts: Arc::new(parts) }, tasks, _folder: folder }
    }

    /// Creates a cluster and carries out its evaluation.
    async fn cluster(&mut self) -> Resource {
        let creating = self.create("Cluster", "one", None);
        self.carry_out().await;
        creating.await.unwrap().unwrap()
    }

    fn create(
        &self,
        kind: &'static str,
        name: &'static str,
        owner: Option<&str>,
    ) -> JoinHandle<Result<Resource, Failure>> {
        let (service, owner) = (self.service.clone(), owner.map(str::to_owned));
        let body = body::creation(object(&json!({ "kind": kind, "name": name, "spec": {} }))).unwrap();
        tokio::spawn(async move {
            let descriptor = service.registry().kind(kind).unwrap();
            service.create(descriptor, owner.as_deref(), body, &request()).await
        })
    }

    fn report(&self, id: &str, adapter: &str) -> JoinHandle<Result<Reported, Failure>> {
        let condition = |kind: &str| json!({ "type": kind, "status": "True" });
        let conditions = ["Available", "Applied", "Health"].map(condition);
        let body = json!({ "adapter": adapter, "observed_generation": 1, "conditions": conditions });
        let (service, id, new) = (self.service.clone(), id.to_owned(), report::parse(object(&body)).unwrap());
        tokio::spawn(async move { service.report(&address(&id), new, &request()).await })
    }

    /// Waits for the next evaluation without carrying it out.
    async fn next(&mut self) -> Task {
        self.tasks.recv().await.unwrap()
    }

    async fn carry_out(&mut self) {
        self.next().await.carry_out_here();
    }

    /// Changes a stored resource as another server would.
    async fn change(&self, id: &str, change: impl FnOnce(&mut Resource)) {
        let mut write = self.service.store().write().await.unwrap();
        let before = write.lock(id, Lock::Change, &Reach::Unlimited).await.unwrap().unwrap();
        let mut after = before.clone();
        change(&mut after.resource);
        write.update(&before, after);
        write.commit().await.unwrap();
    }

    /// Returns the message of the mapped condition as it is stored.
    async fn message(&self, id: &str) -> String {
        let resource = self.service.get(&address(id), &Reach::Unlimited).await.unwrap();
        resource.condition("Mapped").and_then(|condition| condition.message.clone()).unwrap_or_default()
    }
}

/// Clusters and node pools have a condition whose message shows the generation and the number of reports; channels have
/// none.
fn registry() -> Registry {
    let expression = |source: &str| MappingExpression { expression: source.to_owned() };
    let mapping = ConditionMapping {
        kind: "Mapped".to_owned(),
        when: expression("true"),
        output: MappingOutput {
            status: expression("true"),
            reason: expression("''"),
            message: expression("string(resource.generation) + ' ' + string(size(statuses))"),
        },
    };
    let descriptor = |kind: &str, plural: &str| Descriptor {
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        ..Default::default()
    };
    let cluster = Descriptor { conditions: vec![mapping.clone()], ..descriptor("Cluster", "clusters") };
    let node_pool = Descriptor {
        parent_kind: Some("Cluster".to_owned()),
        on_parent_delete: OnParentDelete::Cascade,
        required_adapters: vec!["validation".to_owned()],
        conditions: vec![mapping],
        ..descriptor("NodePool", "nodepools")
    };
    Registry::new(vec![cluster, node_pool, descriptor("Channel", "channels")]).unwrap()
}

fn object(json: &Value) -> Map<String, Value> {
    json.as_object().unwrap().clone()
}

fn address(id: &str) -> Address<'_> {
    Address { descriptor: None, owner_id: None, id }
}

fn request() -> RequestInfo {
    let pull_secrets = PullSecretRights { reads: true, chooses_destination: true };
    RequestInfo {
        caller: "test".to_owned(),
        tenancy: Tenancy::new(),
        reach: Reach::Unlimited,
        time: NOW,
        pull_secrets,
        trace: None,
    }
}

/// SQLite has a single writer: another write succeeds only if the waiting one holds no transaction.
#[tokio::test]
async fn no_lock_is_held_while_conditions_are_evaluated() {
    let mut rig = Rig::new().await;
    let cluster = rig.cluster().await;

    let reporting = rig.report(&cluster.id, "dns");
    let waiting = rig.next().await;
    rig.create("Channel", "meanwhile", None).await.unwrap().unwrap();
    waiting.carry_out_here();
    assert!(matches!(reporting.await.unwrap(), Ok(Reported::Stored { first: true, .. })));
    assert_eq!(rig.message(&cluster.id).await, "1 1");

    let creating = rig.create("Cluster", "two", None);
    let waiting = rig.next().await;
    rig.create("Channel", "again", None).await.unwrap().unwrap();
    waiting.carry_out_here();
    assert_eq!(rig.message(&creating.await.unwrap().unwrap().id).await, "1 0");
}

/// A report whose evaluation was overtaken by another report is evaluated with both.
#[tokio::test]
async fn another_report_meanwhile_is_evaluated_again() {
    let mut rig = Rig::new().await;
    let cluster = rig.cluster().await;
    let first = rig.report(&cluster.id, "dns");
    let first_task = rig.next().await;
    let second = rig.report(&cluster.id, "validation");
    rig.carry_out().await;
    second.await.unwrap().unwrap();
    assert_eq!(rig.message(&cluster.id).await, "1 1");

    first_task.carry_out_here();
    let again = rig.next().await;
    assert_eq!(again.resource.state.reports.len(), 2);
    again.carry_out_here();
    first.await.unwrap().unwrap();
    assert_eq!(rig.message(&cluster.id).await, "1 2");
}

/// A report whose evaluation was overtaken by a new generation is evaluated with it.
#[tokio::test]
async fn a_new_generation_meanwhile_is_evaluated_again() {
    let mut rig = Rig::new().await;
    let cluster = rig.cluster().await;
    let reporting = rig.report(&cluster.id, "dns");
    let stale = rig.next().await;
    rig.change(&cluster.id, |resource| resource.generation = Generation::from(2)).await;
    stale.carry_out_here();
    let again = rig.next().await;
    assert_eq!(again.resource.generation, Generation::from(2));
    again.carry_out_here();
    reporting.await.unwrap().unwrap();
    assert_eq!(rig.message(&cluster.id).await, "2 1");
}

/// A report that became obsolete during its evaluation is discarded under the lock.
#[tokio::test]
async fn a_report_that_becomes_obsolete_meanwhile_is_discarded() {
    let mut rig = Rig::new().await;
    let cluster = rig.cluster().await;
    let reporting = rig.report(&cluster.id, "dns");
    let stale = rig.next().await;
    let newer = rig.report(&cluster.id, "dns");
    rig.carry_out().await;
    newer.await.unwrap().unwrap();
    rig.change(&cluster.id, |resource| {
        resource.state.reports.values_mut().for_each(|report| report.observed_generation = Generation::from(2));
    })
    .await;
    stale.carry_out_here();
    assert_eq!(reporting.await.unwrap().unwrap(), Reported::Discarded(DiscardReason::StaleGeneration));
    assert_eq!(rig.message(&cluster.id).await, "1 1");
}

/// A resource that changes during every evaluation ends as unavailable, and stale conditions are never stored.
#[tokio::test]
async fn evaluations_of_one_operation_are_bounded() {
    let mut rig = Rig::new().await;
    let cluster = rig.cluster().await;
    let reporting = rig.report(&cluster.id, "dns");
    // One before the transaction, and then as many as the operation may have.
    for generation in 0..=MAX_EVALUATIONS {
        let task = rig.next().await;
        let generation = Generation::from(u32::try_from(generation).unwrap() + 2);
        rig.change(&cluster.id, |resource| resource.generation = generation).await;
        task.carry_out_here();
    }
    let failed = reporting.await.unwrap();
    assert!(matches!(failed, Err(Failure::Unevaluated(_))), "{failed:?}");
    assert_eq!(rig.message(&cluster.id).await, "1 0");
}

/// A deletion evaluates the resource with its new generation and deletion time.
#[tokio::test]
async fn a_deletion_is_evaluated_on_the_marked_resource() {
    let mut rig = Rig::new().await;
    let cluster = rig.cluster().await;
    let (service, id) = (rig.service.clone(), cluster.id.clone());
    let deleting = tokio::spawn(async move { service.delete(&address(&id), &request()).await });
    let task = rig.next().await;
    assert!(task.resource.is_terminating() && task.resource.generation == Generation::from(2));
    task.carry_out_here();
    let deleted = deleting.await.unwrap().unwrap();
    assert_eq!(deleted.condition("Mapped").and_then(|condition| condition.message.as_deref()), Some("2 0"));
}

/// A tree is evaluated at once; afterwards only the resources that changed meanwhile are evaluated again.
#[tokio::test]
async fn a_tree_is_evaluated_again_only_where_it_changed() {
    let mut rig = Rig::new().await;
    let cluster = rig.cluster().await;
    let mut pools = Vec::new();
    for name in ["a", "b"] {
        let creating = rig.create("NodePool", name, Some(&cluster.id));
        rig.carry_out().await;
        pools.push(creating.await.unwrap().unwrap().id);
    }
    let (service, id) = (rig.service.clone(), cluster.id.clone());
    let deleting = tokio::spawn(async move { service.delete(&address(&id), &request()).await });
    rig.carry_out().await;
    rig.carry_out().await;
    let last = rig.next().await;
    rig.change(&pools[0], |resource| resource.generation = Generation::from(7)).await;
    last.carry_out_here();
    let again = rig.next().await;
    assert_eq!((&again.resource.id, again.resource.generation), (&pools[0], Generation::from(8)));
    again.carry_out_here();
    deleting.await.unwrap().unwrap();
    assert_eq!(rig.message(&pools[0]).await, "8 0");
    assert_eq!(rig.message(&pools[1]).await, "2 0");
    assert_eq!(rig.message(&cluster.id).await, "2 0");
}

/// Reports of many adapters at once: the stored condition has counted all of them.
#[tokio::test]
async fn concurrent_reports_all_count() {
    let mut rig = Rig::new().await;
    let cluster = rig.cluster().await;
    let service = Service::new(rig.service.store().clone(), registry(), SpecSchemas::default(), None).unwrap();
    rig.service = service;
    let reporting: Vec<_> = (0..16).map(|number| rig.report(&cluster.id, &format!("adapter-{number}"))).collect();
    for reported in reporting {
        reported.await.unwrap().unwrap();
    }
    assert_eq!(rig.message(&cluster.id).await, "1 16");
}

/// The trace belongs to a generation: it is stored and rendered with it, and no other request replaces it.
#[tokio::test]
async fn a_generation_has_the_trace_of_the_request_that_has_made_it() {
    let rig = Rig::new().await;
    let traced = |digit: &str| {
        let trace = format!("00-{}-{}-01", digit.repeat(32), digit.repeat(16)).parse().ok();
        RequestInfo { trace, ..request() }
    };
    let body = body::creation(object(&json!({ "kind": "Channel", "name": "one", "spec": {} }))).unwrap();
    let descriptor = rig.service.registry().kind("Channel").unwrap();
    let id = rig.service.create(descriptor, None, body, &traced("1")).await.unwrap().id;
    let stored = async || rig.service.get(&address(&id), &Reach::Unlimited).await.unwrap();
    assert_eq!(stored().await.state.trace, traced("1").trace);
    let object_of = |resource: &Resource| serde_json::from_str::<Value>(&crate::render::text(resource)).unwrap();
    let rendered = object_of(&stored().await);
    assert_eq!(rendered["traceparent"], json!(format!("00-{}-{}-01", "1".repeat(32), "1".repeat(16))));
    assert_eq!(crate::render::parse(&rendered).unwrap().state.trace, traced("1").trace);
    let patch = |spec: &Value| body::patch(object(&json!({ "spec": spec }))).unwrap();
    let unchanged = patch(&json!({}));
    rig.service.patch(&address(&id), unchanged, None, &traced("2")).await.unwrap();
    assert_eq!(stored().await.state.trace, traced("1").trace, "a request that changes nothing");
    rig.service.patch(&address(&id), patch(&json!({ "a": 1 })), None, &request()).await.unwrap();
    let untraced = stored().await;
    assert_eq!((untraced.state.trace.clone(), object_of(&untraced).get("traceparent")), (None, None));
    rig.service.patch(&address(&id), patch(&json!({ "a": 2 })), None, &traced("3")).await.unwrap();
    assert_eq!(stored().await.state.trace, traced("3").trace);
    let before = stored().await;
    for changed in [
        crate::decide::deletion::mark_for_deletion(&before, &traced("4")),
        crate::decide::restore::raise(&before, &traced("4")),
        crate::decide::lost::without_pull_secret(&before, &traced("4")),
    ] {
        assert_eq!(changed.state.trace, traced("4").trace);
    }
}
