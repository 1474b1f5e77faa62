//! The last log line of a Job's newest Pod, and Kubernetes' warnings about both: the reasons why a Job does not end.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{ListParams, LogParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kubernetes::PodSummary;
use serde_json::Value;
use tokio::time::timeout;

use crate::facts::Observation;

/// Maximum time of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
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

/// A Job, and the access to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) kubeconfig: Option<&'a Path>,
    pub(crate) namespace: &'a str,
    pub(crate) job: &'a str,
}

/// Observes a Job and its newest Pod, of which `container` runs the program; a failure becomes part of the result.
pub(crate) async fn observe(place: Place<'_>, pod: Option<&PodSummary>, container: Option<String>) -> Said {
    let Place { kubeconfig, namespace, job } = place;
    let Some(client) = client(kubeconfig).await else { return Said::default() };
    Said {
        last_line: match pod {
            Some(pod) => last_line(&client, namespace, &pod.name, container).await,
            None => Observation::NotObserved,
        },
        warnings: warnings(&client, namespace, [Some(job), pod.map(|pod| pod.name.as_str())]).await,
    }
}

/// A client that does not retry; `None` where a kubeconfig is not usable, which the other observations say.
async fn client(kubeconfig: Option<&Path>) -> Option<Client> {
    let file = Kubeconfig::read_from(kubeconfig?).ok()?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.ok()?;
    config.default_retry = false;
    // A proxy could read requests in clear text.
    if config.cluster_url.scheme_str() == Some("http") {
        config.proxy_url = None;
    }
    Client::try_from(config).ok()
}

async fn last_line(
    client: &Client,
    namespace: &str,
    pod: &str,
    container: Option<String>,
) -> Observation<Option<String>> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let parameters = LogParams { container, tail_lines: Some(1), ..LogParams::default() };
    match timeout(CALL_TIMEOUT, api.logs(pod, &parameters)).await {
        Ok(Ok(text)) => Observation::Found(text.lines().next_back().map(message)),
        Ok(Err(error)) => Observation::Failed(failure(&error)),
        Err(_elapsed) => Observation::Failed("no answer in time".to_owned()),
    }
}

/// The message of a line of the Job's log, or the whole line of another program.
fn message(line: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(line).ok();
    let message = parsed.as_ref().and_then(|parsed| parsed.get("message")?.as_str());
    let text = message.unwrap_or(line);
    let end = text.floor_char_boundary(MAX_LINE);
    text.get(..end).unwrap_or(text).to_owned()
}

async fn warnings(client: &Client, namespace: &str, objects: [Option<&str>; 2]) -> Observation<Vec<String>> {
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let mut events = Vec::new();
    for object in objects.into_iter().flatten() {
        let parameters = ListParams::default().fields(&format!("involvedObject.name={object},type=Warning"));
        match timeout(CALL_TIMEOUT, api.list(&parameters)).await {
            Ok(Ok(list)) => events.extend(list.items),
            Ok(Err(error)) => return Observation::Failed(failure(&error)),
            Err(_elapsed) => return Observation::Failed("no answer in time".to_owned()),
        }
    }
    events.sort_by_key(|event| std::cmp::Reverse(event.last_timestamp.as_ref().map(|time| time.0)));
    Observation::Found(events.iter().take(MAX_WARNINGS).map(warning).collect())
}

fn warning(event: &Event) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let times = event.count.filter(|count| *count > 1).map(|count| format!(" ({count} times)")).unwrap_or_default();
    format!("{}: {}{times}", text(&event.reason), text(&event.message).trim())
}

/// The reason of a failed call, without the address or credentials of the server.
fn failure(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        _ => "the API server does not answer".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

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
