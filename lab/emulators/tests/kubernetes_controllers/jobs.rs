//! Jobs whose Pods are processes.

use std::time::Duration;

use serde_json::json;

use crate::client::{Cluster, JOBS, PODS, SECRETS, end, has, job, runs};

#[tokio::test]
async fn succeeds_with_a_secret_and_last_words() {
    let cluster = Cluster::with(&[("store", "echo \"$TOKEN\" > $TERMINATION_LOG_PATH; echo stored")]).await;
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "token": "s3cret" } });
    cluster.create(SECRETS, &secret).await;
    let token = json!({ "name": "TOKEN", "valueFrom": { "secretKeyRef": { "name": "s", "key": "token" } } });
    cluster.create(JOBS, &job("store", &[], &[("env", json!([token]))])).await;
    let job = cluster.job_ended("Complete").await;
    assert_eq!(job["status"]["succeeded"], 1);
    let (_, pods) = cluster.get(&format!("{PODS}?labelSelector=batch.kubernetes.io/job-name=store")).await;
    let pod = &pods["items"][0];
    assert_eq!((&end(pod)["message"], &end(pod)["exitCode"]), (&json!("s3cret\n"), &json!(0)));
    assert_eq!(pod["metadata"]["finalizers"], json!(null));
    let name = pod["metadata"]["name"].as_str().unwrap();
    assert_eq!(cluster.text(&format!("{PODS}/{name}/log")).await, "stored\n");
    cluster.server.shutdown().await;
}

#[tokio::test]
async fn is_tried_again_after_the_back_off_when_it_ends_with_75() {
    let cluster = Cluster::with(&[("store", "exit 75")]).await;
    cluster.create(JOBS, &job("store", &[("backoffLimit", json!(1))], &[])).await;
    cluster.until(JOBS, |_, job| job["status"]["failed"] == 1).await;
    let (_, pods) = cluster.get(PODS).await;
    assert_eq!(pods["items"].as_array().unwrap().len(), 1);
    cluster.server.advance_clock(Duration::from_secs(11));
    let job = cluster.job_ended("Failed").await;
    assert_eq!(job["status"]["failed"], 2);
    let (_, events) = cluster.get("/api/v1/namespaces/default/events").await;
    let reasons: Vec<_> = events["items"].as_array().unwrap().iter().map(|event| &event["reason"]).collect();
    assert!(reasons.contains(&&json!("SuccessfulCreate")), "{reasons:?}");
    cluster.server.shutdown().await;
}

#[tokio::test]
async fn fails_at_once_when_it_ends_with_3() {
    let cluster = Cluster::with(&[("store", "exit 3")]).await;
    let codes = json!({ "containerName": "main", "operator": "In", "values": [2, 3, 4, 5] });
    let policy = json!({ "rules": [{ "action": "FailJob", "onExitCodes": codes }] });
    cluster.create(JOBS, &job("store", &[("podFailurePolicy", policy)], &[])).await;
    let job = cluster.job_ended("Failed").await;
    let failed = job["status"]["conditions"].as_array().unwrap().iter().find(|it| it["type"] == "Failed").unwrap();
    assert_eq!(failed["reason"], "PodFailurePolicy");
    assert!(failed["message"].as_str().unwrap().contains("failed with exit code 3 matching FailJob rule at index 0"));
    cluster.server.shutdown().await;
}

#[tokio::test]
async fn ends_with_its_deadline_and_goes_with_its_time_to_live() {
    let cluster = Cluster::with(&[("store", "exec sleep 1000")]).await;
    let spec = [("activeDeadlineSeconds", json!(300)), ("ttlSecondsAfterFinished", json!(600))];
    cluster.create(JOBS, &job("store", &spec, &[])).await;
    cluster.until(PODS, |_, pod| runs(pod)).await;
    cluster.server.advance_clock(Duration::from_secs(301));
    let ended = cluster.job_ended("Failed").await;
    assert!(has(&ended, "FailureTarget"));
    assert_eq!(ended["status"]["failed"], 1);
    let version = ended["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    cluster.server.advance_clock(Duration::from_secs(601));
    cluster.until_after(JOBS, &version, |event, _| event == "DELETED").await;
    cluster.server.shutdown().await;
}

#[tokio::test]
async fn deleting_it_ends_the_process() {
    let cluster = Cluster::with(&[("store", "echo $$; exec sleep 1000")]).await;
    cluster.create(JOBS, &job("store", &[], &[])).await;
    let pod = cluster.until(PODS, |_, pod| runs(pod)).await;
    let log = format!("{PODS}/{}/log", pod["metadata"]["name"].as_str().unwrap());
    let mut pid = String::new();
    while pid.is_empty() {
        cluster.text(&log).await.trim().clone_into(&mut pid);
    }
    assert!(std::fs::exists(format!("/proc/{pid}")).unwrap());
    let (_, before) = cluster.get(PODS).await;
    cluster.delete(&format!("{JOBS}/store?propagationPolicy=Background")).await;
    let version = before["metadata"]["resourceVersion"].as_str().unwrap();
    let gone = cluster.until_after(PODS, version, |event, _| event == "DELETED").await;
    assert_eq!(end(&gone)["exitCode"], 143);
    assert!(!std::fs::exists(format!("/proc/{pid}")).unwrap());
    cluster.server.shutdown().await;
}
