//! Events: what people see in `kubectl describe`.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

use crate::cluster::{Cluster, Verb};
use crate::error::KubernetesError;

/// Publishes Events about objects under one controller's name; repeated ones are counted up, not written anew.
pub struct Events<'a> {
    cluster: &'a Cluster,
    recorder: Recorder,
}

/// Whether somebody should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// All is well.
    Normal,
    /// Somebody should look.
    Warning,
}

impl Cluster {
    /// Events that `controller` reports, such as `pullsecret-adapter`.
    pub fn events(&self, controller: &str) -> Events<'_> {
        let reporter = Reporter { controller: controller.to_owned(), instance: None };
        Events { cluster: self, recorder: Recorder::new(self.client(), reporter) }
    }
}

impl Events<'_> {
    /// Publishes that `reason` holds for the object, because of `action`.
    pub async fn publish(
        &self,
        about: &ObjectReference,
        severity: Severity,
        (action, reason): (&str, &str),
        note: &str,
    ) -> Result<(), KubernetesError> {
        let event = Event {
            type_: match severity {
                Severity::Normal => EventType::Normal,
                Severity::Warning => EventType::Warning,
            },
            reason: reason.to_owned(),
            note: Some(note.to_owned()),
            action: action.to_owned(),
            secondary: None,
        };
        let object = format!("event about {}", about.name.as_deref().unwrap_or_default());
        self.cluster.call(Verb::Create, &object, self.recorder.publish(&event, about)).await
    }
}

impl std::fmt::Debug for Events<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Events").finish_non_exhaustive()
    }
}
