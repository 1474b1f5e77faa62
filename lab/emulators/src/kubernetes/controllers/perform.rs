//! Doing what was decided, on the store.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::status::Status;
use super::super::store::{Deletion, Object, Store};
use super::super::value::text;
use super::action::{Action, EventKind};
use super::model::Time;
use crate::folder::fnv;

/// The component that records Events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorder<'a> {
    pub(crate) component: &'static str,
    /// The node it speaks of; empty for controllers.
    pub(crate) node: &'a str,
}

/// A controlling object while its actions are performed.
pub(crate) struct Performing<'a> {
    pub(crate) store: &'a Arc<Store>,
    /// As the store names its resource.
    pub(crate) resource: &'static str,
    pub(crate) component: &'static str,
    pub(crate) object: &'a Object,
}

impl Performing<'_> {
    /// Does all of it, or ends at the first action that fails. Says when to decide again.
    pub(crate) fn all(&self, actions: Vec<Action>) -> Result<Option<Timestamp>, Status> {
        let mut wake = None;
        for action in actions {
            match action {
                Action::Wake(at) => wake = Some(wake.map_or(at, |earlier: Timestamp| earlier.min(at))),
                action => self.one(action)?,
            }
        }
        Ok(wake)
    }

    fn one(&self, action: Action) -> Result<(), Status> {
        match action {
            Action::CreatePod(pod) => match self.store.create("pods", self.namespace(), pod) {
                Ok(pod) => {
                    self.record_event(
                        EventKind::Normal,
                        "SuccessfulCreate",
                        &format!("Created pod: {}", text(&pod, "/metadata/name")),
                    );
                }
                Err(status) => {
                    self.record_event(EventKind::Warning, "FailedCreate", &format!("Error creating: {status}"));
                    return Err(status);
                }
            },
            Action::DeletePod { name, uid } => {
                let deletion = Deletion { uid: Some(uid), ..Deletion::default() };
                gone_is_fine(self.store.delete("pods", self.namespace(), &name, &deletion))?;
                self.record_event(EventKind::Normal, "SuccessfulDelete", &format!("Deleted pod: {name}"));
            }
            Action::ReleasePod { name, uid } => release(self.store, self.namespace(), &name, &uid)?,
            Action::UpdateStatus(status) => {
                let mut object = Value::clone(self.object);
                if let Some(members) = object.as_object_mut() {
                    members.insert("status".to_owned(), status);
                }
                gone_is_fine(self.store.update_status(self.resource, object))?;
            }
            Action::DeleteOwner => {
                let uid = Some(text(self.object, "/metadata/uid").to_owned());
                let deletion = Deletion { uid, ..Deletion::default() };
                let name = text(self.object, "/metadata/name");
                gone_is_fine(self.store.delete(self.resource, self.namespace(), name, &deletion))?;
            }
            Action::RecordEvent { kind, reason, message } => self.record_event(kind, &reason, &message),
            Action::Wake(_) => {}
        }
        Ok(())
    }

    fn record_event(&self, kind: EventKind, reason: &str, message: &str) {
        let recorder = Recorder { component: self.component, node: "" };
        record_event(self.store, self.object, recorder, kind, reason, message);
    }

    fn namespace(&self) -> &str {
        text(self.object, "/metadata/namespace")
    }
}

/// Takes the tracking finalizer off a Pod.
pub(crate) fn release(store: &Arc<Store>, namespace: &str, name: &str, uid: &str) -> Result<(), Status> {
    let Ok(pod) = store.get("pods", namespace, name) else { return Ok(()) };
    let mut pod = Value::clone(&pod);
    if text(&pod, "/metadata/uid") != uid {
        return Ok(());
    }
    if let Some(finalizers) = pod.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|finalizer| finalizer != super::job::TRACKING);
    }
    gone_is_fine(store.update("pods", pod))
}

/// Records an Event about `object`; one that was recorded before is counted. No work waits for it: one that cannot be
/// recorded is lost.
pub(crate) fn record_event(
    store: &Arc<Store>,
    object: &Value,
    recorder: Recorder<'_>,
    kind: EventKind,
    reason: &str,
    message: &str,
) {
    let at = Time::at(store.now());
    let namespace = Some(text(object, "/metadata/namespace")).filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or("default");
    // Warnings of one reason differ in details only, such as the name of the Pod that was refused.
    let detail = if kind == EventKind::Warning { "" } else { message };
    let series = fnv(&format!("{} {reason} {detail}", text(object, "/metadata/uid")));
    let about = text(object, "/metadata/name");
    let name = format!("{about}.{series:016x}");
    if let Ok(known) = store.get("events", namespace, &name) {
        let mut event = Value::clone(&known);
        let count = event.get("count").and_then(Value::as_u64).unwrap_or(1);
        if let Some(members) = event.as_object_mut() {
            members.insert("count".to_owned(), json!(count.saturating_add(1)));
            members.insert("message".to_owned(), json!(message));
            members.insert("lastTimestamp".to_owned(), json!(at));
        }
        drop(store.update("events", event));
        return;
    }
    let mut source = json!({ "component": recorder.component });
    if let (false, Some(source)) = (recorder.node.is_empty(), source.as_object_mut()) {
        source.insert("host".to_owned(), json!(recorder.node));
    }
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": {
            "apiVersion": text(object, "/apiVersion"),
            "kind": text(object, "/kind"),
            "namespace": text(object, "/metadata/namespace"),
            "name": about,
            "uid": text(object, "/metadata/uid"),
            "resourceVersion": text(object, "/metadata/resourceVersion"),
        },
        "type": kind.name(),
        "reason": reason,
        "message": message,
        "source": source,
        "reportingComponent": recorder.component,
        "reportingInstance": recorder.node,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    });
    drop(store.create("events", namespace, event));
}

/// Treats an object that is gone or was replaced as done.
pub(crate) fn gone_is_fine(result: Result<Object, Status>) -> Result<(), Status> {
    match result {
        Err(status) if status.code != 404 => Err(status),
        _ => Ok(()),
    }
}
