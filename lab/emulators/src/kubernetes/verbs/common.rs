//! Parts that several verbs share.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::ask::{Ask, Form, options, unreadable};
use super::super::engine::Engine;
use super::super::rbac::{Attributes, allows};
use super::super::resources::Resource;
use super::super::status::{About, Cause, Status};
use super::super::store::{Manager, Object, Part, State, Writing};
use super::super::value::{go_kind, set};
use super::super::{meta, pod_security, rbac, tables, validate, views};

impl Ask {
    /// The write that this call is.
    pub(super) fn writing(&self, engine: &Engine) -> Result<Writing<'_>, Status> {
        Ok(Writing {
            resource: &self.resource,
            namespace: &self.namespace,
            name: &self.name,
            whole: self.verb != "patch",
            part: if self.subresource == "status" { Part::Status } else { Part::Main },
            manager: Manager::Update(self.manager.clone()),
            dry_run: self.query.dry_run()?,
            now: engine.store.now(),
        })
    }

    /// The body as an object of the stored kind, and what is wrong with its fields.
    pub(super) fn object(&self) -> Result<(Value, Vec<String>), Status> {
        let mut document = self.document()?;
        if document.is_null() && self.view.custom.is_none() {
            document = json!({});
        }
        if !document.is_object() {
            return Err(unreadable(&format!("json: cannot unmarshal {} into Go value", go_kind(&document))));
        }
        let mut object = views::absorb(&self.view, document);
        let mut faults: Vec<_> = validate::doubled(&self.body).iter().map(|path| fault("duplicate", path)).collect();
        validate::decode(&self.resource, &object)?;
        let unknown = validate::prune(&self.resource, &mut object)?;
        faults.extend(unknown.iter().map(|path| fault("unknown", path)));
        let warnings = self.judged(faults, |faults| {
            let Resource { kind, version, .. } = &*self.view;
            let why = format!("strict decoding error: {faults}");
            Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
        })?;
        Ok((object, warnings))
    }

    /// The warnings about faulty fields; refused if the caller is strict with them.
    pub(super) fn judged(
        &self,
        faults: Vec<String>,
        refusal: impl FnOnce(&str) -> Status,
    ) -> Result<Vec<String>, Status> {
        match self.query.get("fieldValidation") {
            "Strict" if !faults.is_empty() => Err(refusal(&faults.join(", "))),
            "" | "Strict" | "Warn" => Ok(faults),
            "Ignore" => Ok(Vec::new()),
            other => {
                let cause = Cause::unsupported("fieldValidation", other, &["", "Ignore", "Strict", "Warn"]);
                Err(Status::invalid(About { group: "meta.k8s.io", kind: options(self.verb), name: "" }, &[cause]))
            }
        }
    }
}

/// A fault of a field, as it is reported.
pub(super) fn fault(what: &str, path: &str) -> String {
    format!("{what} field {path:?}")
}

/// The answer to a write, with the warnings about its fields and about its Pods.
pub(super) fn written(engine: &Engine, ask: &Ask, object: &Object, code: u16, mut warnings: Vec<String>) -> Answer {
    // A Pod is judged when it is created, a workload whenever it is written.
    if ask.subresource.is_empty() && (code == 201 || ask.resource.storage != "pods") {
        warnings.extend(engine.store.read(|state| pod_security::warning(state, object)));
    }
    shown(engine, ask, object, code).warning(warnings)
}

/// One object in the form that the caller wants.
pub(super) fn shown(engine: &Engine, ask: &Ask, object: &Object, code: u16) -> Answer {
    let value = match ask.form {
        Form::Whole => views::present(&ask.view, object),
        Form::Metadata => views::metadata_only(object),
        Form::Table => {
            let rows = [Arc::clone(object)];
            tables::table(&ask.view, &rows, ask.query.get("includeObject"), engine.store.now())
        }
    };
    Answer::Document { code, value, warnings: Vec::new() }
}

/// An update or an apply that creates needs the permission to create as well.
pub(super) fn check_creation(engine: &Engine, ask: &Ask, state: &State) -> Result<(), Status> {
    let attributes = Attributes { verb: "create".to_owned(), ..ask.attributes(None) };
    if !engine.is_authorizing() || allows(state, &ask.user, &attributes).is_some() {
        return Ok(());
    }
    Err(attributes.refusal(&ask.user))
}

/// Keeps a caller from granting more than it has.
pub(super) fn guard(engine: &Engine, ask: &Ask, state: &State, object: &Value) -> Result<(), Status> {
    if !engine.is_authorizing() || ask.resource.group != "rbac.authorization.k8s.io" {
        return Ok(());
    }
    let mut object = object.clone();
    if ask.resource.is_namespaced() {
        set(&mut object, &["metadata", "namespace"], ask.namespace.clone());
    }
    set(&mut object, &["kind"], ask.resource.kind.clone());
    rbac::check_escalation(state, &ask.user, &object)
}

/// The answer to a deletion that is complete.
pub(super) fn success(ask: &Ask, object: &Object) -> Value {
    let mut details = json!({"name": meta::name(object), "kind": ask.view.plural, "uid": meta::uid(object)});
    if !ask.view.group.is_empty() {
        set(&mut details, &["group"], ask.view.group.clone());
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
