//! The last log line of a Pod, and Kubernetes' warnings about objects: the reasons why a Job does not end.

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::{ListParams, LogParams};

use crate::cluster::Cluster;
use crate::error::KubernetesError;
use crate::verb::Verb;

impl Cluster {
    /// The last line of a container's log; `None` if there is no line yet. Without a name the Pod's only container is read.
    pub async fn last_log_line(
        &self,
        namespace: &str,
        pod: &str,
        container: Option<String>,
    ) -> Result<Option<String>, KubernetesError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let parameters = LogParams { container, tail_lines: Some(1), ..LogParams::default() };
        let object = format!("log of pod {namespace}/{pod}");
        let text = self.call(Verb::Get, &object, api.logs(pod, &parameters)).await?;
        Ok(text.lines().next_back().map(str::to_owned))
    }

    /// The Events about these objects that are warnings, the newest first: reason, message, and how often.
    pub async fn warnings(&self, namespace: &str, objects: &[&str]) -> Result<Vec<String>, KubernetesError> {
        let api: Api<Event> = Api::namespaced(self.client(), namespace);
        let mut events = Vec::new();
        for object in objects {
            let parameters = ListParams::default().fields(&format!("involvedObject.name={object},type=Warning"));
            let about = format!("events of {namespace}/{object}");
            events.extend(self.call(Verb::List, &about, api.list(&parameters)).await?.items);
        }
        events.sort_by_key(|event| std::cmp::Reverse(event.last_timestamp.as_ref().map(|time| time.0)));
        Ok(events.iter().map(warning).collect())
    }
}

fn warning(event: &Event) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let times = event.count.filter(|count| *count > 1).map(|count| format!(" ({count} times)")).unwrap_or_default();
    format!("{}: {}{times}", text(&event.reason), text(&event.message).trim())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case(json!({"reason": "FailedMount", "message": "secret \"a\" not found", "count": 3}), "FailedMount: secret \"a\" not found (3 times)")]
    #[case(json!({"reason": "FailedCreate", "message": "no quota"}), "FailedCreate: no quota")]
    fn a_warning_has_its_number(#[case] event: Value, #[case] expect: &str) {
        let mut event = event;
        event["metadata"] = json!({"name": "e"});
        event["involvedObject"] = json!({});
        assert_eq!(warning(&serde_json::from_value(event).unwrap()), expect);
    }
}
