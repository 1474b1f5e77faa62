//! Lists: selection, pages, forms.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::ask::{Ask, Form};
use super::super::engine::Engine;
use super::super::selectors::Selector;
use super::super::status::{About, Cause, Status};
use super::super::store::{JOB_LABEL, Object};
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
        match ask.verb {
            "list" => Status::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: {given:?}: {why}"
            )),
            _ => Status::new(500, format!("resourceVersion: Invalid value: {given:?}: {why}")).because(""),
        }
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

/// Refuses parameters that do not fit together.
pub(crate) fn check_match(ask: &Ask) -> Result<(), Status> {
    let about = About { group: "meta.k8s.io", kind: "ListOptions", name: "" };
    let refuse = |cause: Cause| Err(Status::invalid(about, &[cause]));
    let forbidden = |message: &str| refuse(Cause::forbidden("resourceVersionMatch", message));
    let (revision, matching) = (ask.query.get("resourceVersion"), ask.query.get("resourceVersionMatch"));
    if ask.query.flag("sendInitialEvents") {
        return match (ask.verb, matching) {
            ("watch", "NotOlderThan") => Ok(()),
            ("watch", _) => forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
            _ => refuse(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")),
        };
    }
    if ask.verb == "watch" && !matching.is_empty() {
        return forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    match matching {
        "" => {}
        _ if !ask.query.get("continue").is_empty() => {
            return forbidden("resourceVersionMatch is forbidden when continue is provided");
        }
        _ if revision.is_empty() => {
            return forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        "Exact" if revision == "0" => {
            return forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
        "Exact" | "NotOlderThan" => {}
        other => return refuse(Cause::unsupported("resourceVersionMatch", other, &["Exact", "NotOlderThan", ""])),
    }
    if !ask.query.get("continue").is_empty() && !matches!(revision, "" | "0") {
        return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
    }
    Ok(())
}

pub(super) fn list(engine: &Engine, ask: &Ask, selector: &Selector) -> Result<Answer, Status> {
    check_match(ask)?;
    check_revision(engine, ask)?;
    let limit =
        ask.query.number::<i64>("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
    let mark = match ask.query.get("continue") {
        "" => None,
        token => Some(Mark::read(token).ok_or_else(|| {
            Status::bad_request("invalid continue token: continue key is not valid: invalid character")
        })?),
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
            let key = || (meta::namespace(object), meta::name(object));
            mark.as_ref().is_none_or(|mark| key() > (mark.namespace.as_str(), mark.name.as_str()))
        };
        let fits = |object: &&Object| behind(object) && selector.matches(object);
        let job = selector.label(JOB_LABEL).filter(|_| ask.resource.storage == "pods");
        let fitting: Vec<_> = match namespace.zip(job) {
            Some((namespace, job)) => state.pods_of_job(namespace, job).filter(fits).cloned().collect(),
            None => state.list(&ask.resource, namespace).filter(fits).cloned().collect(),
        };
        Ok((fitting, revision))
    })?;
    let page = all.get(..limit.unwrap_or(all.len()).min(all.len())).unwrap_or_default();
    let left = all.len() - page.len();
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let Some(last) = page.last().filter(|_| left > 0) {
        let next = Mark { revision, namespace: meta::namespace(last).to_owned(), name: meta::name(last).to_owned() };
        set(&mut metadata, &["continue"], next.write());
        // What a selector leaves is not counted.
        if selector.is_empty() {
            set(&mut metadata, &["remainingItemCount"], left);
        }
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
