//! A cluster's pull secret from its first event to a rotation.

use hyperfleet_client::Status;
use message_broker::Event;
use rstest::rstest;
use serde_json::json;

use crate::api::CREDENTIAL;
use crate::environment::Kind;
use crate::node::PodResult;
use crate::world::{World, eventually, is, message};

#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_pull_secret_is_stored_and_rotated(#[case] kind: Kind) {
    let Some(world) = World::new(kind).await else { return };
    let adapter = world.adapter("").await;
    world.api.create("cls-1").await;
    world.publish_event("cls-1").await;
    let report = world.until_reason("cls-1", "PreconditionsNotMet").await;
    assert!(is(&report, "Health", Status::True) && is(&report, "Applied", Status::False));
    assert!(message(&report, "Available").contains("waiting for dns: not reported yet at generation 1"));
    world.node.end_pods_with(PodResult::Never).await;
    world.api.make_ready("cls-1", &world.environment.management).await;
    world.publish_event("cls-1").await;
    let report = world.until_reason("cls-1", "WorkloadInProgress").await;
    assert!(is(&report, "Applied", Status::True));
    eventually(async || world.node.started("cls-1", 1) == 1).await;
    let job = world.environment.job("pullsecret-cls-1-gen1").await.unwrap();
    assert!(!job.to_string().contains(CREDENTIAL));
    let input = world.environment.inputs().get("cluster-cls-1-pullsecret-data").await.unwrap();
    assert_eq!(input.metadata.owner_references.unwrap()[0].uid, job["metadata"]["uid"].as_str().unwrap());
    // No event is published at the end of the Job.
    world.node.end_pods_with(PodResult::Success).await;
    let report = world.until_available("cls-1", 1).await;
    assert_eq!(report.condition("Available").unwrap().reason.as_deref(), Some("SecretStored"));
    assert_eq!((&report.data["secretVersion"], &report.data["gcpProject"]), (&json!(1), &json!("redhat-prod-1")));
    assert!(!report.data.contains_key("apiCalls"));
    assert_eq!(report.metadata.as_ref().unwrap().job_name.as_deref(), Some("pullsecret-cls-1-gen1"));
    eventually(async || world.environment.inputs().get_opt("cluster-cls-1-pullsecret-data").await.unwrap().is_none())
        .await;
    eventually(async || !world.environment.events_of("pullsecret-cls-1-gen1").await.is_empty()).await;
    let events = world.environment.events_of("pullsecret-cls-1-gen1").await;
    let expected = format!("Normal SecretStored {}", message(&report, "Available"));
    assert_eq!(events, [expected]);
    world.api.rotate("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 2).await;
    let output = world.environment.outputs().get("cls-1-pull-secret").await.unwrap();
    assert_eq!(output.metadata.annotations.unwrap()["hyperfleet.io/generation"], "2");
    assert_eq!((world.node.started("cls-1", 1), world.node.started("cls-1", 2)), (1, 1));
    adapter.stop().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_job_follows_the_specification() {
    let world = World::new(Kind::Emulator).await.unwrap();
    world.node.end_pods_with(PodResult::Never).await;
    let adapter = world.adapter("").await;
    let created = world.ready("cls-123").await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut event = Event::new("s", "cluster.create", jiff::Timestamp::now(), json!({"id": "cls-123"}));
    event.extensions.insert("traceparent".to_owned(), trace.to_owned());
    world.publish(event.clone()).await;
    eventually(async || world.environment.job("pullsecret-cls-123-gen1").await.is_some()).await;
    let job = world.environment.job("pullsecret-cls-123-gen1").await.unwrap();
    let spec = &job["spec"]["template"]["spec"];
    let container = &spec["containers"][0];
    assert_eq!(spec["serviceAccountName"], "pullsecret-adapter-job");
    assert_eq!(
        container["resources"],
        json!({"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "500m", "memory": "512Mi"}})
    );
    assert_eq!(
        container["securityContext"],
        json!({"allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 1000,
            "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true})
    );
    assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(
        container["env"],
        json!([
            {"name": "CLUSTER_ID", "value": "cls-123"},
            {"name": "CLUSTER_NAME", "value": "cls-123"},
            {"name": "GENERATION", "value": "1"},
            {"name": "GCP_PROJECT_ID", "value": "redhat-prod-1"},
            {"name": "MANAGEMENT_NAMESPACE", "value": world.environment.management},
            {"name": "PULL_SECRET_FILE", "value": "/var/run/pull-secret/pullsecret"},
            {"name": "INCARNATION", "value": created.created_time.unwrap().to_string()},
            {"name": "TRACEPARENT", "value": trace},
        ])
    );
    let times = ["backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"].map(|name| &job["spec"][name]);
    assert_eq!(times, [3, 1_800, 3_600]);
    assert_eq!(job["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"], json!([2, 3, 4, 5, 6]));
    assert_eq!(job["metadata"]["annotations"]["hyperfleet.io/event-id"], json!(event.id));
    assert_eq!(job["metadata"]["labels"]["hyperfleet.io/adapter"], "pullsecret");
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_events_cause_one_run() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    for _ in 0..50 {
        world.publish_event("cls-1").await;
    }
    world.until_available("cls-1", 1).await;
    // The Job is deleted, as after its time to live.
    let parameters = kube::api::DeleteParams::background();
    world.environment.jobs().delete("pullsecret-cls-1-gen1", &parameters).await.unwrap();
    let report = adapter.count("hyperfleet_adapter_status_reports", "success").await;
    world.publish_event("cls-1").await;
    eventually(async || adapter.count("hyperfleet_adapter_status_reports", "success").await > report).await;
    eventually(async || adapter.count("hyperfleet_adapter_events_processed", "").await >= 51).await;
    assert_eq!(world.node.started("cls-1", 1), 1);
    assert_eq!(adapter.count("pullsecret_adapter_jobs_created", "").await, 1);
    assert_eq!(adapter.count("hyperfleet_adapter_status_reports", "discarded").await, 0);
    let report = world.until_available("cls-1", 1).await;
    assert_eq!(report.data["secretVersion"], 1, "the data is kept");
    adapter.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_reported_and_repeated() {
    let world = World::new(Kind::Emulator).await.unwrap();
    world.node.end_pods_with(PodResult::Failure(4, "PermissionDenied")).await;
    let adapter = world.adapter("retry: {transientAfter: 1s, permanentAfter: 1s}").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    let report = world.until_reason("cls-1", "PermissionDenied").await;
    assert!(is(&report, "Applied", Status::True) && is(&report, "Health", Status::True));
    assert!(message(&report, "Available").starts_with("a scripted failure; retrying with another Job in"));
    world.node.end_pods_with(PodResult::Success).await;
    world.until_available("cls-1", 1).await;
    assert!(world.node.started("cls-1", 1) >= 2);
    adapter.stop().await;
}

/// Three more Pods would fail as well.
#[rstest]
#[case(Kind::Emulator)]
#[case(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn an_exit_code_that_no_retry_cures_ends_the_job(#[case] kind: Kind) {
    let Some(world) = World::new(kind).await else { return };
    world.node.end_pods_with(PodResult::Failure(4, "PermissionDenied")).await;
    let adapter = world.adapter("").await;
    world.ready("cls-1").await;
    world.publish_event("cls-1").await;
    world.until_reason("cls-1", "PermissionDenied").await;
    let job = world.environment.job("pullsecret-cls-1-gen1").await.unwrap();
    let conditions = job["status"]["conditions"].as_array().unwrap();
    let failed = conditions.iter().find(|condition| condition["type"] == "Failed").unwrap();
    eventually(async || !world.environment.events_of("pullsecret-cls-1-gen1").await.is_empty()).await;
    let events = world.environment.events_of("pullsecret-cls-1-gen1").await;
    assert!(events[0].starts_with("Warning PermissionDenied a scripted failure; retrying"), "{events:?}");
    assert_eq!((&failed["reason"], &job["status"]["failed"]), (&json!("PodFailurePolicy"), &json!(1)), "{job}");
    adapter.stop().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_referenced_secret_is_used_in_every_revision() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter(&format!("input: {{secretNamespaces: [{}]}}", world.environment.namespace)).await;
    let reference =
        json!({"secretRef": {"namespace": world.environment.namespace, "name": "theirs", "key": "config.json"}});
    world.api.create_of("cls-1", &reference).await;
    world.api.make_ready("cls-1", &world.environment.management).await;
    world.publish_event("cls-1").await;
    let report = world.until_reason("cls-1", "PreconditionsNotMet").await;
    assert!(message(&report, "Available").contains("/theirs: it does not exist"), "{}", message(&report, "Available"));
    let secret = |content: &str| {
        serde_json::from_value(json!({
            "metadata": {"name": "theirs", "annotations": {"hyperfleet.io/allowed-clusters": "cls-0, cls-1"}},
            "stringData": {"config.json": content},
        }))
        .unwrap()
    };
    let inputs = world.environment.inputs();
    let one = crate::api::pull_secret("one").to_string();
    inputs.create(&kube::api::PostParams::default(), &secret(&one)).await.unwrap();
    world.publish_event("cls-1").await;
    world.until_available("cls-1", 1).await;
    let before = world.until_available("cls-1", 1).await.data["source"].clone();
    inputs
        .replace("theirs", &kube::api::PostParams::default(), &secret(&crate::api::pull_secret("two").to_string()))
        .await
        .unwrap();
    world.publish_event("cls-1").await;
    world.until("cls-1", |report| is(report, "Available", Status::True) && report.data["source"] != before).await;
    let output = world.environment.outputs().get("cls-1-pull-secret").await.unwrap();
    let content = String::from_utf8(output.data.unwrap()[".dockerconfigjson"].0.clone()).unwrap();
    assert_eq!(content, crate::api::pull_secret("two").to_string());
    adapter.stop().await;
}

/// A cluster's author may name any Secret; only one that consents is read, in an allowed namespace, and no run's own input.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_does_not_consent_is_not_used() {
    let world = World::new(Kind::Emulator).await.unwrap();
    let adapter = world.adapter(&format!("input: {{secretNamespaces: [{}]}}", world.environment.namespace)).await;
    let (inputs, namespace) = (world.environment.inputs(), &world.environment.namespace);
    let content = crate::api::pull_secret("one").to_string();
    let create = async |name: &str, metadata: serde_json::Value| {
        let mut secret = json!({"metadata": metadata, "stringData": {".dockerconfigjson": content}});
        secret["metadata"]["name"] = json!(name);
        inputs.create(&kube::api::PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    };
    let allowed = |clusters: &str| json!({"hyperfleet.io/allowed-clusters": clusters});
    create("silent", json!({})).await;
    create("of-another", json!({"annotations": allowed("cls-10,xcls-1")})).await;
    let of_a_run = json!({"annotations": allowed("*"), "labels": {"hyperfleet.io/adapter": "pullsecret"}});
    create("cluster-victim-pullsecret-data", of_a_run).await;
    create("shared", json!({"annotations": allowed("*")})).await;
    let refused = [
        (json!({"namespace": namespace, "name": "silent"}), "it does not allow this cluster"),
        (json!({"namespace": namespace, "name": "of-another"}), "it does not allow this cluster"),
        (json!({"namespace": namespace, "name": "cluster-victim-pullsecret-data"}), "input of an adapter's own run"),
        (json!({"name": "shared"}), "must have a namespace and a name"),
        (json!({"namespace": "kube-system", "name": "shared"}), "namespace kube-system is not in the adapter's"),
    ];
    for (index, (reference, why)) in refused.iter().enumerate() {
        let id = format!("cls-{}", index + 1);
        world.api.create_of(&id, &json!({"secretRef": reference})).await;
        world.api.make_ready(&id, &world.environment.management).await;
        world.publish_event(&id).await;
        let report = world.until_reason(&id, "PreconditionsNotMet").await;
        assert!(message(&report, "Available").contains(why), "{}", message(&report, "Available"));
        assert_eq!(world.node.started(&id, 1), 0);
    }
    world.api.create_of("cls-9", &json!({"secretRef": {"namespace": namespace, "name": "shared"}})).await;
    world.api.make_ready("cls-9", &world.environment.management).await;
    world.publish_event("cls-9").await;
    world.until_available("cls-9", 1).await;
    adapter.stop().await;
}
