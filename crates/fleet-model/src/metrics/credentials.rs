//! Metrics of the credentials service.

use super::metrics;

metrics! {
    /// Metrics of the credentials service. Those about the ledger are the same on every replica.
    METRICS:
    /// Credentials in the ledger, by registry and state.
    CREDENTIALS = Gauge "hyperfleet_credentials" by &["registry", "state"];
    /// Credentials with work left, by registry and the reason for which they are where they are; `NeverReported` counts clusters
    /// that have not reported a new pull secret in time.
    STANDING = Gauge "hyperfleet_credentials_standing" by &["registry", "reason"];
    /// Age of the oldest publication that is not adopted; 0 if there is none.
    OLDEST_UNADOPTED = Gauge "hyperfleet_credentials_oldest_unadopted" in Seconds by &["registry"];
    /// Credentials that wait for a cluster.
    POOL_READY = Gauge "hyperfleet_credentials_pool_ready" by &["registry"];
    /// Credentials that should wait for a cluster.
    POOL_TARGET = Gauge "hyperfleet_credentials_pool_target" by &["registry"];
    /// Calls of a registry, by operation and outcome; a probe has its verdict as outcome.
    CALLS = Counter "hyperfleet_credentials_registry_calls" by &["registry", "operation", "outcome"];
    /// Calls of a registry that wait, by lane.
    WAITING_CALLS = Gauge "hyperfleet_credentials_registry_waiting_calls" by &["registry", "lane"];
    /// 1 while the last call of this replica at a registry failed for a reason that is not about one account; 0 after a call that did
    /// not, or after fifteen minutes without a call.
    REGISTRY_FAILING = Gauge "hyperfleet_credentials_registry_failing" by &["registry"];
    /// Rotations that are not over, by registry and phase.
    ROTATIONS = Gauge "hyperfleet_credentials_rotations" by &["registry", "phase"];
    /// Clusters of rotations that are not over, by registry and progress.
    ROTATION_CLUSTERS = Gauge "hyperfleet_credentials_rotation_clusters" by &["registry", "progress"];
    /// Unix time of the last complete list of clusters, by the registry that they were listed for.
    LAST_RESYNC = Gauge "hyperfleet_credentials_last_resync_timestamp" in Seconds by &["registry"];
    /// Entries of the pull secrets of all clusters, by maker: `service` for accounts of the ledger, else `elsewhere`.
    ENTRIES = Gauge "hyperfleet_credentials_entries" by &["maker"];
    /// Entries whose validity has ended (`past`) or ends within seven days (`soon`), as far as they state one, by maker.
    ENTRIES_EXPIRING = Gauge "hyperfleet_credentials_entries_expiring" by &["maker", "end"];
    /// Age of the oldest entry, by maker; for one that was made elsewhere, since it was first seen, if it states no beginning.
    OLDEST_ENTRY = Gauge "hyperfleet_credentials_oldest_entry" in Seconds by &["maker"];
    /// Clusters whose pull secret cannot be read: it is by reference, hidden from the service, or no credential document.
    UNREAD_PULL_SECRETS = Gauge "hyperfleet_credentials_unread_pull_secrets" by &[];
    /// Clusters on their way from AMS, by phase; none without `ams.url`.
    AMS_CLUSTERS = Gauge "hyperfleet_credentials_ams_clusters" by &["phase"];
    /// Passwords that another key than the first seals: until there are none, no key can be withdrawn.
    OLD_KEYS = Gauge "hyperfleet_credentials_passwords_on_old_keys" by &[];
    /// Duration of the requests of the HTTP API; none without `server.enabled`.
    REQUEST_DURATION = Histogram "hyperfleet_credentials_request_duration" in Seconds by &["method", "route", "status"];
    /// Duration of database statements.
    DB_QUERY_DURATION = Histogram "hyperfleet_credentials_db_query_duration" in Seconds by &["operation", "table"];
    /// Database statements that failed.
    DB_ERRORS = Counter "hyperfleet_credentials_db_errors" by &[];
    /// Spans of traces that no collector has taken: the queue was full, or the collector has refused them.
    TRACE_SPANS_DROPPED = Counter "hyperfleet_credentials_trace_spans_dropped" by &[];
}
