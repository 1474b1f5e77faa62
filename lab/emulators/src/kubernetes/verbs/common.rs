//! Parts that several verbs share.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::ask::{Ask, Form};
use super::super::engine::Engine;
use super::super::status::Status;
use super::super::store::{Manager, Object, Part, State, Writing};
use super::super::value::set;
use super::super::{meta, rbac, tables, views};

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

    /// The body as an object of the stored kind.
    pub(super) fn object(&self) -> Result<Value, Status> {
        Ok(views::absorb(&self.view, self.document()?))
    }
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
    Answer::Document { code, value, warning: None }
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
