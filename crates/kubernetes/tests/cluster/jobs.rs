//! Jobs: created once, waited for, read. There is no node, so the tests play kubelet.

use std::time::Duration;

use daemon::retry::Transient as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kubernetes::job::{JobEnd, Termination};
use kubernetes::{ErrorKind, KubernetesError};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::network::Line;
use crate::rig::{Kind, Rig, TIMEOUT, until};

const NAME: &str = "store";

impl Rig {
    /// Creates a Job of so many pods, and returns them.
    async fn started(&self, pods: usize) -> Vec<String> {
        // Without its ServiceAccount a pod is refused, and made only some seconds later.
        until("the ServiceAccount is created", async || self.api::<ServiceAccount>().get_opt("default").await.unwrap())
            .await;
        assert!(self.cluster.create_job_once(&self.namespace, &job(pods)).await.unwrap().is_some());
        until("the Job is accepted", async || {
            let labelled = ListParams::default().labels(&format!("job-name={NAME}"));
            let found = self.api::<Pod>().list(&labelled).await.unwrap().items;
            let names = || found.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect();
            (found.len() == pods).then(names)
        })
        .await
    }

    /// Plays kubelet: sets the status of the Pod and of its container.
    async fn report(&self, pod: &str, phase: &str, mut container: Value) {
        for (field, value) in [("name", json!("main")), ("image", json!("none")), ("imageID", json!(""))] {
            container[field] = value;
        }
        container["ready"] = json!(false);
        container["restartCount"] = json!(0);
        let status = json!({"status": {"phase": phase, "containerStatuses": [container]}});
        let pods = self.api::<Pod>();
        drop(pods.patch_status(pod, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap());
    }

    async fn ended(&self) -> Result<JobEnd, KubernetesError> {
        tokio::time::timeout(TIMEOUT, self.cluster.job_end(&self.namespace, NAME)).await.unwrap()
    }

    /// Waits for the Job in a task of its own.
    fn waiting(&self) -> JoinHandle<Result<JobEnd, KubernetesError>> {
        let (cluster, namespace) = (self.cluster.clone(), self.namespace.clone());
        tokio::spawn(async move { cluster.job_end(&namespace, NAME).await })
    }

    async fn terminations(&self, container: &str) -> Vec<Termination> {
        self.cluster.terminations(&self.namespace, NAME, container).await.unwrap()
    }
}

fn job(pods: usize) -> Job {
    let container = json!({"name": "main", "image": "none"});
    // A real server mounts a token that it may not have made yet.
    let pod = json!({"restartPolicy": "Never", "automountServiceAccountToken": false, "containers": [container]});
    let spec = json!({"backoffLimit": 0, "parallelism": pods, "completions": pods, "template": {"spec": pod}});
    serde_json::from_value(json!({"metadata": {"name": NAME}, "spec": spec})).unwrap()
}

fn terminated(exit_code: i32, message: &str, second: usize) -> Value {
    let time = format!("2026-01-01T00:00:{second:02}Z");
    json!({"exitCode": exit_code, "reason": "Completed", "message": message, "startedAt": time, "finishedAt": time})
}

/// Time after which a waiting call has started its watch. Too short a time hides a fault, it makes none.
async fn a_while() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}

