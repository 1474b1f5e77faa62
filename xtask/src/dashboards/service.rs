//! "Pull Secret Overview" and "Error Tracking".

use super::panel::{Dashboard, Kind, panel};

pub(super) const OVERVIEW: Dashboard = Dashboard {
    name: "pull-secret-overview",
    title: "Pull Secret Overview",
    panels: &[
        panel(
            Kind::Number,
            "Jobs executed in 24 hours",
            "short",
            &[("sum by (result) (increase(pullsecret_job_total[1d]))", "{{result}}")],
        ),
        panel(
            Kind::Lines,
            "Jobs executed",
            "ops",
            &[("sum by (result) (rate(pullsecret_job_total[5m]))", "{{result}}")],
        ),
        panel(
            Kind::Lines,
            "Success rate",
            "percentunit",
            &[(
                "sum(rate(pullsecret_job_total{result=\"success\"}[5m])) / sum(rate(pullsecret_job_total[5m]))",
                "succeeded",
            )],
        ),
        panel(
            Kind::Lines,
            "Average job duration",
            "s",
            &[(
                "sum by (result) (rate(pullsecret_job_duration_seconds_sum[5m])) \
                 / sum by (result) (rate(pullsecret_job_duration_seconds_count[5m]))",
                "{{result}}",
            )],
        ),
        panel(
            Kind::Lines,
            "GCP API call rate",
            "reqps",
            &[("sum by (operation) (rate(pullsecret_gcp_api_calls_total[5m]))", "{{operation}}")],
        ),
        panel(
            Kind::Lines,
            "Kubernetes secret creation rate",
            "ops",
            &[(
                "sum(rate(pullsecret_k8s_api_calls_total{operation=\"create_secret\",status_code=\"201\"}[5m]))",
                "created",
            )],
        ),
        panel(
            Kind::Lines,
            "Secret versions",
            "ops",
            &[
                ("sum(rate(pullsecret_secret_versions_created_total[5m]))", "added"),
                ("sum(rate(pullsecret_secret_versions_destroyed_total[5m]))", "destroyed"),
            ],
        ),
        panel(
            Kind::Lines,
            "Jobs created",
            "ops",
            &[("sum(rate(pullsecret_adapter_jobs_created_total[5m]))", "created")],
        ),
        panel(
            Kind::Lines,
            "Clusters that are not reconciled",
            "short",
            &[
                (
                    "max by (is_delete) (hyperfleet_api_resource_pending_reconciliation{resource_type=\"Cluster\"})",
                    "waiting, being deleted: {{is_delete}}",
                ),
                (
                    "max by (is_delete) (hyperfleet_api_resource_pending_reconciliation_stuck{resource_type=\"Cluster\"})",
                    "stuck, being deleted: {{is_delete}}",
                ),
            ],
        ),
        panel(
            Kind::Lines,
            "Events published, by reason",
            "ops",
            &[("sum by (reason) (rate(hyperfleet_sentinel_events_published_total[5m]))", "{{reason}}")],
        ),
        panel(
            Kind::Lines,
            "Events processed",
            "ops",
            &[("sum by (result) (rate(pullsecret_adapter_events_processed_total[5m]))", "{{result}}")],
        ),
        panel(
            Kind::Lines,
            "Status updates",
            "ops",
            &[("sum by (result) (rate(pullsecret_adapter_status_updates_total[5m]))", "{{result}}")],
        ),
        panel(
            Kind::Lines,
            "Stored pull secrets, by key",
            "short",
            &[("max by (key) (hyperfleet_api_pull_secrets)", "{{key}}")],
        ),
        panel(
            Kind::Lines,
            "Differences in the secret stores",
            "short",
            &[("max by (adapter_name) (hyperfleet_adapter_store_drifted)", "{{adapter_name}}")],
        ),
        panel(
            Kind::Number,
            "Until certificates expire",
            "s",
            &[("min by (certificate) (hyperfleet_certificate_expiry_timestamp_seconds) - time()", "{{certificate}}")],
        ),
    ],
};

