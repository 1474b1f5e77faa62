//! Creating and changing: defaults, checks, bookkeeping, in the order of a real server.

use serde_json::{Value, json};

use super::super::meta::{self, stamp};
use super::super::resources::Resource;
use super::super::status::{Cause, Status};
use super::super::value::{copy, object_at, set, take, text};
use super::super::{defaults, pod_security, validate};
use super::change::Object;
use super::state::State;
use super::writing::{Manager, Part, Writing};

// === impl State ===

impl State {
    /// Creates an object.
    pub(crate) fn create(&mut self, writing: &Writing<'_>, mut object: Value) -> Result<Object, Status> {
        let resource = writing.resource;
        check_type(resource, &mut object)?;
        validate::decode(resource, &object)?;
        check_place(writing, &mut object)?;
        name_it(writing, &mut object)?;
        let name = meta::name(&object).to_owned();
        self.check_namespace(writing, &name)?;
        if let Some(found) = self.find(resource, writing.namespace, &name) {
            let mut refusal = Status::exists(resource.about(&name));
            if meta::is_deleting(found) {
                refusal.message = format!("object is being deleted: {}", refusal.message);
            }
            return Err(refusal);
        }
        begin(writing, &mut object);
        if matches!(writing.manager, Manager::Update(_)) {
            take(&mut object, &["metadata", "managedFields"]);
        }
        defaults::fill(resource, &mut object);
        writing.note(&json!({}), &mut object);
        defaults::add(resource, &mut object, writing.now);
        let causes = validate::created(resource, &object);
        if !causes.is_empty() {
            return Err(Status::invalid(resource.about_kind(&name), &causes));
        }
        self.admit(resource, &object)?;
        self.put(writing, object)
    }

    /// Refuses a Pod whose `ServiceAccount` is not there, or that its namespace's level of Pod Security does not allow, as admission
    /// does.
    fn admit(&self, resource: &Resource, object: &Value) -> Result<(), Status> {
        if resource.storage != "pods" {
            return Ok(());
        }
        let (namespace, account) = (meta::namespace(object), text(object, "/spec/serviceAccountName"));
        let accounts = self.resource("serviceaccounts")?;
        if self.find(&accounts, namespace, account).is_some() {
            return pod_security::enforce(self, resource, object);
        }
        let why =
            format!("error looking up service account {namespace}/{account}: serviceaccount {account:?} not found");
        Err(Status::forbidden(resource.about(meta::name(object)), &why))
    }

    /// Changes an object; one that is not there is created where the kind allows that.
    pub(crate) fn update(
        &mut self,
        writing: &Writing<'_>,
        change: impl FnOnce(&Value) -> Result<Value, Status>,
    ) -> Result<Object, Status> {
        let resource = writing.resource;
        let live = self.get(resource, writing.namespace, writing.name)?;
        let mut object = change(&live)?;
        check_type(resource, &mut object)?;
        validate::decode(resource, &object)?;
        check_place(writing, &mut object)?;
        check_identity(writing, &live, &object)?;
        carry_over(writing, &live, &mut object);
        defaults::fill(resource, &mut object);
        writing.note(&live, &mut object);
        defaults::add(resource, &mut object, writing.now);
        count_generation(resource, &live, &mut object);
        let causes = validate::updated(resource, &live, &object);
        if !causes.is_empty() {
            return Err(Status::invalid(resource.about_kind(writing.name), &causes));
        }
        keep_times(&live, &mut object);
        if object == *live {
            return Ok(live);
        }
        if meta::may_go(&object) { self.take_away(writing, object) } else { self.put(writing, object) }
    }
}

