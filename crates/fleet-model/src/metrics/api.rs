//! Metrics of the HyperFleet API.

use super::metrics;

const REQUEST: &[&str] = &["component", "version", "method", "path", "code"];
const RECONCILIATION: &[&str] = &["resource_type", "is_delete"];

metrics! {
    /// Metrics of the API.
    METRICS:
    /// Version of the running build.
    BUILD = Info "hyperfleet_api_build" by &["version"];
    /// Requests that were answered.
    REQUESTS = Counter "hyperfleet_api_requests" by REQUEST;
    /// Duration of requests.
    REQUEST_DURATION = Histogram "hyperfleet_api_request_duration" in Seconds by REQUEST;
    /// New generations and deletions that adapters have to reconcile.
    RECONCILIATION_STARTED = Counter "hyperfleet_api_reconciliation_started" by RECONCILIATION;
    /// Reports that were not stored, by reason.
    REPORTS_DISCARDED = Counter "hyperfleet_api_reports_discarded" by &["reason"];
    /// Resources that are not reconciled.
    PENDING_RECONCILIATION = Gauge "hyperfleet_api_resource_pending_reconciliation" by RECONCILIATION;
    /// Resources that have not been reconciled for longer than the threshold.
    PENDING_RECONCILIATION_STUCK = Gauge "hyperfleet_api_resource_pending_reconciliation_stuck" by RECONCILIATION;
    /// Longest time for which a stuck resource has not been reconciled.
    PENDING_RECONCILIATION_STUCK_DURATION =
        Gauge "hyperfleet_api_resource_pending_reconciliation_stuck_duration" in Seconds by RECONCILIATION;
    /// Duration of database statements.
    DB_QUERY_DURATION = Histogram "hyperfleet_db_query_duration" in Seconds by &["operation", "table"];
    /// Database statements that failed.
    DB_ERRORS = Counter "hyperfleet_db_errors" by &[];
    /// Open connections to the database.
    DB_CONNECTIONS_OPEN = Gauge "hyperfleet_db_connections_open" by &[];
    /// Connections to the database that are in use.
    DB_CONNECTIONS_IN_USE = Gauge "hyperfleet_db_connections_in_use" by &[];
    /// Stored pull secrets by the key that encrypts them; a key without any can be withdrawn.
    PULL_SECRETS = Gauge "hyperfleet_api_pull_secrets" by &["key"];
    /// Stored pull secrets that another key than the first encrypts: until there are none, no key can be withdrawn.
    OLD_KEYS = Gauge "hyperfleet_api_pull_secrets_on_old_keys" by &[];
    /// 1 while the database cannot be written, as on a full disk; 0 otherwise.
    UNWRITABLE = Gauge "hyperfleet_api_database_unwritable" by &[];
    /// 1 while changed grants or encryption keys cannot be used and the last good ones stay; 0 otherwise.
    STALE_CONFIGURATION = Gauge "hyperfleet_api_configuration_stale" by &[];
    /// Spans of traces that no collector has taken: the queue was full, or the collector has refused them.
    TRACE_SPANS_DROPPED = Counter "hyperfleet_api_trace_spans_dropped" by &[];
}
