//! Every metric has a value and is in the catalogue; what Jobs choose for themselves is bounded.

use serde_json::{Value, json};

use super::*;
use crate::outcome::Outcome;

fn metrics(by_cluster: bool) -> (Registry, Metrics) {
    let identity = Identity { name: "a", adapter_type: "pullsecret", version: "test", by_cluster };
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry, &identity);
    (registry, metrics)
}

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    text
}

fn end(metrics: &Metrics, cluster: &str, result: &Value) {
    let is_success = result["status"] == "success";
    let outcome = Outcome::of(0, &result.to_string());
    metrics.ended(&Ended { cluster, is_success, attempt: 2, outcome: Some(&outcome) });
}

fn stored() -> Value {
    json!({
        "status": "success",
        "reason": "SecretStored",
        "details": {
            "durationMs": 1_500,
            "versionsAdded": 1,
            "versionsDestroyed": 2,
            "retries": 3,
            "apiCalls": [
                { "operation": "add_secret_version", "statusCode": 200, "count": 1, "ms": [245] },
                { "operation": "add_secret_version", "statusCode": 503, "count": 2, "ms": [20, 30] },
            ],
            "k8sApiCalls": [{ "operation": "create_secret", "statusCode": 201, "count": 1, "ms": [145] }],
        },
    })
}

#[test]
fn every_metric_is_in_the_catalogue() {
    let (registry, metrics) = metrics(true);
    metrics.event_handled(Handled::Success, Duration::ZERO);
    metrics.decided(Reason::ResourceGone);
    metrics.failed(true, "kubernetes");
    metrics.nacked();
    metrics.show_dead_lettered(1);
    metrics.reported("success");
    metrics.show_in_progress(1);
    metrics.show_leading(true);
    metrics.show_quota_used(0.5);
    metrics.store_checked(true, Some(Timestamp::UNIX_EPOCH));
    metrics.store_differs(FindingKind::SecretMissing);
    metrics.show_store_drifted(1);
    metrics.store_called("list", 1);
    metrics.created("cls-1");
    end(&metrics, "cls-1", &stored());
    end(&metrics, "cls-1", &json!({ "status": "failure", "reason": "QuotaExceeded" }));
    let declared = [catalogue::METRICS, catalogue::JOB_METRICS];
    assert_eq!(daemon::metrics::differences(&registry, &declared, "pullsecret"), [""; 0]);
}

#[test]
fn the_specifications_series_are_as_it_writes_them() {
    let (registry, metrics) = metrics(false);
    metrics.event_handled(Handled::Failed, Duration::ZERO);
    metrics.reported("error");
    metrics.created("cls-1");
    end(&metrics, "cls-1", &stored());
    end(&metrics, "cls-2", &json!({ "status": "failure", "reason": "QuotaExceeded" }));
    let text = text(&registry);
    for series in [
        "pullsecret_adapter_events_processed_total{result=\"failure\"} 1",
        "pullsecret_adapter_status_updates_total{result=\"failure\"} 1",
        "pullsecret_adapter_jobs_created_total{} 1",
        "pullsecret_job_total{result=\"success\"} 1",
        "pullsecret_job_total{result=\"failure\"} 1",
        "pullsecret_job_failures_total{reason=\"QuotaExceeded\"} 1",
        "pullsecret_job_duration_seconds_sum{result=\"success\"} 1.5",
        "pullsecret_secret_versions_created_total{} 1",
        "pullsecret_secret_versions_destroyed_total{} 2",
        "pullsecret_gcp_api_calls_total{operation=\"add_secret_version\",status_code=\"200\"} 1",
        "pullsecret_gcp_api_calls_total{operation=\"add_secret_version\",status_code=\"503\"} 2",
        "pullsecret_gcp_api_duration_seconds_count{operation=\"add_secret_version\"} 3",
        "pullsecret_k8s_api_calls_total{operation=\"create_secret\",status_code=\"201\"} 1",
        "pullsecret_k8s_api_duration_seconds_sum{operation=\"create_secret\"} 0.145",
    ] {
        assert!(text.lines().any(|line| line == series), "{series}\n{text}");
    }
    assert!(!text.contains("cls-1"), "{text}");
}

#[test]
fn the_clusters_id_is_a_label_only_on_request() {
    let (registry, metrics) = metrics(true);
    metrics.created("cls-1");
    end(&metrics, "cls-1", &stored());
    let text = text(&registry);
    for series in [
        "pullsecret_adapter_jobs_created_total{cluster_id=\"cls-1\"} 1",
        "pullsecret_job_total{cluster_id=\"cls-1\",result=\"success\"} 1",
        "pullsecret_job_duration_seconds_count{cluster_id=\"cls-1\",result=\"success\"} 1",
        "pullsecret_secret_versions_created_total{cluster_id=\"cls-1\"} 1",
    ] {
        assert!(text.lines().any(|line| line == series), "{series}\n{text}");
    }
}

#[test]
fn names_that_jobs_choose_are_bounded() {
    let (registry, metrics) = metrics(false);
    for number in 0..1_000 {
        let calls =
            json!([{ "operation": format!("o{number}"), "statusCode": number, "count": 4_000_000_000_u32, "ms": [1] }]);
        let details =
            json!({ "apiCalls": calls, "k8sApiCalls": [{ "operation": "a\"b", "statusCode": 1, "count": 1 }] });
        end(&metrics, "cls-1", &json!({ "status": "failure", "reason": format!("R{number}"), "details": details }));
    }
    let text = text(&registry);
    let series = |metric: &str| text.lines().filter(|line| line.starts_with(metric)).count();
    assert_eq!(series("pullsecret_job_failures_total{"), 65);
    assert_eq!(series("pullsecret_gcp_api_calls_total{"), 65);
    assert_eq!(series("pullsecret_gcp_api_duration_seconds_count{"), 65);
    assert!(text.contains("pullsecret_job_failures_total{reason=\"other\"} 936"), "{text}");
    assert!(text.contains("pullsecret_k8s_api_calls_total{operation=\"other\",status_code=\"1\"} 1000"), "{text}");
}
