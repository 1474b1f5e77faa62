//! Metrics of the Sentinel.

use super::metrics;

/// Labels of every metric of the Sentinel.
const COMMON: &[&str] = &["component", "version", "resource_type", "resource_selector", "shard"];
const BY_REASON: &[&str] = &["component", "version", "resource_type", "resource_selector", "shard", "reason"];
const BY_ERROR: &[&str] = &["component", "version", "resource_type", "resource_selector", "shard", "error_type"];

metrics! {
    /// Metrics of the Sentinel. Those about the fleet are 0 on a standby.
    METRICS:
    /// Resources with unpublished changes.
    PENDING_RESOURCES = Gauge "hyperfleet_sentinel_pending_resources" by COMMON;
    /// Events that the broker has confirmed, by reason.
    EVENTS_PUBLISHED = Counter "hyperfleet_sentinel_events_published" by BY_REASON;
    /// Resources that were evaluated and needed no event, by reason.
    RESOURCES_SKIPPED = Counter "hyperfleet_sentinel_resources_skipped" by BY_REASON;
    /// Duration of reading all resources from the API.
    POLL_DURATION = Histogram "hyperfleet_sentinel_poll_duration" in Seconds by COMMON;
    /// Failed reads of the API: `fetch_error`, or `auth_error` where the Sentinel's own credentials are refused.
    API_ERRORS = Counter "hyperfleet_sentinel_api_errors" by BY_ERROR;
    /// Events that the broker refused: `publish_error`.
    BROKER_ERRORS = Counter "hyperfleet_sentinel_broker_errors" by BY_ERROR;
    /// Unix time of the last complete sync; absent on a standby.
    LAST_SUCCESSFUL_POLL = Gauge "hyperfleet_sentinel_last_successful_poll_timestamp" in Seconds by COMMON;
    /// Time from a change, by the API's clock, to the broker's confirmation of its event.
    PUBLISH_LAG = Histogram "hyperfleet_sentinel_publish_lag" in Seconds by COMMON;
    /// Resources under observation.
    KNOWN_RESOURCES = Gauge "hyperfleet_sentinel_known_resources" by COMMON;
    /// 1 on the leader, 0 on a standby.
    LEADER = Gauge "hyperfleet_sentinel_leader" by COMMON;
    /// 1 while changes arrive by the change stream, 0 while the API is polled.
    CHANGE_STREAM = Gauge "hyperfleet_sentinel_change_stream" by COMMON;
    /// Spans of traces that no collector has taken: the queue was full, or the collector has refused them.
    TRACE_SPANS_DROPPED = Counter "hyperfleet_sentinel_trace_spans_dropped" by &[];
}
