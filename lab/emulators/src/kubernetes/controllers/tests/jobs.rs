//! Jobs and `DaemonSets` from their beginning to their end.

use std::time::Duration;

use serde_json::json;

use super::super::super::store::Propagation;
use super::{Cluster, Deletion, ended, has, is_alive, job, state};

#[tokio::test]
async fn a_job_succeeds() {
    let cluster = Cluster::with(&[("ok", "echo done")]);
    cluster.create("jobs.batch", job("ok", json!({})));
    let job = cluster.job_ended("store", "Complete").await;
    assert!(has(&job, "SuccessCriteriaMet"));
    assert_eq!(job["status"]["succeeded"], 1);
    assert_eq!(job["status"]["failed"], json!(null));
    assert!(job["status"]["completionTime"].is_string());
    let pod = cluster.pods().remove(0);
    assert_eq!(pod["status"]["phase"], "Succeeded");
    assert_eq!(state(&pod)["terminated"]["reason"], "Completed");
    assert_eq!(pod["spec"]["nodeName"], "emulator");
    assert_eq!(cluster.log(pod["metadata"]["name"].as_str().unwrap()), "done\n");
    cluster.until("events", || cluster.reasons().contains(&"Completed".to_owned()).then_some(())).await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_transient_failure_is_tried_again_after_the_back_off() {
    let cluster = Cluster::with(&[("flaky", "exit 75")]);
    cluster.create("jobs.batch", job("flaky", json!({ "backoffLimit": 1 })));
    let failed_once = || cluster.get("jobs.batch", "store").filter(|job| job["status"]["failed"] == 1);
    cluster.until("jobs.batch", failed_once).await;
    assert_eq!(cluster.pods().len(), 1);
    cluster.store.advance_clock(Duration::from_secs(12));
    let job = cluster.job_ended("store", "Failed").await;
    assert_eq!(job["status"]["failed"], 2);
    let reasons: Vec<_> =
        job["status"]["conditions"].as_array().unwrap().iter().map(|it| it["reason"].clone()).collect();
    assert_eq!(reasons, ["BackoffLimitExceeded", "BackoffLimitExceeded"]);
    cluster.stop().await;
}

#[tokio::test]
async fn a_permanent_failure_ends_the_job_at_once() {
    let cluster = Cluster::with(&[("bad", "exit 3")]);
    let rule = json!({ "action": "FailJob", "onExitCodes": { "operator": "In", "values": [2, 3, 4, 5] } });
    cluster.create("jobs.batch", job("bad", json!({ "podFailurePolicy": { "rules": [rule] } })));
    let job = cluster.job_ended("store", "Failed").await;
    assert_eq!(job["status"]["failed"], 1);
    assert_eq!(job["status"]["conditions"][0]["reason"], "PodFailurePolicy");
    assert_eq!(cluster.pods().len(), 1);
    cluster.stop().await;
}

#[tokio::test]
async fn a_container_is_restarted_in_place() {
    let cluster = Cluster::with(&[("twice", "cd $STATE; if [ -e once ]; then exit 0; fi; touch once; exit 75")]);
    let spec = json!({
        "restartPolicy": "OnFailure",
        "volumes": [{ "name": "state", "emptyDir": {} }],
        "containers": [{
            "name": "main", "image": "twice", "env": [{ "name": "STATE", "value": "/state" }],
            "volumeMounts": [{ "name": "state", "mountPath": "/state" }],
        }],
    });
    cluster.create("jobs.batch", job("twice", json!({ "template": { "spec": spec } })));
    cluster.job_ended("store", "Complete").await;
    let status = cluster.pods().remove(0)["status"]["containerStatuses"][0].clone();
    assert_eq!(status["restartCount"], 1);
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 75);
    cluster.stop().await;
}

#[tokio::test]
async fn the_deadline_kills_what_does_not_listen() {
    let cluster = Cluster::with(&[("deaf", "trap '' TERM; echo $$; while :; do sleep 1; done")]);
    cluster.create("jobs.batch", job("deaf", json!({ "activeDeadlineSeconds": 100 })));
    let name = cluster.until("pods", || Some(cluster.pods().first()?["metadata"]["name"].as_str()?.to_owned())).await;
    cluster.pod(&name, |pod| state(pod).get("running").is_some()).await;
    cluster.store.advance_clock(Duration::from_secs(101));
    let job = cluster
        .until("jobs.batch", || cluster.get("jobs.batch", "store").filter(|job| has(job, "FailureTarget")))
        .await;
    assert!(!has(&job, "Failed"), "its pod has its grace period first");
    cluster.store.advance_clock(Duration::from_secs(31));
    let job = cluster.job_ended("store", "Failed").await;
    let end = job["status"]["conditions"].as_array().unwrap().iter().find(|it| it["type"] == "Failed").unwrap();
    assert_eq!(end["reason"], "DeadlineExceeded");
    assert_eq!(end["message"], "Job was active longer than specified deadline");
    cluster.stop().await;
}

