//! Events, which `kubectl describe` shows.
//!
//! An Event's name is a hash of its content: the same Event again, also from another process, increments its count, and a
//! different one is a second object.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash as _, Hasher as _};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use kube::Api;
use kube::api::{Patch, PatchParams};

use crate::cluster::Cluster;
use crate::error::{ErrorKind, KubernetesError};
use crate::verb::Verb;

/// A publisher of Events under one controller's name.
pub struct Events<'a> {
    cluster: &'a Cluster,
    controller: String,
}

/// The type of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// No action is needed.
    Normal,
    /// An operator should act.
    Warning,
}

/// An Event's name and the API that has it.
struct Place {
    api: Api<Event>,
    name: String,
    /// Its kind, namespace and name, for errors.
    object: String,
}

/// Namespace of Events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";
/// Maximum number of characters of an object's name in the names of its Events.
const MAX_PREFIX: usize = 200;
/// Maximum length of a note in bytes (the API's own is 1024).
const MAX_NOTE: usize = 1000;

impl Cluster {
    /// Events that `controller` reports, such as `pullsecret-adapter`.
    pub fn events(&self, controller: &str) -> Events<'_> {
        Events { cluster: self, controller: controller.to_owned() }
    }
}

impl Events<'_> {
    /// Publishes that `reason` holds for the object because of `action`; the same again increments the count. A note that is too
    /// long for an Event is shortened. Needs the rights to create, get and patch Events.
    pub async fn publish(
        &self,
        about: &ObjectReference,
        severity: Severity,
        action: &str,
        reason: &str,
        note: &str,
    ) -> Result<(), KubernetesError> {
        let event = self.event(about, severity, action, reason, note);
        if self.create(&event).await? {
            return Ok(());
        }
        let Place { api, name, object } = self.place(&event);
        let found = self.cluster.call(Verb::Get, &object, api.get_opt(&name)).await?;
        let count = found.and_then(|event| event.count).unwrap_or_default().saturating_add(1);
        let again = serde_json::json!({"count": count, "lastTimestamp": event.last_timestamp});
        let field_manager = self.cluster.creation().field_manager;
        let parameters = PatchParams { field_manager, ..PatchParams::default() };
        let patch = Patch::Merge(again);
        self.cluster.call(Verb::Apply, &object, api.patch(&name, &parameters, &patch)).await.map(drop)
    }

    /// Does the same as [`Events::publish`] for what happens to an object once: an Event that exists is left as it is. Needs the
    /// right to create Events only.
    pub async fn publish_once(
        &self,
        about: &ObjectReference,
        severity: Severity,
        action: &str,
        reason: &str,
        note: &str,
    ) -> Result<(), KubernetesError> {
        self.create(&self.event(about, severity, action, reason, note)).await.map(drop)
    }

    /// Creates the Event; returns false if it exists.
    async fn create(&self, event: &Event) -> Result<bool, KubernetesError> {
        let Place { api, object, .. } = self.place(event);
        let parameters = self.cluster.creation();
        match self.cluster.call(Verb::Create, &object, api.create(&parameters, event)).await {
            Err(error) if error.kind == ErrorKind::AlreadyExists => Ok(false),
            other => other.map(|_created| true),
        }
    }

    fn place(&self, event: &Event) -> Place {
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let name = event.metadata.name.clone().unwrap_or_default();
        let object = format!("event {namespace}/{name}");
        Place { api: Api::namespaced(self.cluster.client(), &namespace), name, object }
    }

    fn event(&self, about: &ObjectReference, severity: Severity, action: &str, reason: &str, note: &str) -> Event {
        let kind = match severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        };
        let mut hasher = DefaultHasher::new();
        let note = shortened(note);
        (&about.uid, &self.controller, kind, action, reason, &note).hash(&mut hasher);
        let prefix: String = about.name.iter().flat_map(|name| name.chars()).take(MAX_PREFIX).collect();
        let now = Timestamp::now();
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{prefix}.{:016x}", hasher.finish())),
                namespace: Some(about.namespace.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())),
                ..ObjectMeta::default()
            },
            involved_object: about.clone(),
            type_: Some(kind.to_owned()),
            action: Some(action.to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(note),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            event_time: Some(MicroTime(now)),
            source: Some(EventSource { component: Some(self.controller.clone()), host: None }),
            reporting_component: Some(self.controller.clone()),
            reporting_instance: Some(self.controller.clone()),
            ..Event::default()
        }
    }
}

fn shortened(note: &str) -> String {
    let end = note.floor_char_boundary(MAX_NOTE);
    if end == note.len() { note.to_owned() } else { note.get(..end).unwrap_or_default().to_owned() + "…" }
}

impl fmt::Debug for Events<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Events").field("controller", &self.controller).finish_non_exhaustive()
    }
}
