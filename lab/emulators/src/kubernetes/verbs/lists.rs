//! Lists: selection, pages, forms.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::ask::{Ask, Form};
use super::super::engine::Engine;
use super::super::selectors::Selector;
use super::super::status::{Cause, Status};
use super::super::store::Object;
use super::super::value::{set, text};
use super::super::{meta, tables, views};

/// The continuation of a list.
struct Mark {
    /// The revision of the list's first page.
    revision: u64,
    /// The last object of the page before.
    namespace: String,
    name: String,
}

impl Mark {
    fn write(&self) -> String {
        let Self { revision, namespace, name } = self;
        BASE64_URL_SAFE_NO_PAD.encode(json!({"rv": revision, "namespace": namespace, "name": name}).to_string())
    }

    fn read(token: &str) -> Option<Self> {
        let document: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let own = |pointer: &str| text(&document, pointer).to_owned();
        Some(Self { revision: document.get("rv")?.as_u64()?, namespace: own("/namespace"), name: own("/name") })
    }
}

/// Refuses a revision that is still to come.
pub(crate) fn check_revision(engine: &Engine, ask: &Ask) -> Result<Option<u64>, Status> {
    let wanted = ask.query.number::<u64>("resourceVersion").map_err(|_| {
        let given = ask.query.get("resourceVersion");
        let why = format!("strconv.ParseUint: parsing {given:?}: invalid syntax");
        Status::new(500, format!("resourceVersion: Invalid value: {given:?}: {why}")).because("")
    })?;
    let newest = engine.store.read(super::super::store::State::revision);
    if let Some(wanted) = wanted.filter(|wanted| *wanted > newest) {
        let message = format!("Too large resource version: {wanted}, current: {newest}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        return Err(Status::new(504, format!("Timeout: {message}"))
            .because("Timeout")
            .with_causes(&[cause])
            .retry_after(1));
    }
    Ok(wanted)
}

pub(super) fn list(engine: &Engine, ask: &Ask, selector: &Selector) -> Result<Answer, Status> {
    check_revision(engine, ask)?;
    let limit = ask.query.number::<usize>("limit")?.filter(|limit| *limit > 0);
    let mark = match ask.query.get("continue") {
        "" => None,
        token => Some(
            Mark::read(token)
                .ok_or_else(|| Status::bad_request("invalid continue token: continue key is not valid"))?,
        ),
    };
    let (all, revision) = engine.store.read(|state| {
        let revision = mark.as_ref().map_or_else(|| state.revision(), |mark| mark.revision);
        if revision < state.forgotten() {
            let message = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                           list without the continue parameter.";
            return Err(Status::expired(message));
        }
        let namespace = Some(ask.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let behind = |object: &&Object| {
            let key = (meta::namespace(object), meta::name(object));
            mark.as_ref().is_none_or(|mark| key > (mark.namespace.as_str(), mark.name.as_str()))
        };
        let fitting = state.list(&ask.resource, namespace).filter(behind).filter(|object| selector.matches(object));
        Ok((fitting.cloned().collect::<Vec<_>>(), revision))
    })?;
    let page = all.get(..limit.unwrap_or(all.len()).min(all.len())).unwrap_or_default();
    let left = all.len() - page.len();
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let Some(last) = page.last().filter(|_| left > 0) {
        let next = Mark { revision, namespace: meta::namespace(last).to_owned(), name: meta::name(last).to_owned() };
        set(&mut metadata, &["continue"], next.write());
        set(&mut metadata, &["remainingItemCount"], left);
    }
    Ok(Answer::ok(document(engine, ask, page, &metadata)))
}

/// A list in the form that the caller wants.
pub(super) fn document(engine: &Engine, ask: &Ask, page: &[Object], metadata: &Value) -> Value {
    match ask.form {
        Form::Whole => {
            let items: Vec<Value> = page.iter().map(|object| views::item(&ask.view, object)).collect();
            let (kind, version) = (&ask.view.list_kind, ask.view.api_version());
            json!({"kind": kind, "apiVersion": version, "metadata": metadata, "items": items})
        }
        Form::Metadata => {
            let items: Vec<Value> = page.iter().map(|object| views::metadata_only(object)).collect();
            let version = "meta.k8s.io/v1";
            json!({"kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": metadata, "items": items})
        }
        Form::Table => {
            let mut table = tables::table(&ask.view, page, ask.query.get("includeObject"), engine.store.now());
            set(&mut table, &["metadata"], metadata.clone());
            table
        }
    }
}
