//! "Performance".

use super::panel::{Dashboard, Kind, panel};

pub(super) const DASHBOARD: Dashboard = Dashboard {
    name: "pull-secret-performance",
    title: "Performance",
    panels: &[
        panel(
            Kind::Lines,
            "Job execution time",
            "s",
            &[
                ("histogram_quantile(0.5, sum by (le) (rate(pullsecret_job_duration_seconds_bucket[5m])))", "p50"),
                ("histogram_quantile(0.95, sum by (le) (rate(pullsecret_job_duration_seconds_bucket[5m])))", "p95"),
                ("histogram_quantile(0.99, sum by (le) (rate(pullsecret_job_duration_seconds_bucket[5m])))", "p99"),
            ],
        ),
        panel(
            Kind::Lines,
            "GCP API latency (p95)",
            "s",
            &[(
                "histogram_quantile(0.95, sum by (le, operation) (rate(pullsecret_gcp_api_duration_seconds_bucket[5m])))",
                "{{operation}}",
            )],
        ),
        panel(
            Kind::Lines,
            "Kubernetes API latency (p95)",
            "s",
            &[(
                "histogram_quantile(0.95, sum by (le, operation) (rate(pullsecret_k8s_api_duration_seconds_bucket[5m])))",
                "{{operation}}",
            )],
        ),
        panel(
            Kind::Lines,
            "From a change to its event (p95)",
            "s",
            &[(
                "histogram_quantile(0.95, sum by (le) (rate(hyperfleet_sentinel_publish_lag_seconds_bucket[5m])))",
                "publish lag",
            )],
        ),
        panel(
            Kind::Lines,
            "Processing of an event (p95)",
            "s",
            &[(
                "histogram_quantile(0.95, sum by (le, adapter_name) \
                 (rate(hyperfleet_adapter_event_processing_duration_seconds_bucket[5m])))",
                "{{adapter_name}}",
            )],
        ),
        panel(
            Kind::Lines,
            "Resources in progress",
            "short",
            &[("sum by (adapter_name) (hyperfleet_adapter_resources_in_progress)", "{{adapter_name}}")],
        ),
        panel(
            Kind::Lines,
            "Quota of writes used",
            "percentunit",
            &[("max by (adapter_name) (hyperfleet_adapter_store_quota_used_ratio)", "busiest project")],
        ),
        panel(
            Kind::Lines,
            "API requests",
            "reqps",
            &[("sum by (method, path) (rate(hyperfleet_api_requests_total[5m]))", "{{method}} {{path}}")],
        ),
        panel(
            Kind::Lines,
            "API latency (p95)",
            "s",
            &[(
                "histogram_quantile(0.95, sum by (le, method, path) (rate(hyperfleet_api_request_duration_seconds_bucket[5m])))",
                "{{method}} {{path}}",
            )],
        ),
        panel(
            Kind::Lines,
            "Database statements (p95)",
            "s",
            &[(
                "histogram_quantile(0.95, sum by (le, operation, table) (rate(hyperfleet_db_query_duration_seconds_bucket[5m])))",
                "{{operation}} {{table}}",
            )],
        ),
        panel(
            Kind::Lines,
            "Database connections",
            "short",
            &[("sum(hyperfleet_db_connections_open)", "open"), ("sum(hyperfleet_db_connections_in_use)", "in use")],
        ),
        panel(
            Kind::Lines,
            "Reading all resources (p95)",
            "s",
            &[(
                "histogram_quantile(0.95, sum by (le, resource_type) (rate(hyperfleet_sentinel_poll_duration_seconds_bucket[15m])))",
                "{{resource_type}}",
            )],
        ),
    ],
};
