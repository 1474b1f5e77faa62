//! One call on a resource as it was read from its request.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::Query;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::request::Parts;
use serde_json::Value;

use super::protobuf;
use super::rbac::Attributes;
use super::resources::Resource;
use super::status::{Cause, Status};
use super::tokens::User;

/// A call on a resource.
pub(crate) struct Ask {
    pub(crate) verb: &'static str,
    /// The resource that is stored.
    pub(crate) resource: Arc<Resource>,
    /// The resource that the caller sees, which may be another view of the same objects.
    pub(crate) view: Arc<Resource>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    pub(crate) query: Parameters,
    pub(crate) form: Form,
    pub(crate) content_type: String,
    /// Under which name fields are managed.
    pub(crate) manager: String,
    pub(crate) user: User,
    pub(crate) body: Bytes,
}

/// The parameters of a query.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters(BTreeMap<String, String>);

/// In which form a caller wants objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    /// Rows for people.
    Table,
    /// Metadata only.
    Metadata,
}

/// The longest manager's name.
const MANAGER_MAXIMUM: usize = 128;

impl Parameters {
    pub(crate) fn read(head: &Parts) -> Result<Self, Status> {
        let query = Query::<Vec<(String, String)>>::try_from_uri(&head.uri);
        let Query(pairs) = query.map_err(|_| Status::bad_request("the query cannot be read"))?;
        Ok(Self(pairs.into_iter().collect()))
    }

    /// Empty if it is not given.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// True if it is given and not `false`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Status> {
        match self.get(name) {
            "" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))),
        }
    }

    /// True if nothing shall be stored.
    pub(crate) fn dry_run(&self) -> Result<bool, Status> {
        match self.get("dryRun") {
            "" => Ok(false),
            "All" => Ok(true),
            other => {
                let about = super::status::About { group: "meta.k8s.io", kind: "CreateOptions", name: "" };
                let message = format!("Unsupported value: [{other:?}]: supported values: \"All\"");
                let (reason, field) = ("FieldValueNotSupported".to_owned(), "dryRun".to_owned());
                Err(Status::invalid(about, &[Cause { reason, message, field }]))
            }
        }
    }
}

impl Form {
    /// The form that the caller prefers; refused if it understands none that this server writes.
    pub(crate) fn read(head: &Parts) -> Result<Self, Status> {
        let accept = header(head, &ACCEPT);
        let mut ranges =
            accept.split(',').map(|range| range.replace(' ', "")).filter(|range| !range.is_empty()).peekable();
        if ranges.peek().is_none() {
            return Ok(Self::Whole);
        }
        for range in ranges {
            let mut parts = range.split(';');
            if !matches!(parts.next(), Some("application/json" | "*/*" | "application/*" | "text/plain")) {
                continue;
            }
            let form = parts.find_map(|part| part.strip_prefix("as="));
            return Ok(match form {
                Some("Table") => Self::Table,
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Self::Metadata,
                Some(_) => continue,
                None => Self::Whole,
            });
        }
        Err(Status::new(406, "406: Not Acceptable\n\nAvailable representations: application/json"))
    }
}

impl Ask {
    /// The request in the form that RBAC evaluates.
    pub(crate) fn attributes(&self, selected: Option<&str>) -> Attributes {
        let name = if self.name.is_empty() { selected.unwrap_or_default() } else { &self.name };
        Attributes {
            verb: self.verb.to_owned(),
            group: self.view.group.clone(),
            resource: self.view.plural.clone(),
            subresource: self.subresource.clone(),
            namespace: if self.view.plural == "namespaces" { self.name.clone() } else { self.namespace.clone() },
            name: name.to_owned(),
            path: String::new(),
        }
    }

    /// The body as a document.
    pub(crate) fn document(&self) -> Result<Value, Status> {
        if self.content_type.contains("protobuf") {
            if !self.body.starts_with(b"k8s\0") {
                return Err(unreadable("provided data does not appear to be a protobuf message"));
            }
            let message = "the body of the request was in an unknown format - accepted media types include: application/json, \
                           application/yaml (this server reads protobuf of some kinds only)";
            return protobuf::read(&self.body).ok_or_else(|| Status::new(415, message));
        }
        if self.content_type.contains("yaml") && serde_json::from_slice::<Value>(&self.body).is_err() {
            let text = std::str::from_utf8(&self.body).map_err(|_| unreadable("it is not UTF-8"))?;
            // What the parser says may quote the document.
            return serde_saphyr::from_str(text).map_err(|_| unreadable("it is not YAML"));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| unreadable(&format!("line {}, column {}", error.line(), error.column())))
    }
}

/// The kind of a verb's options, which refusals of its parameters name.
pub(crate) fn options(verb: &str) -> &'static str {
    match verb {
        "create" => "CreateOptions",
        "update" => "UpdateOptions",
        "patch" => "PatchOptions",
        "delete" | "deletecollection" => "DeleteOptions",
        "get" => "GetOptions",
        _ => "ListOptions",
    }
}

pub(crate) fn unreadable(why: &str) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized: couldn't get version/kind; json parse error: {why}"
    ))
}

fn header(head: &Parts, name: &http::HeaderName) -> String {
    head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// The media type of the body.
pub(crate) fn content_type(head: &Parts) -> String {
    header(head, &CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_owned()
}

pub(crate) fn user_agent(head: &Parts) -> String {
    header(head, &USER_AGENT)
}

/// Under which name the caller's fields are managed: what it says, or what its program calls itself.
pub(crate) fn manager(head: &Parts, query: &Parameters) -> Result<String, Cause> {
    Ok(match query.get("fieldManager") {
        "" => {
            let agent = user_agent(head);
            let program = agent.split('/').next().unwrap_or_default();
            let name: String =
                program.chars().filter(|character| !character.is_control()).take(MANAGER_MAXIMUM).collect();
            if name.is_empty() { "unknown".to_owned() } else { name }
        }
        given if given.len() > MANAGER_MAXIMUM => return Err(Cause::too_long("fieldManager", MANAGER_MAXIMUM)),
        given if given.chars().any(char::is_control) => {
            return Err(Cause::invalid(
                "fieldManager",
                &given.into(),
                "invalid character: only printable ones are allowed",
            ));
        }
        given => given.to_owned(),
    })
}

/// The token of the request: a bearer token, or the password of credentials in the URL.
pub(crate) fn token(head: &Parts) -> Option<String> {
    let value = header(head, &AUTHORIZATION);
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    let decoded = BASE64_STANDARD.decode(rest.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let decoded = String::from_utf8(decoded).ok()?;
    decoded.split_once(':').map(|(_, password)| password.to_owned())
}
