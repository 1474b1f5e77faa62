//! Jobs: created once, watched, read. There is no node, so the tests report as the kubelet would.

use std::time::Duration;

use daemon::retry::Transient as _;
use futures_util::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kubernetes::job::{JobEnd, Termination};
use kubernetes::{Cluster, ErrorKind, JobEvent, KubernetesError};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::network::Line;
use crate::rig::{Kind, Rig, TIMEOUT, until};

const NAME: &str = "store";
/// The label by which the Job is watched.
const LABEL: &str = "name";

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

    /// Sets, as the kubelet would, the status of the Pod and of its container.
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

    /// Watches the Job in a task of its own until it ends or is deleted.
    fn watched(&self) -> JoinHandle<Watched> {
        watched(&self.cluster, &self.namespace)
    }

    async fn terminations(&self, container: &str) -> Vec<Termination> {
        self.cluster.terminations(&self.namespace, NAME, container).await.unwrap()
    }
}

/// The result of a watch.
#[derive(Debug, Default)]
struct Watched {
    /// The end of the Job; `None` if it was deleted before.
    end: Option<JobEnd>,
    /// The errors that the watch recovered from.
    errors: Vec<KubernetesError>,
}

fn watched(cluster: &Cluster, namespace: &str) -> JoinHandle<Watched> {
    let mut watch = cluster.watch_jobs(namespace, &format!("{LABEL}={NAME}"), LABEL);
    tokio::spawn(async move {
        let mut watched = Watched::default();
        loop {
            match watch.next().await.unwrap() {
                Ok(JobEvent::Applied(job)) if job.end.is_none() => {}
                Ok(JobEvent::Applied(job)) => return Watched { end: job.end.clone(), ..watched },
                Ok(JobEvent::Deleted(_)) => return watched,
                Err(error) => watched.errors.push(error),
            }
        }
    })
}

fn job(pods: usize) -> Job {
    let container = json!({"name": "main", "image": "none"});
    // A real server mounts a token that it may not have made yet.
    let pod = json!({"restartPolicy": "Never", "automountServiceAccountToken": false, "containers": [container]});
    let spec = json!({"backoffLimit": 0, "parallelism": pods, "completions": pods, "template": {"spec": pod}});
    serde_json::from_value(json!({"metadata": {"name": NAME, "labels": {LABEL: NAME}}, "spec": spec})).unwrap()
}

fn terminated(exit_code: i32, message: &str, second: usize) -> Value {
    let time = format!("2026-01-01T00:00:{second:02}Z");
    json!({"exitCode": exit_code, "reason": "Completed", "message": message, "startedAt": time, "finishedAt": time})
}

/// Time after which a watch has started. Too short a time hides a fault, it makes none.
async fn a_while() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}

async fn joined(watched: JoinHandle<Watched>) -> Watched {
    tokio::time::timeout(TIMEOUT, watched).await.unwrap().unwrap()
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
async fn its_completion_is_an_event(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let pods = rig.started(1).await;
    let watch = rig.watched();
    a_while().await;
    assert!(!watch.is_finished());
    rig.report(&pods[0], "Succeeded", json!({"state": {"terminated": terminated(0, "{}", 1)}})).await;
    assert_eq!(joined(watch).await.end, Some(JobEnd::Complete));
    assert_eq!(joined(rig.watched()).await.end, Some(JobEnd::Complete), "one that ended before the watch began");
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
    let watch = rig.watched();
    rig.report(&pods[0], "Failed", json!({"state": {"terminated": terminated(3, "no such project", 1)}})).await;
    let Some(JobEnd::Failed { reason, message }) = joined(watch).await.end else { panic!("it has not failed") };
    assert_eq!(reason, "BackoffLimitExceeded");
    assert!(message.contains("backoff limit"), "{message}");
    let expected = Termination { pod: pods[0].clone(), exit_code: 3, message: "no such project".to_owned() };
    assert_eq!(rig.terminations("main").await, [expected]);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn its_deletion_is_an_event(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    rig.started(1).await;
    let watch = rig.watched();
    a_while().await;
    assert!(!watch.is_finished());
    drop(rig.api::<Job>().delete(NAME, &DeleteParams::background()).await.unwrap());
    assert_eq!(joined(watch).await.end, None);
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_recovers_from_a_broken_connection(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let pods = rig.started(1).await;
    let line = Line::to(&rig.address).await;
    let watch = watched(&rig.through(&line.address).await, &rig.namespace);
    a_while().await;
    line.cut();
    rig.report(&pods[0], "Succeeded", json!({"state": {"terminated": terminated(0, "", 1)}})).await;
    let watched = joined(watch).await;
    assert_eq!(watched.end, Some(JobEnd::Complete));
    assert!(watched.errors.iter().all(KubernetesError::is_transient), "{watched:?}");
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
async fn a_watch_recovers_from_every_fault(#[case] fault: &str) {
    let rig = Rig::new(Kind::Emulator).await.unwrap();
    let pods = rig.started(1).await;
    rig.emulator().inject(fault.parse().unwrap());
    let watch = rig.watched();
    a_while().await;
    drop(rig.merge::<Job>(NAME, json!({"metadata": {"labels": {"a": "b"}}})).await);
    a_while().await;
    rig.report(&pods[0], "Succeeded", json!({"state": {"terminated": terminated(0, "", 1)}})).await;
    let watched = joined(watch).await;
    assert_eq!(watched.end, Some(JobEnd::Complete));
    assert!(watched.errors.iter().all(KubernetesError::is_transient), "{watched:?}");
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