#[tokio::test]
async fn a_finished_job_goes_when_its_time_has_come() {
    let cluster = Cluster::with(&[("ok", "true")]);
    cluster.create("jobs.batch", job("ok", json!({ "ttlSecondsAfterFinished": 60 })));
    cluster.job_ended("store", "Complete").await;
    cluster.store.advance_clock(Duration::from_secs(61));
    cluster.until("jobs.batch", || cluster.get("jobs.batch", "store").is_none().then_some(())).await;
    cluster.until("pods", || cluster.pods().is_empty().then_some(())).await;
    cluster.stop().await;
}

#[tokio::test]
async fn deleting_a_job_ends_its_process() {
    let cluster = Cluster::with(&[("slow", "echo $$; exec sleep 1000")]);
    cluster.create("jobs.batch", job("slow", json!({})));
    let name = cluster.until("pods", || Some(cluster.pods().first()?["metadata"]["name"].as_str()?.to_owned())).await;
    cluster.pod(&name, |pod| state(pod).get("running").is_some()).await;
    let pid = wait_for_line(&cluster, &name).await;
    assert!(is_alive(&pid));
    cluster.delete("jobs.batch", "store");
    cluster.until("pods", || cluster.pods().is_empty().then_some(())).await;
    assert!(!is_alive(&pid));
    cluster.stop().await;
}

#[tokio::test]
async fn a_job_can_be_played_by_a_test_that_plays_kubelet() {
    let cluster = Cluster::with(&[]);
    cluster.create("jobs.batch", job("any", json!({})));
    let mut pod = cluster.until("pods", || cluster.pods().pop()).await;
    assert_eq!(pod["spec"]["nodeName"], json!(null));
    pod["status"] = json!({ "phase": "Succeeded" });
    cluster.store.update_status("pods", pod).unwrap();
    cluster.job_ended("store", "Complete").await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_daemon_runs_on_every_node() {
    let cluster = Cluster::with(&[("daemon", "echo $NODE; exec sleep 1000")]);
    for node in ["n1", "n2"] {
        cluster.create("nodes", json!({ "metadata": { "name": node } }));
    }
    let node = json!({ "name": "NODE", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } });
    let container = json!({ "name": "main", "image": "daemon", "env": [node] });
    cluster.create(
        "daemonsets.apps",
        json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "d" }, "spec": {
            "selector": { "matchLabels": { "app": "d" } },
            "template": { "metadata": { "labels": { "app": "d" } }, "spec": { "containers": [container] } },
        } }),
    );
    let ready = |count: u32| {
        let cluster = &cluster;
        let set = move || cluster.get("daemonsets.apps", "d").filter(|set| set["status"]["numberAvailable"] == count);
        cluster.until("daemonsets.apps", set)
    };
    let set = ready(2).await;
    assert_eq!(set["status"]["desiredNumberScheduled"], 2);
    let nodes: Vec<_> = cluster.pods().iter().map(|pod| pod["spec"]["nodeName"].as_str().unwrap().to_owned()).collect();
    assert!(nodes.contains(&"n1".to_owned()) && nodes.contains(&"n2".to_owned()), "{nodes:?}");
    cluster.store.delete("nodes", "", "n2", &Deletion::default()).unwrap();
    ready(1).await;
    cluster.until("pods", || (cluster.pods().len() == 1).then_some(())).await;
    cluster.stop().await;
}

