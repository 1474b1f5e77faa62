//! Metrics of an adapter and of its Jobs.

use super::metrics;

/// Labels of every metric of an adapter, except those of its Jobs.
const COMMON: &[&str] = &["component", "version", "adapter_name"];
const BY_STATUS: &[&str] = &["component", "version", "adapter_name", "status"];
const BY_REASON: &[&str] = &["component", "version", "adapter_name", "reason"];
const BY_ERROR: &[&str] = &["component", "version", "adapter_name", "classification", "error_type"];
const BY_KIND: &[&str] = &["component", "version", "adapter_name", "kind"];
const BY_OPERATION: &[&str] = &["component", "version", "adapter_name", "operation"];
/// `cluster_id` is set with `spec.limits.clusterIdLabel` only: one series per cluster.
const BY_CLUSTER: &[&str] = &["cluster_id"];
const BY_RESULT: &[&str] = &["cluster_id", "result"];
const BY_CALL: &[&str] = &["operation", "status_code"];

metrics! {
    /// Metrics of an adapter.
    METRICS:
    /// 1 while the adapter runs.
    UP = Gauge "hyperfleet_adapter_up" by COMMON;
    /// 1, with the version as label.
    BUILD_INFO = Gauge "hyperfleet_adapter_build_info" by COMMON;
    /// Events that were processed: `success`, `skipped` or `failed`.
    EVENTS_PROCESSED = Counter "hyperfleet_adapter_events_processed" by BY_STATUS;
    /// Time from receiving an event to acknowledging or rejecting it.
    EVENT_PROCESSING_DURATION = Histogram "hyperfleet_adapter_event_processing_duration" in Seconds by COMMON;
    /// Decisions about resources, by reason.
    DECISIONS = Counter "hyperfleet_adapter_decisions" by BY_REASON;
    /// Errors, by classification (`transient`, `terminal`) and origin.
    ERRORS = Counter "hyperfleet_adapter_errors" by BY_ERROR;
    /// Events that were nacked, to be delivered again.
    NACKS = Counter "hyperfleet_adapter_nacks" by COMMON;
    /// Messages that were dead-lettered: malformed, or out of attempts.
    DLQ_MESSAGES = Counter "hyperfleet_adapter_dlq_messages" by COMMON;
    /// Status reports: `success`, `discarded`, `gone` or `error`.
    STATUS_REPORTS = Counter "hyperfleet_adapter_status_reports" by BY_STATUS;
    /// Time of the last reconcile pass that has succeeded, in Unix time; until there is one, of the start.
    LAST_SUCCESSFUL_PASS = Gauge "hyperfleet_adapter_last_successful_pass_timestamp" in Seconds by COMMON;
    /// Share of the quota of writes that the busiest project has used in the last minute, from 0.
    STORE_QUOTA_USED = Gauge "hyperfleet_adapter_store_quota_used_ratio" by COMMON;
    /// Resources with a reconcile pass in progress.
    RESOURCES_IN_PROGRESS = Gauge "hyperfleet_adapter_resources_in_progress" by COMMON;
    /// 1 on the replica that reports ended Jobs.
    LEADER = Gauge "hyperfleet_adapter_leader" by COMMON;
    /// Spans of traces that no collector has taken: the queue was full, or the collector has refused them.
    TRACE_SPANS_DROPPED = Counter "hyperfleet_adapter_trace_spans_dropped" by &[];
    /// Checks of the secret stores: `success`, or `failed` if the API or a project could not be listed.
    STORE_CHECKS = Counter "hyperfleet_adapter_store_checks" by BY_STATUS;
    /// Start of the last check of the secret stores that has succeeded, in Unix time; its age is `time()` minus this.
    STORE_LAST_SUCCESS = Gauge "hyperfleet_adapter_store_check_last_success_timestamp" in Seconds by COMMON;
    /// Differences between the secret stores and what was reported, by kind.
    STORE_FINDINGS = Counter "hyperfleet_adapter_store_findings" by BY_KIND;
    /// Differences that no run repairs yet.
    STORE_DRIFTED = Gauge "hyperfleet_adapter_store_drifted" by COMMON;
    /// Calls of checks to secret stores, by operation.
    STORE_CALLS = Counter "hyperfleet_adapter_store_calls" by BY_OPERATION;
}

metrics! {
    /// Metrics that are named by the adapter's type with `_` for `-`, such as `pullsecret_job_total`.
    JOB_METRICS:
    /// Events that were processed: `success`, `skipped` or `failure`.
    JOB_EVENTS = Counter "{adapter}_adapter_events_processed" by &["result"];
    /// Status reports that were sent: `success`, `discarded`, `gone` or `failure`.
    STATUS_UPDATES = Counter "{adapter}_adapter_status_updates" by &["result"];
    /// Jobs that were created.
    JOBS_CREATED = Counter "{adapter}_adapter_jobs_created" by BY_CLUSTER;
    /// Jobs that ended: `success` or `failure`.
    JOBS = Counter "{adapter}_job" by BY_RESULT;
    /// Jobs that failed, by the reason that they reported; `JobFailed` without one.
    JOB_FAILURES = Counter "{adapter}_job_failures" by &["reason"];
    /// Duration of a run, as the Job reported it.
    JOB_DURATION = Histogram "{adapter}_job_duration" in Seconds by BY_RESULT;
    /// The number of the attempt at a generation that a Job was, from 1.
    JOB_ATTEMPTS = Histogram "{adapter}_job_attempts" by &[];
    /// Calls that a run repeated after failures.
    JOB_RETRIES = Histogram "{adapter}_job_retries" by &[];
    /// Secret versions that Jobs added.
    SECRET_VERSIONS_CREATED = Counter "{adapter}_secret_versions_created" by BY_CLUSTER;
    /// Secret versions that Jobs destroyed.
    SECRET_VERSIONS_DESTROYED = Counter "{adapter}_secret_versions_destroyed" by BY_CLUSTER;
    /// Calls of Jobs to Google, by operation and HTTP status: 503 if it could not be reached, 504 without an answer in time.
    GCP_API_CALLS = Counter "{adapter}_gcp_api_calls" by BY_CALL;
    /// Duration of calls of Jobs to Google, by operation.
    GCP_API_DURATION = Histogram "{adapter}_gcp_api_duration" in Seconds by &["operation"];
    /// Calls of Jobs to Kubernetes, by operation and HTTP status: 503 if it could not be reached, 504 without an answer in time.
    K8S_API_CALLS = Counter "{adapter}_k8s_api_calls" by BY_CALL;
    /// Duration of calls of Jobs to Kubernetes, by operation.
    K8S_API_DURATION = Histogram "{adapter}_k8s_api_duration" in Seconds by &["operation"];
}
