//! The last log line of a Job's newest Pod, and Kubernetes' warnings about both: the reasons why a Job does not end.

use kubernetes::{Cluster, PodSummary};
use serde_json::Value;

use crate::facts::Observation;

/// Maximum number of bytes of a line that are shown.
const MAX_LINE: usize = 600;
/// Maximum number of warnings.
const MAX_WARNINGS: usize = 4;

/// The words of a Job's newest Pod, and of Kubernetes about both.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// The last line of the log; `None` if there is no line yet.
    pub(crate) last_line: Observation<Option<String>>,
    /// Events that are warnings, the newest first.
    pub(crate) warnings: Observation<Vec<String>>,
}

/// Observes a Job and its newest Pod, of which `container` runs the program; a failure becomes part of the result.
pub(crate) async fn observe(
    cluster: &Cluster,
    namespace: &str,
    job: &str,
    pod: Option<&PodSummary>,
    container: Option<String>,
) -> Said {
    let last_line = match pod {
        Some(pod) => {
            let line = cluster.last_log_line(namespace, &pod.name, container).await;
            line.map(|line| line.as_deref().map(message)).into()
        }
        None => Observation::NotObserved,
    };
    let objects: Vec<&str> = [job].into_iter().chain(pod.map(|pod| pod.name.as_str())).collect();
    let warnings = cluster.warnings(namespace, &objects).await.map(|mut warnings| {
        warnings.truncate(MAX_WARNINGS);
        warnings
    });
    Said { last_line, warnings: warnings.into() }
}

/// The message of a line of the Job's log, or the whole line of another program.
fn message(line: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(line).ok();
    let message = parsed.as_ref().and_then(|parsed| parsed.get("message")?.as_str());
    let text = message.unwrap_or(line);
    let end = text.floor_char_boundary(MAX_LINE);
    text.get(..end).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::of_the_job(
        r#"{"level":"warn","message":"Observing again in 4.5s","operation":"x"}"#,
        "Observing again in 4.5s"
    )]
    #[case::of_another_program("panic: no memory", "panic: no memory")]
    fn a_line_is_its_message(#[case] line: &str, #[case] expect: &str) {
        assert_eq!(message(line), expect);
        assert_eq!(message(&"é".repeat(MAX_LINE)).chars().count(), MAX_LINE / 2);
    }
}