async fn wait_for_line(cluster: &Cluster, pod: &str) -> String {
    let line = async {
        loop {
            if let Some((line, _)) = cluster.log(pod).split_once('\n') {
                return line.to_owned();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::TIMEOUT, line).await.unwrap()
}

#[tokio::test]
async fn stopping_ends_every_process() {
    let cluster = Cluster::with(&[("slow", "echo $$; sleep 1000 & wait")]);
    cluster.create("pods", super::pod("slow", json!({})));
    cluster.pod("p", |pod| state(pod).get("running").is_some()).await;
    let pid = wait_for_line(&cluster, "p").await;
    assert!(!cluster.pods().iter().any(ended));
    cluster.stop().await;
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn what_ran_on_an_emulator_that_is_gone_has_failed() {
    let before = Cluster::with(&[]);
    before.create("jobs.batch", job("ok", json!({ "backoffLimit": 0 })));
    let mut pod = before.until("pods", || before.pods().pop()).await;
    pod["spec"]["nodeName"] = json!("emulator");
    before.store.update("pods", pod.clone()).unwrap();
    let running = json!({ "name": "main", "image": "ok", "state": { "running": {} }, "restartCount": 0 });
    pod["status"] = json!({ "phase": "Running", "containerStatuses": [running] });
    pod["metadata"]["resourceVersion"].take();
    before.store.update_status("pods", pod).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let programs = [("ok".to_owned(), "/bin/true".into())].into();
    let after = Cluster::on(std::sync::Arc::clone(&before.store), programs, folder);
    after.job_ended("store", "Failed").await;
    let pod = after.pods().remove(0);
    assert_eq!(state(&pod)["terminated"]["reason"], "ContainerStatusUnknown");
    assert_eq!(state(&pod)["terminated"]["exitCode"], 137);
    after.stop().await;
    before.stop().await;
}

#[tokio::test]
async fn a_namespace_without_room_is_tried_again_and_reported_once() {
    let cluster = Cluster::with(&[("ok", "true")]);
    let account = json!({ "serviceAccountName": "late", "restartPolicy": "Never", "containers": [{ "name": "main", "image": "ok" }] });
    cluster.create("jobs.batch", job("ok", json!({ "template": { "spec": account } })));
    let refused = || cluster.store.list("events", None).iter().find(|event| event["reason"] == "FailedCreate").cloned();
    cluster.until("events", refused).await;
    cluster.store.advance_clock(Duration::from_secs(2));
    cluster.until("events", || refused().filter(|event| event["count"] == 2)).await;
    cluster.create("serviceaccounts", json!({ "metadata": { "name": "late" } }));
    cluster.store.advance_clock(Duration::from_secs(2));
    cluster.job_ended("store", "Complete").await;
    cluster.stop().await;
}

#[tokio::test]
async fn a_pod_may_outlive_its_job() {
    let cluster = Cluster::with(&[]);
    cluster.create("jobs.batch", job("any", json!({})));
    cluster.until("pods", || cluster.pods().pop()).await;
    let orphan = Deletion { propagation: Propagation::Orphan, ..Deletion::default() };
    cluster.store.delete("jobs.batch", "default", "store", &orphan).unwrap();
    let free = |pod: &serde_json::Value| pod["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
    let pod = cluster.until("pods", || cluster.pods().pop().filter(free)).await;
    assert!(pod["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty), "{pod:#}");
    cluster.stop().await;
}

#[tokio::test]
async fn dropping_everything_ends_every_process() {
    let cluster = Cluster::with(&[("slow", "echo $$; exec sleep 1000")]);
    cluster.create("pods", super::pod("slow", json!({})));
    cluster.pod("p", |pod| state(pod).get("running").is_some()).await;
    let pid = wait_for_line(&cluster, "p").await;
    drop(cluster);
    let gone = async {
        while is_alive(&pid) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::TIMEOUT, gone).await.unwrap();
}

#[tokio::test]
async fn deleting_a_daemon_set_ends_its_processes() {
    let cluster = Cluster::with(&[("daemon", "echo $$; exec sleep 1000")]);
    cluster.create("nodes", json!({ "metadata": { "name": "n1" } }));
    let container = json!({ "name": "main", "image": "daemon" });
    cluster.create(
        "daemonsets.apps",
        json!({ "metadata": { "name": "d" }, "spec": {
            "selector": { "matchLabels": { "app": "d" } },
            "template": { "metadata": { "labels": { "app": "d" } }, "spec": { "containers": [container] } },
        } }),
    );
    let name = cluster.until("pods", || Some(cluster.pods().first()?["metadata"]["name"].as_str()?.to_owned())).await;
    cluster.pod(&name, |pod| state(pod).get("running").is_some()).await;
    let pid = wait_for_line(&cluster, &name).await;
    cluster.delete("daemonsets.apps", "d");
    cluster.until("pods", || cluster.pods().is_empty().then_some(())).await;
    assert!(!is_alive(&pid));
    cluster.stop().await;
}