/// Refuses a body of another kind, and says the kind where the body does not.
fn check_type(resource: &Resource, object: &mut Value) -> Result<(), Status> {
    if !object.is_object() {
        return Err(Status::bad_request("the object provided is not a JSON object"));
    }
    let (version, kind) = (resource.api_version(), text(object, "/kind").to_owned());
    if kind.is_empty() && resource.custom.is_some() {
        let kind = &resource.kind;
        let message = format!("the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing");
        return Err(Status::bad_request(message));
    }
    let given = text(object, "/apiVersion");
    if !given.is_empty() && given != version {
        let Resource { kind, version, .. } = resource;
        let message = format!(
            "{kind} in version {:?} cannot be handled as a {kind}: no kind {kind:?} is registered for version {given:?}, only \
             for {version:?}",
            given.rsplit('/').next().unwrap_or_default()
        );
        return Err(Status::bad_request(message));
    }
    if !kind.is_empty() && kind != resource.kind {
        let message = format!(
            "{kind} in version {:?} cannot be handled as a {}: no kind {kind:?} is registered for this resource",
            resource.version, resource.kind
        );
        return Err(Status::bad_request(message));
    }
    set(object, &["apiVersion"], version);
    set(object, &["kind"], resource.kind.clone());
    object_at(object, &["metadata"]);
    Ok(())
}

/// Refuses a body that belongs into another namespace or has another name than the path.
fn check_place(writing: &Writing<'_>, object: &mut Value) -> Result<(), Status> {
    let given = meta::namespace(object);
    if !writing.resource.is_namespaced() {
        take(object, &["metadata", "namespace"]);
    } else if given.is_empty() {
        set(object, &["metadata", "namespace"], writing.namespace);
    } else if given != writing.namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message));
    }
    let name = meta::name(object);
    if !writing.name.is_empty() && name.is_empty() {
        // Only a patch may leave the name to the path.
        if writing.whole {
            let message = format!(
                "the name of the object ({} based on URL) was undeterminable: name must be provided",
                writing.name
            );
            return Err(Status::bad_request(message));
        }
        set(object, &["metadata", "name"], writing.name);
    } else if !writing.name.is_empty() && name != writing.name {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({})", writing.name);
        return Err(Status::bad_request(message));
    }
    Ok(())
}

fn name_it(writing: &Writing<'_>, object: &mut Value) -> Result<(), Status> {
    if meta::name(object).is_empty() {
        let prefix = text(object, "/metadata/generateName").to_owned();
        if prefix.is_empty() {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(Status::invalid(writing.resource.about_kind(""), &[cause]));
        }
        set(object, &["metadata", "name"], meta::generated_name(&prefix));
    }
    if text(object, "/metadata/resourceVersion").is_empty() {
        return Ok(());
    }
    Err(Status::new(500, "resourceVersion should not be set on objects to be created").because(""))
}

/// Sets the members of a new object that only the server sets.
fn begin(writing: &Writing<'_>, object: &mut Value) {
    for member in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion", "generation"] {
        take(object, &["metadata", member]);
    }
    set(object, &["metadata", "uid"], meta::new_uid());
    set(object, &["metadata", "creationTimestamp"], stamp(writing.now));
    if writing.resource.has_generation() {
        set(object, &["metadata", "generation"], 1);
    }
    if writing.resource.has_status() {
        take(object, &["status"]);
    }
}