pub(super) const ERRORS: Dashboard = Dashboard {
    name: "pull-secret-errors",
    title: "Error Tracking",
    panels: &[
        panel(
            Kind::Bars,
            "Top error types",
            "short",
            &[("topk(10, sum by (reason) (increase(pullsecret_job_failures_total[1h])))", "{{reason}}")],
        ),
        panel(
            Kind::Lines,
            "Failure rate",
            "percentunit",
            &[(
                "sum(rate(pullsecret_job_total{result=\"failure\"}[10m])) / sum(rate(pullsecret_job_total[10m]))",
                "failed",
            )],
        ),
        panel(
            Kind::Bars,
            "Failure rate by cluster",
            "percentunit",
            &[(
                "topk(10, sum by (cluster_id) (increase(pullsecret_job_total{result=\"failure\"}[1h])) \
                 / sum by (cluster_id) (increase(pullsecret_job_total[1h])))",
                "{{cluster_id}}",
            )],
        )
        .with_note(
            "Clusters have series of their own only with spec.limits.clusterIdLabel in the adapter's configuration.",
        ),
        panel(
            Kind::Histogram,
            "Retry attempts histogram",
            "short",
            &[("sum by (le) (increase(pullsecret_job_retries_bucket[1h]))", "{{le}}")],
        )
        .with_note("Runs of the last hour by the number of calls that they repeated."),
        panel(
            Kind::Histogram,
            "Attempts at a generation",
            "short",
            &[("sum by (le) (increase(pullsecret_job_attempts_bucket[1h]))", "{{le}}")],
        )
        .with_note("Jobs of the last hour by the number of the attempt that they were."),
        panel(
            Kind::Lines,
            "GCP API errors",
            "reqps",
            &[(
                "sum by (operation, status_code) (rate(pullsecret_gcp_api_calls_total{status_code!~\"2..|404\"}[5m]))",
                "{{operation}} {{status_code}}",
            )],
        ),
        panel(
            Kind::Lines,
            "Kubernetes API errors",
            "reqps",
            &[(
                "sum by (operation, status_code) (rate(pullsecret_k8s_api_calls_total{status_code!~\"2..|404\"}[5m]))",
                "{{operation}} {{status_code}}",
            )],
        ),
        panel(
            Kind::Lines,
            "Decisions, by reason",
            "ops",
            &[("sum by (reason) (rate(hyperfleet_adapter_decisions_total[5m]))", "{{reason}}")],
        ),
        panel(
            Kind::Lines,
            "The adapter's errors",
            "ops",
            &[(
                "sum by (classification, error_type) (rate(hyperfleet_adapter_errors_total[5m]))",
                "{{classification}} {{error_type}}",
            )],
        ),
        panel(
            Kind::Lines,
            "Events returned and dead-lettered",
            "ops",
            &[
                ("sum(rate(hyperfleet_adapter_nacks_total[5m]))", "returned"),
                ("sum(rate(hyperfleet_adapter_dlq_messages_total[5m]))", "dead-lettered"),
            ],
        ),
        panel(
            Kind::Lines,
            "The Sentinel's errors",
            "ops",
            &[
                ("sum by (error_type) (rate(hyperfleet_sentinel_api_errors_total[5m]))", "API: {{error_type}}"),
                ("sum by (error_type) (rate(hyperfleet_sentinel_broker_errors_total[5m]))", "broker: {{error_type}}"),
            ],
        ),
        panel(
            Kind::Lines,
            "The API's errors",
            "reqps",
            &[
                ("sum by (code) (rate(hyperfleet_api_requests_total{code=~\"[45]..\"}[5m]))", "{{code}}"),
                ("sum(rate(hyperfleet_db_errors_total[5m]))", "database"),
                ("sum by (reason) (rate(hyperfleet_api_reports_discarded_total[5m]))", "discarded report: {{reason}}"),
            ],
        ),
    ],
};