async fn joined(waiting: JoinHandle<Result<JobEnd, KubernetesError>>) -> Result<JobEnd, KubernetesError> {
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap().unwrap()
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn it_is_created_once(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let cluster = &rig.cluster;
    assert!(cluster.create_job_once(&rig.namespace, &job(1)).await.unwrap().is_some());
    let created = rig.api::<Job>().get(NAME).await.unwrap();
    assert!(cluster.create_job_once(&rig.namespace, &job(2)).await.unwrap().is_none());
    let same = rig.api::<Job>().get(NAME).await.unwrap();
    assert_eq!((same.metadata.uid, same.spec.unwrap().parallelism), (created.metadata.uid, Some(1)));
    let refused = cluster.create_job_once("cluster-nowhere", &job(1)).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::NamespaceMissing, "{refused}");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn its_completion_is_waited_for(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let pods = rig.started(1).await;
    let waiting = rig.waiting();
    a_while().await;
    assert!(!waiting.is_finished());
    rig.report(&pods[0], "Succeeded", json!({"state": {"terminated": terminated(0, "{}", 1)}})).await;
    assert_eq!(joined(waiting).await.unwrap(), JobEnd::Complete);
    assert_eq!(rig.ended().await.unwrap(), JobEnd::Complete);
    let expected = Termination { pod: pods[0].clone(), exit_code: 0, message: "{}".to_owned() };
    assert_eq!(rig.terminations("main").await, [expected]);
    assert!(rig.terminations("other").await.is_empty());
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn its_failure_has_a_reason(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let pods = rig.started(1).await;
    let waiting = rig.waiting();
    rig.report(&pods[0], "Failed", json!({"state": {"terminated": terminated(3, "no such project", 1)}})).await;
    let JobEnd::Failed { reason, message } = joined(waiting).await.unwrap() else { panic!("it has not failed") };
    assert_eq!(reason, "BackoffLimitExceeded");
    assert!(message.contains("backoff limit"), "{message}");
    let expected = Termination { pod: pods[0].clone(), exit_code: 3, message: "no such project".to_owned() };
    assert_eq!(rig.terminations("main").await, [expected]);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn its_deletion_ends_the_wait(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    assert_eq!(rig.ended().await.unwrap(), JobEnd::Gone);
    rig.started(1).await;
    let waiting = rig.waiting();
    a_while().await;
    assert!(!waiting.is_finished());
    drop(rig.api::<Job>().delete(NAME, &DeleteParams::background()).await.unwrap());
    assert_eq!(joined(waiting).await.unwrap(), JobEnd::Gone);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_connection_is_transient_or_recovered(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let pods = rig.started(1).await;
    let line = Line::to(&rig.address).await;
    let (cluster, namespace) = (rig.through(&line.address).await, rig.namespace.clone());
    let again = cluster.clone();
    let waiting = tokio::spawn(async move { cluster.job_end(&namespace, NAME).await });
    a_while().await;
    line.cut();
    rig.report(&pods[0], "Succeeded", json!({"state": {"terminated": terminated(0, "", 1)}})).await;
    match joined(waiting).await {
        Ok(end) => assert_eq!(end, JobEnd::Complete),
        Err(error) => assert!(error.is_transient(), "{error}"),
    }
    assert_eq!(again.job_end(&rig.namespace, NAME).await.unwrap(), JobEnd::Complete);
}

#[rstest]
#[case("watch/jobs:cut")]
#[case("watch/jobs:cut(after=1)")]
#[case("watch/jobs:gone(after=0)")]
#[case("watch/jobs:gone(after=1)")]
#[case("watch/jobs:410")]
#[case("watch/jobs:500")]
#[case("watch/jobs:429(retry-after=1s)")]
#[case("list/jobs:503")]
#[case("list/jobs:cut")]
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_watch_is_transient_or_recovered(#[case] fault: &str) {
    let rig = Rig::new(Kind::Emulator).await.unwrap();
    let pods = rig.started(1).await;
    rig.emulator().inject(fault.parse().unwrap());
    let waiting = rig.waiting();
    a_while().await;
    drop(rig.merge::<Job>(NAME, json!({"metadata": {"labels": {"a": "b"}}})).await);
    a_while().await;
    rig.report(&pods[0], "Succeeded", json!({"state": {"terminated": terminated(0, "", 1)}})).await;
    match joined(waiting).await {
        Ok(end) => assert_eq!(end, JobEnd::Complete),
        Err(error) => assert!(error.is_transient(), "{fault}: {error:?}"),
    }
    assert_eq!(rig.ended().await.unwrap(), JobEnd::Complete);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn terminations_come_last_first(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    assert!(rig.terminations("main").await.is_empty());
    let pods = rig.started(4).await;
    assert!(rig.terminations("main").await.is_empty());
    for (number, second) in [(0, 20), (1, 30), (2, 10)] {
        let ended = terminated(0, &format!("at {second}"), second);
        // A container that was started again has said it in its last state.
        let (phase, container) = match number {
            2 => ("Running", json!({"state": {"running": {}}, "lastState": {"terminated": ended}})),
            _ => ("Succeeded", json!({"state": {"terminated": ended}})),
        };
        rig.report(&pods[number], phase, container).await;
    }
    rig.report(&pods[3], "Running", json!({"state": {"running": {}}})).await;
    let found: Vec<_> = rig.terminations("main").await.into_iter().map(|end| (end.pod, end.message)).collect();
    let expected = [(1, "at 30"), (0, "at 20"), (2, "at 10")];
    assert_eq!(found, expected.map(|(number, message)| (pods[number].clone(), message.to_owned())));
}
