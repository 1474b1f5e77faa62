//! Metrics of the node syncer.

use super::metrics;

metrics! {
    /// Metrics of the node syncer.
    METRICS:
    /// 1 while the kubelet runs with the expected credentials.
    READY = Gauge "sync_global_pullsecret_ready" by &[];
    /// 1 for the current reason, 0 for the others.
    REASON = Gauge "sync_global_pullsecret_reason" by &["reason"];
    /// 1 while the source of credentials cannot be read.
    SOURCE_UNAVAILABLE = Gauge "sync_global_pullsecret_source_unavailable" by &[];
    /// Unix time at which credentials were last applied, 0 if never.
    APPLIED_TIMESTAMP = Gauge "sync_global_pullsecret_applied_timestamp" in Seconds by &[];
    /// Replacements of the kubelet's file.
    WRITES = Counter "sync_global_pullsecret_writes" by &[];
    /// Restarts of the kubelet.
    RESTARTS = Counter "sync_global_pullsecret_restarts" by &[];
    /// Restarts that failed, or after which the kubelet did not stay up.
    FAILED_RESTARTS = Counter "sync_global_pullsecret_failed_restarts" by &[];
    /// Calls to systemd without an answer.
    SYSTEMD_UNREACHABLE = Counter "sync_global_pullsecret_systemd_unreachable" by &[];
    /// Rollbacks of a change.
    ROLLBACKS = Counter "sync_global_pullsecret_rollbacks" by &[];
    /// Failed reads and writes of the disk.
    DISK_FAULTS = Counter "sync_global_pullsecret_disk_faults" by &[];
}
