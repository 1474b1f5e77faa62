//! Jobs' output, written to the log of this process.

use emulators::kubernetes::PodLine;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::{debug, error, info, warn};

/// Logs every line until all writers are gone.
pub(crate) async fn log(mut lines: UnboundedReceiver<PodLine>) {
    while let Some(PodLine { pod, line, .. }) = lines.recv().await {
        log_line(&pod, &line);
    }
}

/// A line of a Job's log as one of ours; what is no such line is its message.
fn log_line(pod: &str, line: &str) {
    let parsed: Value = serde_json::from_str(line).unwrap_or_default();
    let text = |name: &str| parsed.get(name).and_then(Value::as_str).unwrap_or_default();
    let (cluster_id, operation, reason) = (text("cluster_id"), text("operation"), text("reason"));
    let message = if parsed.is_object() { text("message") } else { line };
    // Fields must be known when the program is built, so each level has its own line, with the fields that matter.
    macro_rules! at {
        ($level:ident) => {
            if reason.is_empty() {
                $level!(component = "job", cluster_id, operation, pod, "{message}")
            } else {
                $level!(component = "job", cluster_id, operation, pod, reason, "{message}")
            }
        };
    }
    match text("level") {
        "error" => at!(error),
        "warn" => at!(warn),
        "debug" => at!(debug),
        _ => at!(info),
    }
}