/// Refuses a write to another object of the same name, or to a state that is no longer the newest.
fn check_identity(writing: &Writing<'_>, live: &Value, object: &Value) -> Result<(), Status> {
    let resource = writing.resource;
    let (uid, live_uid) = (meta::uid(object), meta::uid(live));
    if !uid.is_empty() && uid != live_uid {
        if !writing.whole {
            let cause = Cause::invalid("metadata.uid", &json!(uid), "field is immutable");
            return Err(Status::invalid(resource.about_kind(writing.name), &[cause]));
        }
        let key = live_key(writing);
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
             UID in precondition: {uid}, UID in object meta: {live_uid}"
        );
        return Err(Status::conflict(resource.about(writing.name), &why));
    }
    let revision = text(object, "/metadata/resourceVersion");
    if revision.is_empty() && resource.is_conditional() {
        let message = "Invalid value: 0: must be specified for an update".to_owned();
        let field = "metadata.resourceVersion".to_owned();
        let cause = Cause { reason: "FieldValueInvalid".to_owned(), message, field };
        return Err(Status::invalid(resource.about(writing.name), &[cause]));
    }
    if !revision.is_empty() && revision.parse::<u64>().is_err() {
        let message = format!("strconv.ParseUint: parsing {revision:?}: invalid syntax");
        return Err(Status::new(500, message).because(""));
    }
    if revision.is_empty() || revision == text(live, "/metadata/resourceVersion") {
        return Ok(());
    }
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    Err(Status::conflict(resource.about(writing.name), why))
}

/// The object's key in etcd, which refusals of a real server contain.
fn live_key(writing: &Writing<'_>) -> String {
    let Writing { resource, namespace, name, .. } = writing;
    let group = if resource.custom.is_some() { format!("/{}", resource.group) } else { String::new() };
    let place = if namespace.is_empty() { String::new() } else { format!("/{namespace}") };
    format!("/registry{group}/{}{place}/{name}", resource.plural)
}

/// Restores the members that a write cannot change.
fn carry_over(writing: &Writing<'_>, live: &Value, object: &mut Value) {
    if writing.part == Part::Status {
        let status = take(object, &["status"]);
        let managed = take(object, &["metadata", "managedFields"]);
        *object = live.clone();
        match status {
            Some(status) => set(object, &["status"], status),
            None => drop(take(object, &["status"])),
        }
        if let Some(managed) = managed {
            set(object, &["metadata", "managedFields"], managed);
        }
    } else if writing.resource.has_status() {
        copy(live, object, &["status"]);
    }
    for member in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generateName",
        "generation",
        "resourceVersion",
    ] {
        copy(live, object, &["metadata", member]);
    }
    if writing.resource.plural == "namespaces" {
        copy(live, object, &["spec"]);
    }
}

/// A change of anything but metadata and status is a new generation.
fn count_generation(resource: &Resource, live: &Value, object: &mut Value) {
    if resource.has_generation() && !is_same(live, object, &["metadata", "status"]) {
        let generation = super::super::value::number(live, "/metadata/generation").unwrap_or_default();
        set(object, &["metadata", "generation"], generation + 1);
    }
    let template = |value: &Value| value.pointer("/spec/template").cloned();
    if resource.storage == "daemonsets.apps" && template(live) != template(object) {
        let counted = ["metadata", "annotations", "deprecated.daemonset.template.generation"];
        let count =
            text(live, "/metadata/annotations/deprecated.daemonset.template.generation").parse().unwrap_or(0_u64);
        set(object, &counted, (count + 1).to_string());
    }
}

/// If nothing but times of the bookkeeping differs, nothing does.
fn keep_times(live: &Value, object: &mut Value) {
    let (Some(metadata), Some(live_metadata)) = (object.get("metadata"), live.get("metadata")) else { return };
    if !is_same(live, object, &["metadata"]) || !is_same(live_metadata, metadata, &["managedFields"]) {
        return;
    }
    let entries = |value: &Value| {
        let mut entries = super::super::fields::managed::entries(value);
        for entry in &mut entries {
            entry.time.clear();
        }
        entries
    };
    if entries(live) == entries(object) {
        copy(live, object, &["metadata", "managedFields"]);
    }
}

/// True if two objects have the same members, but for those with these names.
fn is_same(one: &Value, other: &Value, but: &[&str]) -> bool {
    fn members<'a>(value: &'a Value, but: &[&str]) -> impl Iterator<Item = (&'a String, &'a Value)> {
        value.as_object().into_iter().flatten().filter(move |(name, _)| !but.contains(&name.as_str()))
    }
    members(one, but).eq(members(other, but))
}
